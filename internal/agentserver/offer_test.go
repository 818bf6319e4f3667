package agentserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agent/simulated"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
)

// listener is a phone whose agent runs and holds a stream.
type listener struct {
	*phone
	does counts
	// checkIns counts the requests. held, unless nil, is asked before
	// each check-in is sent.
	checkIns atomic.Int32
	held     atomic.Pointer[func()]
	stop     func()
	// hintsOnly: its stream takes no commands.
	hintsOnly bool
}

// counts is a device that counts what it does for each command, in a running agent.
type counts struct {
	*simulated.Device
	mu   sync.Mutex
	done map[string]int
}

func (d *counts) Do(ctx context.Context, a agent.Action) (string, error) {
	outcome, err := d.Device.Do(ctx, a)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil {
		d.done[a.CommandID]++
	}
	return outcome, err
}

func (d *counts) all() map[string]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.done)
}

// listens enrolls a phone and runs its agent until its stream is open. change may alter
// what goes over its network; then the stream takes no commands.
func (w *world) listens(change ...func(*http.Request)) *listener {
	w.t.Helper()
	p := &listener{phone: w.enroll(protocol.Ed25519), hintsOnly: len(change) > 0}
	p.does = counts{Device: p.device, done: map[string]int{}}
	p.options.Device = &p.does
	client, base := *agent.NewClient(), agent.NewClient().Transport
	client.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
		for _, c := range change {
			c(r)
		}
		if !strings.HasSuffix(r.URL.Path, "/checkin") {
			return base.RoundTrip(r)
		}
		if held := p.held.Load(); held != nil {
			(*held)()
		}
		p.checkIns.Add(1)
		return base.RoundTrip(r)
	})
	p.options.Client = &client
	p.start()
	p.run()
	return p
}

// run runs the agent until its stream is open and it rests.
func (p *listener) run() {
	w := p.world
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	done := make(chan error, 1)
	go func() { done <- p.agent.Run(ctx) }()
	p.stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	w.t.Cleanup(p.stop)
	waitFor(w.t.(*testing.T), "the stream", func() bool {
		return p.asset().Status == asset.Active && (w.takes(p.phone) || p.hintsOnly && w.hub.Count() > 0)
	})
}

func (p *listener) settles(want command.State) command.Command {
	p.world.t.Helper()
	waitFor(p.world.t.(*testing.T), "the end of the command",
		func() bool { return p.latest().State.Final() && p.world.device(p.phone).Open == 0 })
	c := p.latest()
	if c.State != want {
		p.world.t.Errorf("%s ended %s %q, want %s", c.Type, c.State, c.Outcome, want)
	}
	return c
}

// wrote waits until so many commands were counted, which follows their writing, and fails the
// test if there were more.
func (w *world) wrote(t *testing.T, n int32) {
	t.Helper()
	waitFor(t, fmt.Sprint(n, " commands written to streams"), func() bool { return w.written.Load() >= n })
	if got := w.written.Load(); got != n {
		t.Errorf("%d commands were written to streams, want %d", got, n)
	}
}

// A command for a device that listens is carried out before its next check-in, which
// acknowledges it.
func TestOffer_OneCheckIn(t *testing.T) {
	w := newWorld(t)
	p := w.listens()
	for _, test := range []struct {
		kind     command.Type
		body     any
		end      command.State
		checkIns int32 // at most
	}{
		{command.LaunchApp, command.LaunchAppBody{PackageName: "com.example.app"}, command.Succeeded, 1},
		{command.LaunchApp, command.LaunchAppBody{PackageName: "com.example.absent"}, command.Failed, 1},
		{command.NotificationMessage, command.MessageBody{Title: "a", Body: "b"}, command.Succeeded, 1},
		{command.StatusReport, nil, command.Succeeded, 1},
		{command.LocationUpdate, nil, command.Succeeded, 1},
		{command.Reboot, nil, command.Succeeded, 2},     // done once the device is up again
		{command.SyncPolicy, nil, command.Succeeded, 4}, // needs the service, and reports settings
	} {
		written, checkIns := w.written.Load(), p.checkIns.Load()
		p.send(test.kind, test.body)
		p.settles(test.end)
		w.wrote(t, written+1)
		if got := p.checkIns.Load() - checkIns; got < 1 || got > test.checkIns {
			t.Errorf("%s took %d check-ins", test.kind, got)
		}
	}
	for id, n := range p.does.all() {
		if n != 1 {
			t.Errorf("%s was carried out %d times", id, n)
		}
	}
}

// What ends the relation is fetched: the device asks before it obeys.
func TestOffer_EndingsAreFetched(t *testing.T) {
	w := newWorld(t)
	for _, kind := range []command.Type{command.WipeCompanyData, command.RelinquishOwnership} {
		p := w.listens()
		p.send(kind, nil)
		waitFor(t, "the end", func() bool { s := p.device.State(); return s.Wiped || s.Released })
		p.stop()
	}
	if n := w.written.Load(); n != 0 {
		t.Errorf("%d were written to the stream", n)
	}
}

// An agent of before asks for no commands, and a service of before sends none: hints do.
func TestOffer_OldAgentAndOldService(t *testing.T) {
	for name, older := range map[string]func(*world) *listener{
		"agent": func(w *world) *listener {
			return w.listens(func(r *http.Request) { r.Header.Del(protocol.HeaderWake) })
		},
		"service": func(w *world) *listener {
			w.link.Streams = nil
			return w.listens(func(*http.Request) {})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			p := older(w)
			p.send(command.LaunchApp, command.LaunchAppBody{PackageName: "com.example.app"})
			c := p.settles(command.Succeeded)
			if n := w.written.Load(); n != 0 || p.does.all()[c.ID] != 1 {
				t.Errorf("%d were written, it was carried out %d times", n, p.does.all()[c.ID])
			}
		})
	}
}

// The same command comes on the stream, and by the check-in that acknowledges it, and once
// more after it was confirmed.
func TestOffer_BothWays(t *testing.T) {
	w := newWorld(t)
	p := w.listens()
	hold := func() { expireLeases(t, w) } // as if it had taken so long
	p.held.Store(&hold)
	p.send(command.LaunchApp, command.LaunchAppBody{PackageName: "com.example.app"})
	c := p.settles(command.Succeeded)
	w.wrote(t, 1)
	if n := p.does.all()[c.ID]; n != 1 {
		t.Errorf("it was carried out %d times", n)
	}
	if w.device(p.phone).Open != 0 {
		t.Error("a delivery is left")
	}
}

// Neither a forged command nor one for another device does anything, and what follows on
// the stream is read.
func TestOffer_Forged(t *testing.T) {
	w := newWorld(t)
	var forge atomic.Bool
	p := w.enroll(protocol.Ed25519)
	other := w.enroll(protocol.Ed25519)
	evil, err := protocol.NewPrivateKey(protocol.Ed25519)
	if err != nil {
		t.Fatal(err)
	}
	order := func(device, id string) protocol.Command {
		return protocol.Command{DeviceID: device, ID: id, Type: "LAUNCH_APP", Args: []byte(`{"packageName":"com.example.app"}`)}
	}
	var events strings.Builder
	for _, forged := range []struct {
		key  protocol.PrivateKey
		id   string
		what protocol.Command
	}{
		{evil, "k1", order(p.agent.DeviceID(), "c1")},
		{evil, "k9", order(p.agent.DeviceID(), "c2")},
		{w.link.Signer.Key, "k1", order(other.agent.DeviceID(), "c3")},
	} {
		sealed, err := protocol.Seal(forged.key, forged.id, protocol.KindCommand, forged.what)
		if err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(sealed)
		if err != nil {
			t.Fatal(err)
		}
		events.WriteString("event: command\ndata: " + string(data) + "\n\n")
	}
	events.WriteString("event: command\ndata: {\n\nevent: news\ndata: w\n\n: " + strings.Repeat("padding ", 20_000) + "\n\n")
	client, base := *agent.NewClient(), agent.NewClient().Transport
	client.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
		response, err := base.RoundTrip(r)
		if err == nil && strings.HasSuffix(r.URL.Path, "/wake") && forge.CompareAndSwap(false, true) {
			response.Body = struct {
				io.Reader
				io.Closer
			}{io.MultiReader(strings.NewReader(events.String()), response.Body), response.Body}
		}
		return response, err
	})
	p.options.Client = &client
	p.start()
	l := &listener{phone: p}
	l.run()
	p.send(command.LaunchApp, command.LaunchAppBody{PackageName: "com.example.app"})
	l.settles(command.Succeeded)
	w.wrote(t, 1)
	l.stop()
	journal, err := agent.LoadJournal(p.options.Dir + "/journal")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"c1", "c2", "c3"} {
		if _, known := journal.Entry(id); known {
			t.Errorf("%s is in the journal", id)
		}
	}
}

// A device that fetched a command in time may say that it is done after the deadline.
func TestOffer_DoneAfterTheDeadline(t *testing.T) {
	w := newWorld(t)
	for _, kind := range []command.Type{command.Reboot, command.LocationUpdate} {
		w.pass(0)
		p := w.enroll(protocol.Ed25519)
		p.mustCheckIn()
		p.send(kind, nil)
		deadline := kind.Lifetime(asset.Agent)
		w.pass(deadline - 10*time.Second)
		p.mustCheckIn() // it has the command, and says nothing of it yet
		w.pass(deadline + time.Minute)
		ears := &deaf{}
		w.link.Waker = ears
		if err := w.link.Sweep(t.Context()); err != nil || len(ears.hints) > 0 {
			t.Fatalf("hints %q, %v: there is nothing to fetch", ears.hints, err)
		}
		p.mustCheckIn()
		if c := p.latest(); c.State != command.Succeeded || w.device(p).Open != 0 {
			t.Errorf("%s ended %s %q", kind, c.State, c.Outcome)
		}
		if at := p.asset().Device.Location; kind == command.LocationUpdate && at == nil {
			t.Error("the place was not kept")
		}
	}
}

// A command that is signed with a key which the device does not know yet waits for the
// check-in that announces the key.
func TestOffer_NewKey(t *testing.T) {
	w := newWorld(t)
	p := w.listens()
	w.follow("k2", true)
	p.send(command.LaunchApp, command.LaunchAppBody{PackageName: "com.example.app"})
	c := p.settles(command.Succeeded)
	w.wrote(t, 1)
	if n := p.does.all()[c.ID]; n != 1 {
		t.Errorf("it was carried out %d times", n)
	}
}

// What was written to a connection without a reader comes with a check-in, once
// the lease has ended.
func TestOffer_LostOnTheWay(t *testing.T) {
	w := newWorld(t)
	p := w.listens()
	p.stop() // the service does not know yet
	p.send(command.LaunchApp, command.LaunchAppBody{PackageName: "com.example.app"})
	p.start()
	p.mustCheckIn()
	p.mustCheckIn()
	if w.written.Load() == 1 && p.latest().State.Final() {
		t.Error("it was offered during its lease")
	}
	expireLeases(t, w)
	p.mustCheckIn()
	p.mustCheckIn()
	if c := p.latest(); c.State != command.Succeeded || p.does.all()[c.ID] != 1 {
		t.Errorf("it ended %s %q", c.State, c.Outcome)
	}
}

// The agent is killed before each of its durable steps, of a command that came on the
// stream, and started again.
func TestOffer_AgentCrashes(t *testing.T) {
	w := newWorld(t)
	for _, step := range []string{"before received", "before started", "after started", "before done", "before confirm"} {
		p := w.enroll(protocol.Ed25519)
		var armed, crashed atomic.Bool
		p.options.Crash = func(at string) {
			if at == step && armed.Load() && crashed.CompareAndSwap(false, true) {
				panic(errCrash)
			}
		}
		p.start()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			defer func() {
				if r := recover(); r != nil && r != errCrash { //nolint:errorlint // a panic's value
					panic(r)
				}
			}()
			defer cancel()
			_ = p.agent.Run(ctx)
		}()
		waitFor(t, "the stream", func() bool { return w.takes(p) })
		armed.Store(true)
		p.send(command.NotificationMessage, command.MessageBody{Title: "a", Body: "b"})
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			t.Fatalf("%s: never reached", step)
		}
		cancel()
		p.start()
		expireLeases(t, w)
		for range 3 {
			p.mustCheckIn()
		}
		if d := w.device(p); d.Open != 0 || len(p.device.State().Shown) != 1 {
			t.Errorf("%s: %d deliveries are left, shown %v", step, d.Open, p.device.State().Shown)
		}
	}
}

// takes reports whether the phone has a stream that takes commands.
func (w *world) takes(p *phone) bool {
	place := w.hub.Reserve(agentdevice.StreamCommand{DeviceID: p.agent.DeviceID()})
	if place == nil {
		return false
	}
	place.Leave()
	return true
}
