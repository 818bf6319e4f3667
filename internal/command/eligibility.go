package command

import (
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/fault"
)

// Eligible returns fault.Unsupported, saying why, for a device that cannot
// take a command of the type (contract 3.1, 4.2). It
// reads only the inventory: the platform would silently swallow a reboot
// of a personally owned device. companion says whether the service can push to
// companions on platform devices at all.
func Eligible(t Type, a asset.Asset, companion bool) error {
	d := a.Device
	switch {
	case !a.Status.Enrolled():
		return unsupported("the asset is not enrolled: its status is %s; commands need ACTIVE, INACTIVE or SYNCHRONIZING", a.Status)
	case d == nil:
		return unsupported("the asset is not a managed device")
	case !t.takenBy(d.Management):
		return unsupported("%s does not work on %s devices, and this is one", t, managed(d.Management))
	case needsPush(t, d.Management) && !(d.PushReachable && (companion || d.Management == asset.Agent)):
		return unsupported("the device has no valid push token: it needs our agent, installed and registered")
	}
	return ownership(t, *d)
}

// takenBy reports whether devices of the management take the type.
func (t Type) takenBy(m asset.Management) bool {
	switch t {
	case Lock, StartLostMode, StopLostMode, ClearAppData, ResetScreenLock, ChangeScreenLockPassword:
		return m == asset.Platform
	case SyncPolicy, Shutdown, LaunchApp:
		return m == asset.Agent
	default:
		return m == asset.Platform || m == asset.Agent
	}
}

// needsPush reports whether the type reaches devices of the management by push
// alone: the platform knows neither messages nor locations.
func needsPush(t Type, m asset.Management) bool {
	return t == NotificationMessage || t == LocationUpdate && m == asset.Platform
}

// ownership checks whose device it is and how much of it is managed. What is
// not known is not allowed.
func ownership(t Type, d asset.Device) error {
	company := d.Ownership == asset.CompanyOwned
	switch {
	case t == Reboot && !(company && d.Mode == asset.FullyManaged):
		return unsupported("REBOOT needs a fully managed device; %s", describe(d))
	case (t == StartLostMode || t == StopLostMode) && !company:
		return unsupported("%s needs a company-owned device; %s", t, describe(d))
	case t == RelinquishOwnership && d.Management == asset.Platform && !(company && d.Mode == asset.WorkProfile):
		return unsupported("RELINQUISH_OWNERSHIP needs a company-owned device with a work profile; %s", describe(d))
	}
	return nil
}

func describe(d asset.Device) string {
	owner, mode := "of unknown ownership", "of unknown mode"
	switch d.Ownership {
	case asset.CompanyOwned:
		owner = "company-owned"
	case asset.PersonallyOwned:
		owner = "personally owned"
	}
	switch d.Mode {
	case asset.FullyManaged:
		mode = "fully managed"
	case asset.WorkProfile:
		mode = "managed in a work profile"
	}
	return "this one is " + owner + " and " + mode
}

func managed(m asset.Management) string {
	if m == asset.Agent {
		return "agent-managed"
	}
	return "platform-managed"
}

func unsupported(format string, args ...any) error {
	return fault.New(fault.Unsupported, format, args...)
}
