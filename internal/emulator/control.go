package emulator

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	am "google.golang.org/api/androidmanagement/v1"

	"github.com/musterhq/muster/internal/slice"
)

// DeviceView is a simulated device as the control API shows it.
type DeviceView struct {
	Name           string   `json:"name"`
	Ownership      string   `json:"ownership"`
	ManagementMode string   `json:"managementMode"`
	Manufacturer   string   `json:"manufacturer"`
	Brand          string   `json:"brand"`
	Model          string   `json:"model"`
	SerialNumber   string   `json:"serialNumber"`
	APILevel       int      `json:"apiLevel"`
	State          string   `json:"state"`
	PolicyName     string   `json:"policyName"`
	Online         bool     `json:"online"`
	CommandOutcome string   `json:"commandOutcome"`
	LatencyMS      int      `json:"latencyMs"`
	Packages       []string `json:"packages"`
	Pending        int      `json:"pendingCommands"`
}

func (d *simulated) view() DeviceView {
	v := DeviceView{
		Name: d.name(), Ownership: d.Ownership, ManagementMode: d.Mode,
		Manufacturer: d.Hardware.Manufacturer, Brand: d.Hardware.Brand, Model: d.Hardware.Model, SerialNumber: d.Hardware.Serial,
		APILevel: d.APILevel, State: d.appliedState(), PolicyName: d.owner.name() + "/policies/" + d.PolicyID,
		Online: d.Online, CommandOutcome: d.Outcome, LatencyMS: d.LatencyMS, Packages: slices.Clone(d.Packages),
	}
	for _, op := range d.Operations {
		if !op.Done {
			v.Pending++
		}
	}
	return v
}

// Devices gives all simulated devices, in the order in which they enrolled.
func (e *Emulator) Devices() []DeviceView {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := slices.SortedFunc(maps.Values(e.world.byDevice), func(a, b *simulated) int { return int(a.Seq - b.Seq) })
	return slice.Map(all, (*simulated).view)
}

// Device gives one simulated device by its name or the last segment of it.
func (e *Emulator) Device(device string) (DeviceView, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	d, err := e.simulated(device)
	if err != nil {
		return DeviceView{}, err
	}
	return d.view(), nil
}

// simulated finds a device of any enterprise, also one that the platform has
// deleted and that does not know it yet.
func (e *Emulator) simulated(device string) (*simulated, error) {
	d := e.world.byDevice[device[strings.LastIndexByte(device, '/')+1:]]
	if d == nil {
		return nil, fail(404, "there is no device %s", device)
	}
	return d, nil
}

// SetBehavior changes how a device behaves. A device that comes online, or is
// no longer held, carries out at once what was queued for it; one that comes
// online also reports. It returns when the notifications of that were accepted;
// with notify false there are none.
func (e *Emulator) SetBehavior(ctx context.Context, device string, b Behavior, notify bool) (DeviceView, error) {
	if err := b.check(); err != nil {
		return DeviceView{}, err
	}
	var view DeviceView
	err := e.settled(ctx, notify, func(out *outbox) error {
		d, err := e.simulated(device)
		if err != nil {
			return err
		}
		wasOnline, acted := d.Online, d.acts()
		d.set(&b)
		if d.acts() && !acted {
			e.catchUp(d, !wasOnline, out)
		}
		view = d.view()
		return nil
	})
	return view, err
}

// catchUp makes a device do all that waits for it.
func (e *Emulator) catchUp(d *simulated, report bool, out *outbox) {
	if d.Deleted {
		e.finishDeletion(d, out)
		return
	}
	for _, op := range slices.Clone(d.Operations) {
		e.carryOut(d, op, out)
	}
	if !d.Deleted && (e.applyPolicy(d) || report) {
		e.report(d, out)
	}
}

// What a device's user, or the device by itself, can do.
const (
	ActionStatusReport   = "STATUS_REPORT"       // report now
	ActionRemoveProfile  = "REMOVE_WORK_PROFILE" // the user ends the management of a work profile
	ActionFactoryReset   = "FACTORY_RESET"       // the user resets the device
	ActionExitLostMode   = "EXIT_LOST_MODE"      // the user ends lost mode
	ActionReportLocation = "REPORT_LOCATION"     // a lost device reports where it is
)

// Act makes a device or its user do something. It returns when the notifications
// of that were accepted. With notify false there are none: that is how a work
// profile usually goes.
func (e *Emulator) Act(ctx context.Context, device, action string, notify bool) error {
	return e.settled(ctx, notify, func(out *outbox) error {
		d, err := e.simulated(device)
		if err != nil {
			return err
		}
		return e.act(d, action, out)
	})
}

func (e *Emulator) act(d *simulated, action string, out *outbox) error {
	if !d.lost() && (action == ActionExitLostMode || action == ActionReportLocation) {
		return failAs("FAILED_PRECONDITION", "the device is not in lost mode")
	}
	switch action {
	case ActionStatusReport:
		e.report(d, out)
	case ActionRemoveProfile, ActionFactoryReset:
		return e.userLeaves(d, action, out)
	case ActionExitLostMode:
		d.LostSince, d.LostModeExit = time.Time{}, e.now()
		e.notify(d.owner, "USAGE_LOGS", d.usageLog(e.now(), &am.UsageLogEvent{EventType: "STOP_LOST_MODE_USER_ATTEMPT",
			StopLostModeUserAttemptEvent: &am.StopLostModeUserAttemptEvent{Status: "ATTEMPT_SUCCEEDED"}}), out)
		e.report(d, out)
	case ActionReportLocation:
		e.notify(d.owner, "USAGE_LOGS", d.lostLocation(e.now()), out)
	default:
		return invalid("action must be %s, %s, %s, %s or %s", ActionStatusReport, ActionRemoveProfile, ActionFactoryReset,
			ActionExitLostMode, ActionReportLocation)
	}
	return nil
}

func (e *Emulator) userLeaves(d *simulated, action string, out *outbox) error {
	if action == ActionRemoveProfile && d.fullyManaged() {
		return failAs("FAILED_PRECONDITION", "the device is fully managed: it has no work profile")
	}
	if e.settings.Quirks.UserRemovalKeepsRecord {
		d.Online = false
		return nil
	}
	e.leave(d, out)
	return nil
}

// AddFault lets the next calls of a method meet a fault.
func (e *Emulator) AddFault(f Fault) error {
	err := f.check(e.knowsMethod)
	if err == nil {
		err = e.faults.add(f)
	}
	if err != nil {
		return invalid("%s", err)
	}
	return nil
}

// Faults gives the faults that wait for their calls.
func (e *Emulator) Faults() []Fault { return e.faults.list() }

// ClearFaults takes back all faults.
func (e *Emulator) ClearFaults() { e.faults.clear() }

// Calls gives the calls of the vendor's API from a number on, in order, at least
// the last 100,000; only those of a method unless it is empty.
func (e *Emulator) Calls(since int64, method string) []Call { return e.calls.since(since, method) }

// ClearCalls forgets the calls.
func (e *Emulator) ClearCalls() { e.calls.clear() }

// Settings gives the settings.
func (e *Emulator) Settings() Settings {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.settings
}

// SetSettings replaces the settings.
func (e *Emulator) SetSettings(s Settings) error {
	if err := s.check(); err != nil {
		return invalid("%s", err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if s.Notifications.Seed != e.settings.Notifications.Seed {
		e.seed(s.Notifications.Seed)
	}
	e.settings = s
	e.touch()
	return nil
}

// Reset puts everything back to the start: no enterprises, devices, messages,
// faults or calls, and the settings of the options.
func (e *Emulator) Reset() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.clear()
}
