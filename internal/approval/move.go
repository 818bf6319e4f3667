package approval

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/signature"
)

// The impacts of a move.
const (
	NormalImpact = "NORMAL"
	HighImpact   = "HIGH"
)

// Contrast is what a move from one policy to another changes on the device.
type Contrast struct {
	Difference Difference
	Changes    []signature.Moved
	Unnamed    []string // differences that no setting names
	Warnings   []string
	Impact     string
}

// Irreversible reports whether the move can erase data or cut the device off.
func (c Contrast) Irreversible() bool { return len(c.Warnings) > 0 }

// Compare says what a move changes on a device that has one policy, and to which other
// moves may bring the policies onTheWay first: the worst of them counts, and what the move
// changes then is among the differences without a name.
func Compare(from, to policy.Policy, onTheWay ...policy.Policy) Contrast {
	c := compare(from, to)
	for _, p := range onTheWay {
		c = c.or(p, compare(p, to))
	}
	return c
}

// or adds what the move changes where another one brings the device to a policy first.
func (c Contrast) or(first policy.Policy, then Contrast) Contrast {
	c.Difference = max(c.Difference, then.Difference)
	if then.Impact == HighImpact {
		c.Impact = HighImpact
	}
	for _, w := range then.Warnings {
		if !slices.Contains(c.Warnings, w) {
			c.Warnings = append(c.Warnings, w)
		}
	}
	to := fmt.Sprintf("another move is under way to %q", cmp.Or(first.Name, "a policy that is not there any more"))
	for _, m := range then.Changes {
		c.Unnamed = append(c.Unnamed, fmt.Sprintf("%s: %s, and %s there: %s", m.Setting, m.To, m.From, to))
	}
	for _, text := range then.Unnamed {
		c.Unnamed = append(c.Unnamed, text+": "+to)
	}
	return c
}

// compare says what a move changes. Policies that cannot be compared, such as one that is
// not there any more, differ in what is not known: that is risky.
func compare(from, to policy.Policy) Contrast {
	d, err := policy.Compare(to.Type, from.Revision(), to.Revision())
	if err != nil || from.ID == "" || to.ID == "" || from.Type != to.Type || from.Deleted {
		return Contrast{Difference: Risky, Changes: []signature.Moved{}, Unnamed: []string{"the policies cannot be compared"},
			Warnings: []string{}, Impact: HighImpact}
	}
	c := Contrast{Difference: Other, Changes: []signature.Moved{}, Unnamed: append([]string{}, d.Unnamed()...),
		Warnings: append([]string{}, policy.Warnings(d.Moves)...), Impact: NormalImpact}
	if from.VROnly != to.VROnly {
		c.Unnamed = append(c.Unnamed, "for headsets only")
	}
	for _, m := range d.Moves {
		c.Changes = append(c.Changes, signature.Moved{Setting: m.Setting.Label, From: m.From, To: m.To})
		if m.Setting.HighImpact {
			c.Impact = HighImpact
		}
	}
	switch {
	case d.Risky():
		c.Difference = Risky
	case d.OnlyName() && from.VROnly == to.VROnly:
		c.Difference = Same
	}
	return c
}
