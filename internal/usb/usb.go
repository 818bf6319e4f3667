// Package usb provisions devices over USB, for policies whose devices cannot read a QR code (contract 4.4: VR-only
// policies). It gives the text that a QR code would hold to the agent in the device's system. To a device without an agent
// it copies one and starts it, for tests (docs/usb.md).
//
// A device counts as enrolled when the service says so, not when the device does. Text from devices is cleaned before it
// is shown.
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

// Enroller is the part of provisioning that the service does. Each method fails as the database does,
// and Issue with what provisioning refuses.
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

// Bundle is the text with which one device enrolls, once. It holds a token, so its text form leaves it out.
type Bundle struct{ Text []byte }

// String keeps the token out of logs.
func (Bundle) String() string { return "[bundle]" }

// GoString keeps the token out of %#v.
func (b Bundle) GoString() string { return b.String() }

// Tool provisions devices. It keeps the results of all its calls.
type Tool struct {
	ADB      adb.Client
	Enroller Enroller
	Programs Programs
	App      []byte        // the Android app for devices without an agent; empty: the agent of Programs
	Package  string        // the package name of App; empty: that of a release
	Serials  []string      // only these; none: every device
	Patience time.Duration // how long the service may take to say that a device is enrolled
	// Say is called when the work on a device begins and at each new result, never concurrently; nil: not reported.
	Say func(Result)
	// Transcript records the commands that run on devices; nil: no record.
	Transcript *Transcript

	mu   sync.Mutex
	last map[string]Result      // by serial number: see note
	busy map[string]*sync.Mutex // by serial number: locked during the work on a device
}

// Limits of the work.
const (
	atOnce     = 4                // devices at the same time
	deviceTime = 5 * time.Minute  // for one device
	tidyTime   = 15 * time.Second // to clean up on a device, also after deviceTime
	// settleTime is how long to wait for the first device of an adb server that was just started.
	settleTime = 3 * time.Second
)

// errStopped is why work ends early.
var errStopped = errors.New("muster usb was stopped")

// Once provisions every device that is connected and wanted, and returns a result for each. The error says that
// the devices cannot be listed, or that none is connected; failures of single devices are in their results.
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

// Watch provisions devices as they are plugged in, until ctx ends, which is no error. It returns a result for each device.
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
		err = nil // the end of ctx is how Watch ends
	}
	return t.results(), err
}

// connected lists the devices that are connected and wanted. It starts the adb server if none runs.
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

// wanted reports whether the device is one of Serials, or Serials is empty.
func (t *Tool) wanted(d adb.Device) bool {
	return len(t.Serials) == 0 || slices.Contains(t.Serials, d.Serial)
}

// handle provisions a device that is online, and notes the result. For any other it notes what its state means.
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

// hold waits for the end of other work on the device, and keeps others out until release. A device may be plugged in again
// while the work from before still runs.
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

// note passes a result to Say. It keeps the result for the end, unless work goes on or a better result was kept.
func (t *Tool) note(r Result) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last == nil {
		t.last = map[string]Result{}
	}
	// A device that this Tool has enrolled counts as enrolled also after it was unplugged or plugged in again.
	if r.Outcome != Working && r.Outcome.rank() >= t.last[r.Serial].Outcome.rank() {
		t.last[r.Serial] = r
	}
	if t.Say != nil {
		t.Say(r)
	}
}

// results returns the result that note kept for each device, sorted by serial number.
func (t *Tool) results() []Result {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := slices.AppendSeq([]Result{}, maps.Values(t.last))
	slices.SortFunc(all, func(a, b Result) int { return strings.Compare(a.Serial, b.Serial) })
	return all
}
