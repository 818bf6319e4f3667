package approval

import (
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

// Compare says what a move changes. Policies that cannot be compared, such as one that is
// not there any more, differ in what is not known: that is risky.
func Compare(from, to policy.Policy) Contrast {
	d, err := policy.Compare(to.Type, from.Revision(), to.Revision())
	if err != nil || from.ID == "" || to.ID == "" || from.Type != to.Type || from.Deleted {
		return Contrast{Difference: Risky, Changes: []signature.Moved{}, Unnamed: []string{"the policies cannot be compared"}, Warnings: []string{}, Impact: HighImpact}
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
