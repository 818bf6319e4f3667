package command

import (
	"time"

	"github.com/musterhq/muster/internal/asset"
)

const day = 24 * time.Hour

// Lifetime is how long a command of the type waits for its device: the channel
// gives up afterwards, and the command ends ERROR (decisions "Commands").
// Zero: for ever, because the device takes the state on whenever it comes back.
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

// EndOfManagement is the state and the outcome in which an open command of the
// type ends when its device stops being managed: a wipe and a relinquish have
// then done what they were for, nothing else can any more (contract 3.4).
func (t Type) EndOfManagement() (State, string) {
	if t == WipeCompanyData || t == RelinquishOwnership {
		return Succeeded, "the device is no longer managed"
	}
	return Failed, "the device is no longer managed; the command can no longer be carried out"
}
