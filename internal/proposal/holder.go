package proposal

import "github.com/musterhq/muster/internal/name"

// newHolder names one attempt in leases.
func newHolder() string { return "proposal-" + name.NewID() }
