package access

import "github.com/musterhq/muster/internal/fault"

// Replacement is what a person brings who replaces the enrollment of an asset: if its
// device is managed now, it leaves, as with a destructive command. The operator's command
// line brings none.
type Replacement struct {
	UserID string
	// MayDestroy: the person may send destructive commands to the device that leaves.
	MayDestroy bool
	// Named: the person typed the name of the asset whose device leaves.
	Named bool
}

// Refusal says why the person may not let a managed device leave, or is nil.
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
