package proposal

import (
	"fmt"
	"slices"

	"github.com/musterhq/muster/internal/policy"
)

// ImpactOf is the impact rule: HIGH when the policy has a
// device and the change is a rollback, moves a high-impact setting, or the
// policy has 50 devices. A new policy has no devices.
func ImpactOf(c Capability, devices int, changesHighImpact bool) Impact {
	if c == CreatePolicy || devices == 0 {
		return Normal
	}
	if c == RollBack || devices >= HighImpactDevices || changesHighImpact {
		return High
	}
	return Normal
}

// highImpact reports whether a change list has a high-impact setting.
func highImpact(fields []Field) bool {
	return slices.ContainsFunc(fields, func(f Field) bool { return policy.HighImpact(f.Label) })
}

// reasons says in plain words what makes a proposal's impact HIGH.
func reasons(p Proposal, devices int, moves []policy.Move) []string {
	if p.Impact != High {
		return nil
	}
	var why []string
	if p.Capability == RollBack {
		why = append(why, "it returns to an earlier revision")
	}
	for _, m := range moves {
		if m.Setting.HighImpact {
			why = append(why, "it changes "+m.Setting.Label)
		}
	}
	switch {
	case devices >= HighImpactDevices:
		why = append(why, fmt.Sprintf("%d or more devices use the policy", HighImpactDevices))
	case len(why) == 0: // an impact never falls
		why = append(why, fmt.Sprintf("%d or more devices used the policy after it was proposed", HighImpactDevices))
	}
	return why
}
