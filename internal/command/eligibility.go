package command

import (
	"fmt"
	"time"

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
	if !a.Status.Enrolled() {
		return unsupported("the asset is not enrolled: its status is %s; commands need ACTIVE, INACTIVE or SYNCHRONIZING", a.Status)
	}
	if d == nil {
		return unsupported("the asset is not a managed device")
	}
	support := t.Row().on(d.Management)
	switch {
	case support == nil && d.Management == asset.Agent && t.Row().Instead != "":
		return unsupported("%s does not work on agent-managed devices, and this is one: %s", t, t.Row().Instead)
	case support == nil:
		return unsupported("%s does not work on %s devices, and this is one", t, managed(d.Management))
	case support.Push && !(d.PushReachable && (companion || d.Management == asset.Agent)):
		return unsupported("%s", lacksPush(t, d.Management))
	case !support.Needs.met(*d):
		return unsupported("%s needs %s; %s", t, support.Needs, describe(*d))
	}
	return nil
}

// lacksPush says what a device needs for a command that is pushed to it.
func lacksPush(t Type, m asset.Management) string {
	if m == asset.Agent {
		return "the device has no valid push token: its agent must be installed and enrolled"
	}
	return fmt.Sprintf("the device has no valid push token: on a device of the Android platform %s needs Muster's companion app, and no release of that app exists yet", t)
}

// Requirement is whose a device must be and how much of it must be managed, in
// words. What is not known is not met.
type Requirement string

// The requirements. The empty one is met by every device.
const (
	CompanyOwned       Requirement = "a company-owned device"
	FullyManaged       Requirement = "a fully managed device"
	CompanyWorkProfile Requirement = "a company-owned device with a work profile"
)

func (r Requirement) met(d asset.Device) bool {
	company := d.Ownership == asset.CompanyOwned
	switch r {
	case CompanyOwned:
		return company
	case FullyManaged:
		return company && d.Mode == asset.FullyManaged
	case CompanyWorkProfile:
		return company && d.Mode == asset.WorkProfile
	}
	return true
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
