// Package simulated is a model of an Android device: it refuses like Android,
// by SDK level, by what kind of agent runs on it, and by what the machine has.
// Its state is a file, so that it survives the agent's process as a device does.
package simulated

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/protocol"
)

// Form is how the agent runs on the device, which decides its powers.
type Form string

// The forms.
const (
	System Form = "system" // a daemon in the system image
	Owner  Form = "owner"  // a device-owner app
	Shell  Form = "shell"  // started over USB: lab use
)

// State is the whole device.
type State struct {
	Facts    protocol.Facts     `json:"facts"`
	Form     Form               `json:"form"`
	Boot     int                `json:"boot"`
	Settings map[string]string  `json:"settings"`
	Packages []string           `json:"packages"`
	Shown    []Notification     `json:"shown"`
	OpenApp  string             `json:"openApp"`
	Fix      *protocol.Location `json:"fix"` // its time is that of the report
	Battery  int                `json:"battery"`
	Off      bool               `json:"off"`
	Wiped    bool               `json:"wiped"`
	Released bool               `json:"released"`
	// Telephony and Headset say what the machine is.
	Telephony bool `json:"telephony"`
	Headset   bool `json:"headset"`
	// Platform is what Android itself keeps, for agents that drive the device by
	// Android's own command lines (package shelltest).
	Platform Platform `json:"platform"`
	// PushToken and PushSeen are what the push service knows of the device.
	PushToken string `json:"pushToken,omitempty"`
	// PushService is its address, once one was given.
	PushService string `json:"pushService,omitempty"`
	PushSeen    int64  `json:"pushSeen,omitempty"`
}

// Platform is the part of Android's state that its tools show and change.
type Platform struct {
	Restrictions map[string]bool   `json:"restrictions,omitempty"` // of user 0
	Global       map[string]string `json:"global,omitempty"`       // settings of the whole device
	Secure       map[string]string `json:"secure,omitempty"`       // settings of user 0
	Properties   map[string]string `json:"properties,omitempty"`   // that were set
	WifiOff      bool              `json:"wifiOff,omitempty"`
	LocationOff  bool              `json:"locationOff,omitempty"`
	// NoVerifier: no app checks packages before they are installed.
	NoVerifier bool `json:"noVerifier,omitempty"`
}

// Notification is a message on the screen.
type Notification struct {
	Tag   string `json:"tag"`
	Title string `json:"title"`
	Body  string `json:"body"`
}

// Device is a simulated device. It implements agent.Device.
type Device struct {
	mu    sync.Mutex
	path  string // empty: in memory alone
	state State
	now   func() time.Time
}

// Default is the device that muster-agent run --driver simulated starts with: com.example.app is
// installed, there is a location fix, and it restarts within a second.
func Default(serial string) State {
	return State{
		Facts: protocol.Facts{SerialNumber: serial, Manufacturer: "Simulated", Brand: "simulated", Model: "Sim 1",
			SDK: 34, OSVersion: "14"},
		Form: System, Boot: 1, Settings: map[string]string{}, Packages: []string{"com.example.app", "com.android.settings"},
		Fix: &protocol.Location{Latitude: 52.5163, Longitude: 13.3777, AccuracyMeters: 12}, Battery: 80, Telephony: true,
	}
}

// Installed reports whether the device has an app.
func (s *State) Installed(name string) bool { return slices.Contains(s.Packages, name) }

// Show puts a message on the screen. One of the same tag goes.
func (s *State) Show(message Notification) {
	s.Shown = slices.DeleteFunc(s.Shown, func(n Notification) bool { return n.Tag == message.Tag })
	s.Shown = append(s.Shown, message)
}

// Open brings an app to the front, if the device has it.
func (s *State) Open(name string) bool {
	if !s.Installed(name) {
		return false
	}
	s.OpenApp = name
	return true
}

// Restart restarts the device, or switches it off.
func (s *State) Restart(off bool) {
	s.Boot++
	s.Off = off
}

// Erase takes the device back to how it left the factory, and restarts it.
func (s *State) Erase() {
	fresh := Default(s.Facts.SerialNumber)
	fresh.Facts, fresh.Form, fresh.Boot, fresh.Wiped = s.Facts, s.Form, s.Boot, true
	fresh.Restart(false)
	*s = fresh
}

// New returns a device in memory.
func New(s State, now func() time.Time) *Device {
	if s.Settings == nil {
		s.Settings = map[string]string{}
	}
	return &Device{state: s, now: now}
}

// Open returns the device that a file keeps, or makes it with the given state.
func Open(dir string, fresh State, now func() time.Time) (*Device, error) {
	d := New(fresh, now)
	d.path = filepath.Join(dir, "device.json")
	data, err := os.ReadFile(d.path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		return d, d.save()
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &d.state); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", d.path, err)
	}
	if d.state.Off { // who runs the agent has switched the device on
		d.state.Off = false
		d.state.Boot++
	}
	return d, d.save()
}

func (d *Device) save() error {
	if d.path == "" {
		return nil
	}
	data, err := json.Marshal(d.state)
	if err != nil {
		return err
	}
	// Whole or not at all: the agent's process may be killed here.
	if err := os.WriteFile(d.path+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(d.path+".new", d.path)
}

// State returns a copy of the device's state.
func (d *Device) State() State {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.state
	s.Shown = slices.Clone(s.Shown)
	return s
}

// Facts implements agent.Device.
func (d *Device) Facts(context.Context) (protocol.Facts, error) { return d.State().Facts, nil }

// BootID implements agent.Device.
func (d *Device) BootID(context.Context) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return "boot-" + strconv.Itoa(d.state.Boot), nil
}

// Capabilities implements agent.Device.
func (d *Device) Capabilities(context.Context) ([]protocol.Capability, error) {
	all := []protocol.Capability{protocol.Reboot, protocol.Notify, protocol.Launch, protocol.SilentInstall}
	switch d.State().Form {
	case System:
		all = append(all, protocol.UserRestrictions, protocol.Wipe, protocol.Shutdown, protocol.FreshLocation, protocol.Persistence)
	case Owner:
		all = append(all, protocol.UserRestrictions, protocol.Wipe, protocol.OwnerAPI, protocol.FreshLocation, protocol.Persistence)
	case Shell:
		all = append(all, protocol.Shutdown)
	}
	return all, nil
}

// Do implements agent.Device.
func (d *Device) Do(_ context.Context, a agent.Action) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	outcome, err := d.act(a)
	if err != nil {
		return "", err
	}
	return outcome, d.save()
}

func (d *Device) act(a agent.Action) (string, error) {
	s := &d.state
	var args struct{ Title, Body, PackageName string }
	if err := a.Read(&args); err != nil {
		return "", err
	}
	switch a.Type {
	case agent.ShowMessage:
		s.Show(Notification{a.CommandID, args.Title, args.Body})
		return "shown", nil
	case agent.OpenApp:
		if !s.Open(args.PackageName) {
			return "", fmt.Errorf("NOT_INSTALLED: %s is not installed", args.PackageName)
		}
		return "opened", nil
	case agent.Restart:
		s.Restart(false)
		return "restarting", nil
	case agent.PowerOff:
		if s.Form == Owner {
			return "", agent.ErrUnsupported // Android offers a device owner no way to switch off
		}
		s.Restart(true)
		return "switching off", nil
	case agent.Erase:
		if s.Form == Shell {
			return "", agent.ErrUnsupported
		}
		s.Erase()
		return "erased", nil
	case agent.LetGo:
		s.Released = true
		return "released", nil
	}
	return "", agent.ErrUnsupported
}

// Live runs a device's agent until ctx ends; work waits for it. A device that is not
// enrolled enrolls at the server first, with the token that issue gives.
func Live(ctx context.Context, work *sync.WaitGroup, o agent.Options, server string, issue func() (string, error)) error {
	a, err := agent.New(o)
	if errors.Is(err, agent.ErrNotEnrolled) {
		a, err = enroll(ctx, o, server, issue)
	}
	if err != nil {
		return err
	}
	work.Go(func() {
		err := a.Run(ctx)
		if ctx.Err() == nil && !errors.Is(err, agent.ErrEnded) {
			o.Log.Error("a simulated agent ended", "dir", o.Dir, "error", err)
		}
		_ = a.Close() // every step is on the disk
	})
	return nil
}

func enroll(ctx context.Context, o agent.Options, server string, issue func() (string, error)) (*agent.Agent, error) {
	token, err := issue()
	if err != nil {
		return nil, err
	}
	if _, err := agent.Enroll(ctx, agent.Enrollment{Options: o, Server: server, Token: token, Role: protocol.Manager}); err != nil {
		return nil, err
	}
	return agent.New(o)
}
