package usb

import (
	"github.com/musterhq/muster/internal/usb/adb"
)

// Outcome is what became of a device.
type Outcome string

// The outcomes.
const (
	Working         Outcome = "WORKING" // said while it goes on; never the last
	Enrolled        Outcome = "ENROLLED"
	AlreadyEnrolled Outcome = "ALREADY_ENROLLED" // with this service, which knows it
	Elsewhere       Outcome = "ELSEWHERE"        // with another service, as far as is known
	Unauthorized    Outcome = "UNAUTHORIZED"
	NoPermissions   Outcome = "NO_PERMISSIONS"
	Offline         Outcome = "OFFLINE"
	NotReady        Outcome = "NOT_READY"
	Unsupported     Outcome = "UNSUPPORTED"
	Absent          Outcome = "ABSENT"
	Failed          Outcome = "FAILED"
)

// rank orders the outcomes of one device in a session: the best counts.
func (o Outcome) rank() int {
	switch o {
	case Enrolled:
		return 2
	case AlreadyEnrolled:
		return 1
	}
	return 0
}

// Way is how a device gets its agent.
type Way string

// The ways.
const (
	System Way = "SYSTEM" // the agent is part of the device's system
	Owner  Way = "OWNER"  // the Android app is installed and made the device owner
	Lab    Way = "LAB"    // it is brought along and started over USB
)

// Result is one device and what became of it. Its texts are clean.
type Result struct {
	Serial         string  `json:"serial"` // as adb names the device
	Manufacturer   string  `json:"manufacturer"`
	Model          string  `json:"model"`
	AndroidVersion string  `json:"androidVersion"`
	SDK            int     `json:"sdk"`
	ABI            string  `json:"abi"`
	Way            Way     `json:"way"`
	Outcome        Outcome `json:"outcome"`
	Asset          string  `json:"asset"`  // its path name, when enrolled
	Detail         string  `json:"detail"` // for people
}

// listed is the result of a device with which adb can do nothing.
func listed(d adb.Device) Result {
	r := Result{Serial: d.Serial, Outcome: NotReady, Detail: "adb says that it is " + string(d.State) + ": start Android on it"}
	switch d.State {
	case adb.Unauthorized:
		r.Outcome, r.Detail = Unauthorized, "allow USB debugging for this computer on the device itself"
	case adb.Authorizing:
		r.Detail = "adb and the device are still getting to know each other: try again"
	case adb.Offline:
		r.Outcome, r.Detail = Offline, "it does not answer: unplug it, wake it up, and plug it in again"
	case adb.NoPermissions:
		r.Outcome, r.Detail = NoPermissions, "this computer's user may not use the USB port: see Android's udev rules (Debian: android-sdk-platform-tools-common)"
	}
	return r
}
