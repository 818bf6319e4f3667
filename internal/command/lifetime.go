package command

import (
	"time"

	"github.com/musterhq/muster/internal/asset"
)

const day = 24 * time.Hour

// Lifetime is how long a command of the type waits for its device: the channel
// gives up afterwards, and the command ends ERROR (contract 3.3).
// Zero: forever, because the device takes the state on whenever it comes back.
//
// What interrupts a person must not strike long after it was asked for; what
// protects a lost device must wait for it.
func (t Type) Lifetime(m asset.Management) time.Duration {
	switch t {
	case SyncPolicy, ChangePolicy:
		return 0
	case WipeCompanyData, RelinquishOwnership:
		if m == asset.Agent {
			return 0
		}
		return 365 * day
	case Lock, StartLostMode, StopLostMode:
		return 7 * day
	case Reboot:
		if m == asset.Platform {
			return time.Hour
		}
		return 10 * time.Minute
	case Shutdown, LaunchApp, LocationUpdate:
		return 10 * time.Minute
	default: // NotificationMessage, StatusReport, ClearAppData, ResetScreenLock, ChangeScreenLockPassword
		return day
	}
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
	case t == WipeCompanyData || t == RelinquishOwnership:
		return Succeeded, "the device is no longer managed"
	}
	return Failed, "the device is no longer managed; the command can no longer be carried out"
}
