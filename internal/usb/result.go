package usb

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"

	"github.com/musterhq/muster/internal/usb/adb"
	"github.com/musterhq/muster/internal/validate"
)

// Outcome is what became of a device.
type Outcome string

// The outcomes.
const (
	Working         Outcome = "WORKING" // said while it goes on; never the last
	Enrolled        Outcome = "ENROLLED"
	AlreadyEnrolled Outcome = "ALREADY_ENROLLED" // with this service, which knows it
	Elsewhere       Outcome = "ELSEWHERE"        // with another service, as far as is known
	Asking          Outcome = "ASKING"           // it lost its key: an administrator has to confirm it
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
	default:
		return 0
	}
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
		r.Outcome, r.Detail = Unauthorized, "allow USB debugging for this computer on the device itself; a Samsung asks only if its Auto "+
			"Blocker is off"
	case adb.Authorizing:
		r.Detail = "adb and the device are still getting to know each other: try again"
	case adb.Offline:
		r.Outcome, r.Detail = Offline, "it does not answer: unplug it, wake it up, and plug it in again"
	case adb.NoPermissions:
		r.Outcome, r.Detail = NoPermissions, "this computer's user may not use the USB port: see Android's udev rules (Debian: "+
			"android-sdk-platform-tools-common)"
	default: // another state of adb
	}
	return r
}

// refusal is what a tool of Android says, in part and in lower case, with what it
// means and what to do.
type refusal struct{ says, means string }

// ownerRefusals are those of dpm set-device-owner (AOSP, DevicePolicyManagerService:
// the preconditions of a device owner).
func ownerRefusals() []refusal {
	return []refusal{
		{"already some accounts", "the device has accounts: remove each in its settings (also those of apps), enroll it, and " +
			"add them again"},
		{"already several users", "the device has more than one user: remove guests, other users, work profiles, cloned apps and " +
			"secure folders"},
		{"device owner is already set",
			"another app is its device owner: relinquish it at the service that manages it, or reset the device"},
		{"already has a device owner",
			"another app is its device owner: relinquish it at the service that manages it, or reset the device"},
		{"already has a profile owner", "it has a work profile: remove that in its settings"},
		{"already set-up", "this maker allows a device owner only before the setup is complete: reset the device, skip accounts in the " +
			"setup, switch on USB debugging"},
		{"already provisioned", "this maker allows a device owner only before the setup is complete: reset the device, skip accounts in " +
			"the setup, switch on USB debugging"},
		{"already paired", "it is paired with another device: undo that in its settings"},
		{"user not running", "Android is still starting: unlock it once, and try again"},
		{"is not system user", "another user than its first is in the foreground: switch to the first"},
		{"headless system user", "its Android runs without a first user in the foreground, where an app can own it from Android 14 on"},
		{"manage_device_admins", "its maker guards this: switch on “USB debugging (Security settings)” in the developer options, which " +
			"may take an account for the moment"},
		{"unknown admin", "Android does not see the app: it may be installed for another user; uninstall it and try again"},
		{"device_admin feature", "its maker left device management out of its Android"},
		{"can't set package", "its maker's Android refuses device owners over USB"},
	}
}

// installRefusals are those of pm install.
func installRefusals() []refusal {
	return []refusal{
		{"install_failed_version_downgrade", "a newer version is installed: use a muster of that version or a newer one"},
		{"install_failed_update_incompatible",
			"an app that another key signed is installed: relinquish the device at its service and uninstall it"},
		{"install_failed_insufficient_storage", "its storage is full"},
		{"install_failed_older_sdk", "its Android is older than 9 (API level 28)"},
		{"install_failed_verification_failure", "Play Protect refused the app: allow it on the device, or switch “Verify apps over USB” " +
			"off in the developer options"},
		{"install_failed_user_restricted",
			"the device forbids installation over USB: allow it in the developer options, or confirm it on the device"},
		{"no_install_apps", "its policy forbids to install apps (VENDOR_STORE_MODE): take that back first"},
		{"install_parse_failed", "the file is not a whole Android app"},
	}
}

// obstacles are what makers put in the way of a device owner over USB, by a part of the
// maker's name in lower case.
func obstacles() []refusal {
	const xiaomi = "Xiaomi asks for an account before it switches on “Install via USB” and “USB debugging (Security settings)”: sign in, " +
		"switch both on, and remove the account again"
	const quest = "a Meta Quest keeps an account that cannot be removed: Android takes no device owner beside it, and only Meta's own " +
		"managed services own one"
	return []refusal{
		{"samsung", "Samsung's Auto Blocker refuses commands and apps over USB: switch it off in the settings, Security and privacy"},
		{"xiaomi", xiaomi}, {"redmi", xiaomi}, {"poco", xiaomi},
		{"oculus", quest}, {"meta", quest},
	}
}

// explain is the error for a refusal, with the tool's own words, and what the maker is
// known to put in the way.
func (w *work) explain(what string, output adb.Output, known []refusal) error {
	text := strings.ToLower(output.Out + "\n" + output.Err)
	means := "it said: " + output.Message()
	for _, r := range known {
		if strings.Contains(text, r.says) {
			means = r.means + " (it said: " + output.Message() + ")"
			break
		}
	}
	for _, maker := range obstacles() {
		if strings.Contains(strings.ToLower(w.result.Manufacturer), maker.says) {
			means += "; " + maker.means
			break
		}
	}
	return errors.New(what + ": " + means)
}

// Transcript records what was run on devices and what they answered, for reports
// about hardware. It leaves out what identifies a device or a person. Bundles go to
// devices as files, and so never come here. Several devices may write at once.
type Transcript struct {
	To io.Writer
	// Err is the first error of To.
	Err error

	mu sync.Mutex
}

// accounts are addresses of people, and deviceIDs what the agent says of its
// enrollment.
var (
	accounts  = regexp.MustCompile(`[^\s=<>"'/]+@[^\s=<>"'/]+\.[^\s=<>"',/]+`)
	deviceIDs = regexp.MustCompile(`\bdevice=[0-9A-Za-z_-]+|Device: +[0-9A-Za-z_-]+`)
	secrets   = regexp.MustCompile(`met_[0-9A-Za-z_-]+`)
)

// record writes one command down.
func (w *work) record(words []string, output adb.Output, err error) {
	if w.Transcript == nil {
		return
	}
	t := w.Transcript
	t.mu.Lock()
	defer t.mu.Unlock()
	hide := func(text string) string {
		if serial := w.result.Serial; serial != "" {
			text = strings.ReplaceAll(text, serial, "[serial]")
		}
		text = accounts.ReplaceAllString(text, "[account]")
		text = deviceIDs.ReplaceAllString(text, "[device]")
		return secrets.ReplaceAllString(text, "[token]")
	}
	var all strings.Builder
	fmt.Fprintf(&all, "%s %s, Android %s (%d)$ %s\n", w.result.Manufacturer, w.result.Model, w.result.AndroidVersion, w.result.SDK,
		hide(strings.Join(words, " ")))
	for _, text := range []string{output.Out, output.Err} {
		for line := range strings.Lines(text) {
			fmt.Fprintf(&all, "  %s\n", validate.Clean(hide(line), 1000))
		}
	}
	if err != nil {
		fmt.Fprintf(&all, "  error: %s\n", validate.Clean(hide(err.Error()), 1000))
	}
	fmt.Fprintf(&all, "  exit code %d\n", output.Code)
	if _, err := io.WriteString(t.To, all.String()); err != nil && t.Err == nil {
		t.Err = err
	}
}
