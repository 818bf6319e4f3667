// Package usb provisions devices over USB, for policies whose devices read no QR
// code (contract 4.4: VR-only policies): it hands the text that a code would hold
// to the agent that is built into a device's system, or brings an agent along and
// starts it, for trying things out (docs/usb.md).
//
// A device counts as enrolled when the service says so, not when the device does.
// What devices say is cleaned before it is shown.
package usb

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/usb/adb"
)

// Enroller is the service's side of provisioning.
type Enroller interface {
	// Issue makes the text of a code with a new one-time token.
	Issue(ctx context.Context) (Bundle, error)
	// Enrolled returns the path name of the asset that the bundle's token enrolled,
	// or "" while there is none.
	Enrolled(ctx context.Context, b Bundle) (string, error)
	// Known returns the path name of the asset of an agent that the service
	// manages, or "" if it manages none with this id.
	Known(ctx context.Context, deviceID string) (string, error)
}

// Bundle is what a device needs to enroll, once. It prints without its text.
type Bundle struct{ Text []byte }

// String keeps the token out of logs.
func (Bundle) String() string { return "[bundle]" }

// GoString keeps the token out of %#v.
func (b Bundle) GoString() string { return b.String() }

// Tool provisions devices.
type Tool struct {
	ADB      adb.Client
	Enroller Enroller
	Programs Programs
	App      []byte        // the Android app for devices without an agent; empty: an agent is brought along
	Package  string        // the app's; empty: that of a release
	Serials  []string      // only these; none: every device
	Patience time.Duration // how long the service may take to say that a device is enrolled
	// Say is called when work on a device begins and when there is something new
	// of it, one call at a time; nil: not reported.
	Say func(Result)
	// Transcript takes down what is run on devices; nil: nothing does.
	Transcript *Transcript

	mu   sync.Mutex
	last map[string]Result
	busy map[string]*sync.Mutex // by serial number: a device is worked on once at a time
}

// Limits of the work.
const (
	atOnce     = 4 // devices
	deviceTime = 5 * time.Minute
	tidyTime   = 15 * time.Second
	// settleTime is how long a server that was just started looks for devices.
	settleTime = 3 * time.Second
)

// errStopped is why work ends early.
var errStopped = errors.New("muster usb was stopped")

// Once provisions every device that is connected.
func (t *Tool) Once(ctx context.Context) ([]Result, error) {
	devices, err := t.connected(ctx)
	if err != nil {
		return nil, err
	}
	var all sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for _, d := range devices {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			t.handle(ctx, d)
		})
	}
	all.Wait()
	for _, serial := range t.Serials {
		if !slices.ContainsFunc(devices, func(d adb.Device) bool { return d.Serial == serial }) {
			t.note(Result{Serial: serial, Outcome: Absent, Detail: "no device with this serial number is connected"})
		}
	}
	if len(devices) == 0 && len(t.Serials) == 0 {
		return nil, errors.New("no device is connected: plug one in and switch on USB debugging in its developer options (on a Samsung, " +
			"switch Auto Blocker off first)")
	}
	return t.results(), nil
}

// Watch provisions devices as they are plugged in, until ctx ends.
func (t *Tool) Watch(ctx context.Context) ([]Result, error) {
	if _, err := t.ADB.Start(ctx); err != nil {
		return nil, err
	}
	var all sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	known := map[string]adb.State{} // as last seen, while connected
	err := t.ADB.Track(ctx, func(devices []adb.Device) error {
		now := map[string]adb.State{}
		for _, d := range devices {
			if now[d.Serial] = d.State; !t.wanted(d) || known[d.Serial] == d.State {
				continue
			}
			all.Go(func() {
				select {
				case slots <- struct{}{}:
					t.handle(ctx, d)
					<-slots
				case <-ctx.Done():
				}
			})
		}
		known = now
		return nil
	})
	all.Wait()
	if ctx.Err() != nil {
		err = nil // that is how it ends
	}
	return t.results(), err
}

// connected lists the devices that are to be provisioned.
func (t *Tool) connected(ctx context.Context) ([]adb.Device, error) {
	started, err := t.ADB.Start(ctx)
	if err != nil {
		return nil, err
	}
	if started {
		ctx, cancel := context.WithTimeout(ctx, settleTime)
		defer cancel()
		found := errors.New("there are devices")
		err := t.ADB.Track(ctx, func(all []adb.Device) error {
			if slices.ContainsFunc(all, func(d adb.Device) bool { return d.State == adb.Online }) {
				return found
			}
			return nil
		})
		if err != nil && !errors.Is(err, found) && ctx.Err() == nil {
			return nil, err
		}
	}
	devices, err := t.ADB.Devices(ctx)
	return slices.DeleteFunc(devices, func(d adb.Device) bool { return !t.wanted(d) }), err
}

func (t *Tool) wanted(d adb.Device) bool {
	return len(t.Serials) == 0 || slices.Contains(t.Serials, d.Serial)
}

// handle does what there is to do with a device as the server lists it.
func (t *Tool) handle(ctx context.Context, d adb.Device) {
	if d.State != adb.Online {
		t.note(listed(d))
		return
	}
	defer t.hold(d.Serial)()
	ctx, cancel := context.WithTimeoutCause(ctx, deviceTime, fmt.Errorf("it took longer than %v", deviceTime))
	defer cancel()
	w := &work{Tool: t, ctx: ctx, result: Result{Serial: d.Serial}}
	if err := w.provision(); err != nil {
		w.result.Outcome, w.result.Detail = Failed, strings.Join(strings.Fields(err.Error()), " ")
		if errors.Is(err, context.Canceled) {
			w.result.Detail = errStopped.Error()
		}
	}
	t.note(w.result)
}

// hold waits until no one else works on a device: it may be plugged in again
// before the work on it has failed.
func (t *Tool) hold(serial string) (release func()) {
	t.mu.Lock()
	if t.busy == nil {
		t.busy = map[string]*sync.Mutex{}
	}
	if t.busy[serial] == nil {
		t.busy[serial] = &sync.Mutex{}
	}
	one := t.busy[serial]
	t.mu.Unlock()
	one.Lock()
	return one.Unlock
}

// note keeps what became of a device, and says it.
func (t *Tool) note(r Result) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last == nil {
		t.last = map[string]Result{}
	}
	// Unplugged or plugged in again, a device that was enrolled in this session
	// stays enrolled.
	if r.Outcome != Working && r.Outcome.rank() >= t.last[r.Serial].Outcome.rank() {
		t.last[r.Serial] = r
	}
	if t.Say != nil {
		t.Say(r)
	}
}

// results are the best of each device, by serial number.
func (t *Tool) results() []Result {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := slices.AppendSeq([]Result{}, maps.Values(t.last))
	slices.SortFunc(all, func(a, b Result) int { return strings.Compare(a.Serial, b.Serial) })
	return all
}
