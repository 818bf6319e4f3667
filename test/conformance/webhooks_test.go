package conformance_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/event"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/service"
	"github.com/musterhq/muster/test/poll"
	"github.com/musterhq/muster/test/port"
)

var hookFaults = flag.Duration("hook-faults", 5*time.Second,
	"how long TestWebhooks_Faults has networks and processes fail; 4m for the long run")

// serveAs makes this program the service instead, with the configuration and the clock that it holds.
const serveAs = "MUSTER_TEST_SERVE"

// serving is the service that serveAs asks for.
type serving struct {
	Config config.Service
	Ahead  time.Duration // of its clock
}

func (s serving) run() error {
	ctx := context.Background()
	now := func() time.Time { return time.Now().Add(s.Ahead) }
	running, err := service.New(ctx, s.Config, service.Options{Now: now, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		return err
	}
	return running.Run(ctx)
}

// hookProof is a service in a process that can be killed, and receivers behind networks that fail.
type hookProof struct {
	*testing.T
	*servertest.Tenant
	url       string
	config    config.Service
	process   *exec.Cmd
	client    servertest.Client
	devices   []*servertest.AgentDevice
	receivers []*hookReceiver
	ahead     time.Duration
	kills     int
	killed    time.Time
	events    int // that happened
}

// Receivers in Go, Node and Python with the published libraries, behind networks that are cut,
// stalled and half open, and a service that is killed: no event is lost, those of an asset arrive in
// their order, and what comes again is the same. While the events of one asset fail, and a
// call for another is not answered, those of the others arrive.
func TestWebhooks_Faults(t *testing.T) {
	t.Parallel()
	needPrograms(t)
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		p := newHookProof(t, env)
		p.failingAsset()
		random := rand.New(rand.NewPCG(1, 2)) // a test's choice
		faults := 0
		for begun := time.Now(); time.Since(begun) < *hookFaults; faults++ {
			p.fail(random)
			p.silence()
		}
		p.restart(min(time.Minute, aheadMost-p.ahead))
		p.everythingArrived()
		t.Logf("%d faults, %d of them kills", faults, p.kills)
	})
}

func newHookProof(t *testing.T, env *servertest.Env) *hookProof {
	t.Helper()
	p := &hookProof{T: t, Tenant: env.NewAgentSite("acme"), config: env.Config()}
	first := env.Start()
	for range 6 {
		p.devices = append(p.devices, p.AgentDevice(first))
	}
	first.Stop()
	p.config.Listen, p.config.LogLevel = port.Address(t), "info"
	toLoopback(&p.config, nil)
	p.url = "http://" + p.config.Listen
	p.client = servertest.Client{TB: t, URL: p.url, Key: env.Key(p.Company, access.DevicesRead)}
	for _, d := range p.devices {
		d.ReachURL(p.url)
	}
	p.start()
	t.Cleanup(p.kill)
	for _, name := range []string{"go", "node", "python"} {
		h := &hookReceiver{name: name, failing: p.devices[0].AssetID, hanging: p.devices[1].AssetID,
			release: filepath.Join(t.TempDir(), "released")}
		var made struct{ Secret string }
		env.CLI(&made, "webhook", "create", "--company", "acme", "--url", h.behind(t), "--event", "device.silent",
			"--webhook-networks", loopback)
		h.secret = made.Secret
		h.start(t)
		p.receivers = append(p.receivers, h)
	}
	return p
}

// start starts the service on the same database and address.
func (p *hookProof) start() {
	p.Helper()
	self, err := os.Executable()
	if err != nil {
		p.Fatal(err)
	}
	as, err := json.Marshal(serving{p.config, p.ahead})
	if err != nil {
		p.Fatal(err)
	}
	p.process = exec.CommandContext(p.Context(), self)
	p.process.Env, p.process.Stderr = append(os.Environ(), serveAs+"="+string(as)), p.Env.Log
	if err := p.process.Start(); err != nil {
		p.Fatal(err)
	}
	p.Eventually("the service serves", func() error {
		_, err := p.client.Try("GET", "/events?limit=1", nil)
		return err
	})
}

func (p *hookProof) kill() {
	_ = p.process.Process.Kill()
	_ = p.process.Wait()
}

const (
	// aheadMost bounds how far the clock goes ahead: the libraries take no message that is five
	// minutes early.
	aheadMost = 280 * time.Second
	// claimTime is longer than a replica that was killed keeps others from sending.
	claimTime = 35 * time.Second
)

// restart kills the service and starts it with a clock that is ahead by more, so that what waits
// is due earlier.
func (p *hookProof) restart(by time.Duration) {
	p.Helper()
	p.kill()
	p.ahead += by
	p.Advance(by)
	p.start()
}

// silence has each device that reaches the service fall silent once more.
func (p *hookProof) silence() {
	p.Helper()
	for _, d := range p.devices {
		_ = d.CheckIn() // it may be that the service is not there
	}
	n, err := p.DB().MarkInactive(p.Context(), p.Company.ID, p.Now().Add(time.Minute), 100)
	if err != nil {
		p.Error(err)
	}
	p.events += n
}

// failingAsset: while the receivers answer the events of one asset with 500, and those of another
// not at all, those of the others arrive long before the first is tried again.
func (p *hookProof) failingAsset() {
	p.Helper()
	p.silence()
	for n := 1; n <= 4; n++ {
		begun := time.Now()
		for _, h := range p.receivers {
			p.Eventually(h.name+" got the events of the other assets", func() error {
				if got, _ := h.arrived(p.T); len(got) != n*(len(p.devices)-2) {
					return fmt.Errorf("it has %d", len(got))
				}
				return nil
			})
		}
		p.Logf("the events of the others arrived after %s", time.Since(begun).Round(time.Millisecond))
		if took := time.Since(begun); took > 5*time.Second {
			p.Errorf("it took %s", took)
		}
		if n < 4 {
			p.silence()
		}
	}
	for _, h := range p.receivers {
		if err := os.WriteFile(h.release, nil, 0o600); err != nil {
			p.Fatal(err)
		}
	}
}

// fail has one fault come and go.
func (p *hookProof) fail(random *rand.Rand) {
	p.Helper()
	lasts := time.Duration(100+random.IntN(900)) * time.Millisecond
	network := p.receivers[random.IntN(len(p.receivers))].network
	toxics := []string{
		`{"type": "timeout", "attributes": {"timeout": 0}}`,                       // half open: answers never arrive
		`{"type": "timeout", "stream": "upstream", "attributes": {"timeout": 0}}`, // stalled: requests never arrive
		`{"type": "limit_data", "attributes": {"bytes": 40}}`,                     // cut in the midst of an answer
		`{"type": "limit_data", "stream": "upstream", "attributes": {"bytes": 400}}`,
		`{"type": "reset_peer", "attributes": {"timeout": 0}}`,
	}
	kind, by := random.IntN(len(toxics)+2), min(claimTime, aheadMost-time.Minute-p.ahead)
	if kind == 0 && by < claimTime && time.Since(p.killed) < claimTime {
		kind = 1
	}
	switch kind {
	case 0:
		p.kills, p.killed = p.kills+1, time.Now()
		p.restart(by)
	case 1:
		network.Stop()
		p.silence()
		poll.Pause(lasts)
		if err := network.Start(); err != nil {
			p.Fatal(err)
		}
	default:
		toxic, err := network.Toxics.AddToxicJson(strings.NewReader(toxics[kind-2]))
		if err != nil {
			p.Fatal(err)
		}
		p.silence()
		poll.Pause(lasts)
		if err := network.Toxics.RemoveToxic(context.WithoutCancel(p.Context()), toxic.Name); err != nil {
			p.Fatal(err)
		}
	}
}

// everythingArrived: each receiver gets what the feed has, the events of an asset in their order.
func (p *hookProof) everythingArrived() {
	p.Helper()
	var events []event.View
	p.Eventually("the feed has the events", func() error {
		if events = p.feedEvents(); len(events) != p.events {
			return fmt.Errorf("it has %d of %d", len(events), p.events)
		}
		return nil
	})
	for _, h := range p.receivers {
		begun := time.Now()
		err := poll.For(7*time.Minute, func() error {
			if got, _ := h.arrived(p.T); len(got) < len(events) {
				return fmt.Errorf("%d of %d events arrived", len(got), len(events))
			}
			return nil
		})
		got, again := h.arrived(p.T)
		if err != nil {
			p.Errorf("%s: %v", h.name, err)
		}
		if want, received := byAsset(events), byAsset(got); fmt.Sprint(received) != fmt.Sprint(want) {
			p.Errorf("%s got by asset\n%v, want\n%v", h.name, received, want)
		}
		p.Logf("%s got %d events and %d repetitions, the last %s after the faults", h.name, len(got), again,
			time.Since(begun).Round(time.Millisecond))
	}
}

// byAsset are the ids of events by asset, in their order.
func byAsset(all []event.View) map[string][]string {
	ids := map[string][]string{}
	for _, e := range all {
		ids[e.Data.AssetID] = append(ids[e.Data.AssetID], e.ID)
	}
	return ids
}

// feedEvents are the events of the feed that the webhooks get.
func (p *hookProof) feedEvents() (all []event.View) {
	p.Helper()
	var page struct {
		Events []event.View
		Next   string
	}
	for after := ""; ; after = "&after=" + page.Next {
		page.Events = nil
		p.client.Get("/events?limit=1000"+after).Want(p.T, 200).JSON(p.T, &page)
		if len(page.Events) == 0 {
			return slices.DeleteFunc(all, func(e event.View) bool { return e.Type != event.DeviceSilent })
		}
		all = append(all, page.Events...)
	}
}
