package command

import (
	"time"

	"github.com/musterhq/muster/internal/asset"
)

// Lifetime is how long a command of the type waits for its device; zero: forever.
func (t Type) Lifetime(m asset.Management) time.Duration {
	if support := t.Row().on(m); support != nil {
		return support.Waits
	}
	return 0
}

// ReleasedWithoutErasing is the outcome of an agent's wipe whose device left
// management otherwise. The device is still ordered to erase itself if it comes
// back.
const ReleasedWithoutErasing = "released without erasing"

// EndOfManagement is the state and the outcome in which an open command of the
// type ends when its device stops being managed. The platform removes a device
// because it was wiped or released. An agent's device may leave in other ways:
// its wipe has succeeded only if the device erased itself.
func (t Type) EndOfManagement(m asset.Management, erased bool) (State, string) {
	switch {
	case t == WipeCompanyData && erased:
		return Succeeded, "the device was erased and is no longer managed"
	case t == WipeCompanyData && m == asset.Agent:
		return Failed, ReleasedWithoutErasing
	case t.Row().EndsManagement:
		return Succeeded, "the device is no longer managed"
	}
	return Failed, "the device is no longer managed; the command can no longer be carried out"
}
