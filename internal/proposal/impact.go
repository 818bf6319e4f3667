package proposal

import "github.com/musterhq/muster/internal/policy"

// ImpactOf is the impact rule of contract 4.3: HIGH when the policy has a
// device and the change is a rollback, moves a high-impact setting, or the
// policy has 50 devices. A new policy has no devices.
func ImpactOf(c Capability, devices int, moves []policy.Move) Impact {
	if c == CreatePolicy || devices == 0 {
		return Normal
	}
	if c == RollBack || devices >= HighImpactDevices {
		return High
	}
	for _, m := range moves {
		if m.Setting.HighImpact {
			return High
		}
	}
	return Normal
}
