package access

import "github.com/musterhq/muster/internal/fault"

// Replacement says what a user may do, and has confirmed, who replaces the device of an asset. If the asset has a managed
// device, that device leaves the asset, which takes the same rights as a destructive command. The operator's command line
// does not use a Replacement.
type Replacement struct {
	UserID string
	// MayDestroy: the user may send destructive commands to the device that leaves.
	MayDestroy bool
	// Named: the user typed the name of the asset whose device leaves, as a confirmation.
	Named bool
}

// Refusal returns nil if the user may let a managed device leave, and otherwise fault.Forbidden or
// fault.ConfirmationRequired.
func (r Replacement) Refusal() error {
	switch {
	case !r.MayDestroy:
		return fault.New(fault.Forbidden, "the asset has a managed device, which would leave it: that takes the permission to send "+
			"destructive commands")
	case !r.Named:
		return fault.New(fault.ConfirmationRequired,
			"the asset has a managed device, which would leave it: type the asset's name to confirm that")
	}
	return nil
}
