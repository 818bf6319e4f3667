// Package agent is the device's half of Muster's own management: it enrolls,
// keeps in touch, carries out signed commands exactly once, and brings the
// device to the state that its policy asks for.
//
// The same core runs on real devices, in simulation and in fleets of thousands;
// what differs is the Device below it. What it has promised survives a crash at
// any point: see Journal.
package agent

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/musterhq/muster/internal/agent/protocol"
)

// Device is the machine under the agent. Implementations refuse like the real
// thing: with ErrUnsupported for what this device can never do, ErrNotApplicable
// for what has no meaning on it, and any other error for what failed this time.
type Device interface {
	// Facts are what the device reports of itself. It fails if the system does not answer.
	Facts(ctx context.Context) (protocol.Facts, error)
	// Capabilities lists what of the protocol the device can do. It fails as Facts does.
	Capabilities(ctx context.Context) ([]protocol.Capability, error)
	// BootID differs after every start of the machine.
	BootID(ctx context.Context) (string, error)
	// Settings lists the ids of all settings, also of those it cannot follow.
	Settings() []string
	// Read returns a setting's present value, or "" where the device is left to
	// its default.
	Read(ctx context.Context, setting string) (string, error)
	// Apply sets a setting; "" takes back what was set before.
	Apply(ctx context.Context, setting, value string) error
	// Do carries out an action and returns a short text of what came of it. What
	// it does not know, it refuses with ErrUnsupported.
	Do(ctx context.Context, a Action) (string, error)
	// Report collects what the groups name, and nothing else.
	Report(ctx context.Context, groups Reporting) (Report, error)
}

// Action is a command that the device itself carries out.
type Action struct {
	Type      string // the command's
	CommandID string // the notification's tag, so that a second delivery replaces the first
	Args      json.RawMessage
	// Again: an Erase that was ordered before has shown no effect for a while.
	Again bool
}

// Types of commands that devices carry out, as the protocol names them.
const (
	ShowMessage = "NOTIFICATION_MESSAGE"
	Restart     = "REBOOT"
	PowerOff    = "SHUTDOWN"
	OpenApp     = "LAUNCH_APP"
	Erase       = "WIPE_COMPANY_DATA"
	LetGo       = "RELINQUISH_OWNERSHIP"
)

// Read reads the command's arguments. Text in them reaches the device as
// arguments of its tools only.
func (a Action) Read(args any) error {
	if len(a.Args) > 0 && json.Unmarshal(a.Args, args) != nil {
		return errors.New("the command's arguments cannot be read")
	}
	return nil
}

// Errors that a Device answers with.
var (
	ErrUnsupported   = errors.New("this device cannot do that")
	ErrNotApplicable = errors.New("this has no meaning on this device")
	ErrNoFix         = errors.New("NO_FIX: the device has no location")
	// ErrOrdered is the answer to an Erase that the system below was asked for,
	// where only the device's silence proves that it happens.
	ErrOrdered = errors.New("the system was told to erase the device, which is still there")
)

// Reporting says which groups a report may hold: those that the policy turned
// on. What is off is not collected.
type Reporting struct {
	Policy map[string]string // setting → value, as applied
	// Location asks for a fix. Only a command does.
	Location bool
}

// On reports whether a setting REPORT_… turns its group on.
func (r Reporting) On(setting string) bool { return r.Policy[setting] == "ENABLED" }

// Applications reports whether the installed apps are to be listed.
func (r Reporting) Applications() bool {
	level := r.Policy["APPLICATION_REPORT_LEVEL"]
	return level == "INSTALLED_APPS" || level == "INSTALLED_AND_REMOVED_APPS"
}

// Report is what a device reports.
type Report struct {
	Values         json.RawMessage // a JSON object
	Specifications map[string]string
	Location       *protocol.Location
}
