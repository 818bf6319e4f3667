package agentserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agent/simulated"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/agentserver"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/database/dbtest"
	"github.com/musterhq/muster/internal/enrollment"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/provisioning"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/surface/agentapi"
	"github.com/musterhq/muster/test/poll"
)

// world is a service with the agents' door, and one company with a policy.
type world struct {
	t        testing.TB
	db       *database.DB
	company  company.Company
	policies policy.Service
	policy   policy.Policy
	commands *command.Service
	link     *agentserver.Server
	server   *httptest.Server
	call     operation.Call
	// lose makes the door lose answers: what was asked for happened.
	lose atomic.Pointer[func(*http.Request) bool]
	lost sync.RWMutex // held for reading while a request is handled whose answer is lost
	hub  *agentapi.Hub
	// written counts the commands that were written to streams.
	written atomic.Int32
	// later is how far the service's clock is ahead of the devices', in nanoseconds.
	later *atomic.Int64
}

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	return makeWorld(t)
}

func makeWorld(t testing.TB) *world {
	t.Helper()
	later := &atomic.Int64{}
	db, err := database.Open(t.Context(), database.Options{URL: dbtest.SQLite(t, filepath.Join(t.TempDir(), "m.db")),
		Now: func() time.Time { return time.Now().Add(time.Duration(later.Load())) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	log := slog.New(slog.DiscardHandler)
	w := &world{t: t, db: db, later: later, policies: policy.Service{Store: db, Now: time.Now}}
	w.company = company.Company{ID: resource.NewID(), Slug: "acme", Name: "Acme", InactiveAfter: time.Hour, CreatedAt: time.Now()}
	if err := db.CreateCompany(t.Context(), w.company); err != nil {
		t.Fatal(err)
	}
	w.policy = w.newPolicy("Kiosk", policy.Change{Setting: "CAMERA", Value: "BLOCK"},
		policy.Change{Setting: "REPORT_SOFTWARE_INFO", Value: "ENABLED"})
	w.commands = &command.Service{Store: db, Finder: db, Inventory: db, Logs: db, Channels: map[asset.Management]command.Channel{},
		Now: time.Now, Log: log}
	key, err := protocol.NewPrivateKey(protocol.Ed25519)
	if err != nil {
		t.Fatal(err)
	}
	es256, err := protocol.NewPrivateKey(protocol.ES256)
	if err != nil {
		t.Fatal(err)
	}
	w.link = &agentserver.Server{Store: db, Enroller: db, Deliveries: db, Logs: db, Companions: db, Directory: db,
		Observer: &enrollment.Service{Store: db, Companies: db.Companies, Now: time.Now},
		Commands: w.commands, Waker: db, Signer: agentserver.Signer{Key: key, ID: "k1"}, ES256: agentserver.Signer{Key: es256, ID: "e1"},
		Now: time.Now, Log: log}
	w.commands.Channels[asset.Agent] = w.link
	hub := agentapi.NewHub(time.Now, 1000)
	w.link.Streams, w.hub = hub, hub
	hub.Counted = func(outcome string) {
		if outcome == agentapi.Written {
			w.written.Add(1)
		}
	}
	t.Cleanup(db.Listen(agentdevice.WakeTopic, hub.Wake))
	t.Cleanup(db.Listen(agentdevice.EndTopic, hub.End))
	t.Cleanup(hub.Close)
	handler := (&agentapi.API{Service: w.link, Hub: hub, Log: log}).Handler()
	w.server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if lose := w.lose.Load(); lose != nil && w.loses(*lose, handler, r) {
			panic(http.ErrAbortHandler)
		}
		handler.ServeHTTP(rw, r)
	}))
	t.Cleanup(w.server.Close)
	w.link.PublicURL = w.server.URL
	w.call = operation.Call{Principal: access.Principal{Kind: access.APIKey, ID: "k", CompanyID: w.company.ID, CompanySlug: "acme",
		Permissions: access.All}}
	return w
}

// loses handles a request whose answer is lost, and reports whether it is.
func (w *world) loses(lose func(*http.Request) bool, handler http.Handler, r *http.Request) bool {
	w.lost.RLock()
	defer w.lost.RUnlock()
	if !lose(r) {
		return false
	}
	handler.ServeHTTP(httptest.NewRecorder(), r)
	return true
}

// sweep has the service look after its devices once, so much later.
func (w *world) sweep(later time.Duration) {
	w.t.Helper()
	w.link.Now = func() time.Time { return time.Now().Add(later) }
	defer func() { w.link.Now = time.Now }()
	if err := w.link.Sweep(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// pass has the service's clock be so much ahead from now on.
func (w *world) pass(later time.Duration) {
	w.later.Store(int64(later))
	w.link.Now = func() time.Time { return time.Now().Add(later) }
}

func (w *world) losing(lose func(*http.Request) bool) { w.lose.Store(&lose) }

func (w *world) newPolicy(called string, changes ...policy.Change) policy.Policy {
	w.t.Helper()
	p, err := w.policies.Create(w.t.Context(), policy.New{CompanyID: w.company.ID, CompanySlug: "acme", Name: called,
		Type: policy.Agent, Changes: changes},
		policy.Author{Kind: "SYSTEM", ID: "operator", Name: "operator"})
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

// token is read from the QR code's payload, as the device's wizard does.
func (w *world) token() string {
	w.t.Helper()
	issued, err := w.link.Issue(w.t.Context(), w.company, w.policy,
		provisioning.Wanted{Usage: provisioning.Unspecified, Lifetime: provisioning.Lifetime})
	if err != nil {
		w.t.Fatal(err)
	}
	var code struct {
		Extras map[string]string `json:"android.app.extra.PROVISIONING_ADMIN_EXTRAS_BUNDLE"`
	}
	if err := json.Unmarshal(issued.Payload, &code); err != nil {
		w.t.Fatal(err)
	}
	for key, value := range code.Extras {
		if strings.HasSuffix(key, "ENROLLMENT_TOKEN") {
			return value
		}
	}
	w.t.Fatal("no token in the code")
	return ""
}

// phone is one simulated device with its agent.
type phone struct {
	world   *world
	device  *simulated.Device
	agent   *agent.Agent
	options agent.Options
	assetID string
}

func (w *world) enroll(alg protocol.Algorithm) *phone {
	w.t.Helper()
	return w.enrollAs(alg, "SN-"+resource.NewID(), w.token())
}

// enrollAs enrolls a device that claims a serial number.
func (w *world) enrollAs(alg protocol.Algorithm, serial, token string) *phone {
	w.t.Helper()
	p := &phone{world: w, device: simulated.New(simulated.Default(serial), time.Now)}
	p.options = agent.Options{Dir: w.t.TempDir(), Version: "test", Device: p.device, Client: agent.NewClient(), Now: time.Now,
		Log: slog.New(slog.DiscardHandler)}
	got, err := agent.Enroll(w.t.Context(), agent.Enrollment{Server: w.server.URL, Token: token, Role: protocol.Manager, Algorithm: alg,
		Options: p.options})
	if err != nil {
		w.t.Fatal(err)
	}
	enrolled, err := w.db.AgentDevice(w.t.Context(), got.DeviceID)
	if err != nil {
		w.t.Fatal(err)
	}
	p.assetID = enrolled.AssetID
	p.start()
	return p
}

// device is the phone as the service knows it.
func (w *world) device(p *phone) agentdevice.Device {
	w.t.Helper()
	d, err := w.db.AgentDevice(w.t.Context(), p.agent.DeviceID())
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

// start starts the agent's process, again after a crash.
func (p *phone) start() {
	p.world.t.Helper()
	a, err := agent.New(p.options)
	if err != nil {
		p.world.t.Fatal(err)
	}
	p.agent = a
	p.world.t.Cleanup(func() { _ = a.Close() })
}

func (p *phone) checkIn() error {
	_, err := p.agent.Once(p.world.t.Context())
	return err
}

func (p *phone) mustCheckIn() {
	p.world.t.Helper()
	if err := p.checkIn(); err != nil {
		p.world.t.Fatal(err)
	}
}

func (p *phone) send(t command.Type, body any) command.Result {
	p.world.t.Helper()
	result, err := p.world.commands.Execute(p.world.t.Context(), p.world.call, command.Request{Type: t, AssetID: p.assetID, Body: body})
	if err != nil {
		p.world.t.Fatalf("%s: %v", t, err)
	}
	for sent := time.Now().UnixMilli(); time.Now().UnixMilli() == sent; { // the history is in the order of milliseconds
		runtime.Gosched()
	}
	return result
}

func (p *phone) asset() asset.Asset {
	p.world.t.Helper()
	a, err := p.world.db.Asset(p.world.t.Context(), p.world.company.ID, p.assetID)
	if err != nil {
		p.world.t.Fatal(err)
	}
	return a
}

// latest is the newest entry of the device's history.
func (p *phone) latest() command.Command {
	p.world.t.Helper()
	history, _, err := p.world.db.History(p.world.t.Context(), p.world.company.ID, p.assetID, operation.PageRequest{Size: 1})
	if err != nil || len(history) == 0 {
		p.world.t.Fatalf("history: %v, %v", history, err)
	}
	return history[0]
}

func TestEnroll_AppliesPolicyAndReports(t *testing.T) {
	w := newWorld(t)
	for _, alg := range []protocol.Algorithm{protocol.Ed25519, protocol.ES256} {
		p := w.enroll(alg)
		a := p.asset()
		if a.Status != asset.Synchronizing || a.Device == nil {
			t.Fatalf("%s: enrolled as %+v, device %+v", alg, a, a.Device)
		}
		if a.Device.Management != asset.Agent || a.Device.PolicyID != w.policy.ID || !a.Device.PushReachable {
			t.Fatalf("%s: enrolled with device %+v", alg, a.Device)
		}
		p.mustCheckIn()
		a = p.asset()
		if a.Status != asset.Active || a.Device.PolicyApplied != 1 || p.device.State().Settings["CAMERA"] != "BLOCK" {
			t.Errorf("%s: after check-in %s, version %d, device %v", alg, a.Status, a.Device.PolicyApplied, p.device.State().Settings)
		}
	}
}

func TestEnroll_TokenIsSpentOnce(t *testing.T) {
	w := newWorld(t)
	token := w.token()
	enroll := func(dir string) (string, error) {
		d := simulated.New(simulated.Default("SN-1"), time.Now)
		enrolled, err := agent.Enroll(t.Context(), agent.Enrollment{Server: w.server.URL, Token: token, Role: protocol.Manager,
			Options: agent.Options{Dir: dir, Device: d, Client: agent.NewClient(), Now: time.Now}})
		return enrolled.DeviceID, err
	}
	dir := t.TempDir()
	w.losing(func(*http.Request) bool { return true })
	if _, err := enroll(dir); err == nil {
		t.Fatal("the lost answer arrived")
	}
	w.lose.Store(nil)
	id, err := enroll(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, total, err := w.db.Assets(t.Context(), asset.Query{Filter: asset.Filter{CompanyID: w.company.ID},
		Page: operation.PageRequest{Size: 20}, Order: asset.BySyncedAt}); err != nil || total != 1 {
		t.Errorf("%d assets for one device %s, %v", total, id, err)
	}
	if _, err := enroll(t.TempDir()); err == nil {
		t.Error("another device enrolled with the spent token")
	}
}

func TestCommands_EveryOne(t *testing.T) {
	w := newWorld(t)
	p := w.enroll(protocol.Ed25519)
	p.mustCheckIn()
	other := w.newPolicy("Other", policy.Change{Setting: "SMS", Value: "BLOCK"})
	for _, test := range []struct {
		kind    command.Type
		body    any
		first   string // the status in the answer
		last    command.State
		reached func() bool
	}{
		{command.NotificationMessage, command.MessageBody{Title: "Hi", Body: "there; rm -rf /"}, "SUCCESS", command.Succeeded,
			func() bool { s := p.device.State().Shown; return len(s) == 1 && s[0].Body == "there; rm -rf /" }},
		{command.StatusReport, nil, "IN_PROGRESS", command.Succeeded, func() bool {
			var report map[string]any
			_ = json.Unmarshal(p.asset().Device.StatusReport, &report)
			return report["batteryLevel"] == 80.0 && report["reportedAt"] != nil && report["softwareInfo"] != nil &&
				report["networkInfo"] == nil
		}},
		{command.LocationUpdate, nil, "IN_PROGRESS", command.Succeeded,
			func() bool { l := p.asset().Device.Location; return l != nil && l.Latitude == 52.5163 }},
		{command.SyncPolicy, nil, "IN_PROGRESS", command.Succeeded, func() bool { return true }},
		{command.LaunchApp, command.LaunchAppBody{PackageName: "com.example.app"}, "IN_PROGRESS", command.Succeeded,
			func() bool { return p.device.State().OpenApp == "com.example.app" }},
		{command.LaunchApp, command.LaunchAppBody{PackageName: "com.example.absent"}, "IN_PROGRESS", command.Failed,
			func() bool { return true }},
		{command.Reboot, nil, "IN_PROGRESS", command.Succeeded, func() bool {
			return p.device.State().Boot == 2 && p.latest().Outcome == "the device has restarted"
		}},
		{command.Shutdown, nil, "IN_PROGRESS", command.Succeeded, func() bool {
			return p.device.State().Boot == 3 && p.latest().Outcome == "the device was switched off, and is on again"
		}},
		{command.ChangePolicy, command.PolicyRef(other.ID), "IN_PROGRESS", command.Succeeded, func() bool {
			s := p.device.State().Settings
			return s["SMS"] == "BLOCK" && s["CAMERA"] == "" && p.asset().Device.PolicyID == other.ID
		}},
	} {
		t.Run(test.first, func(t *testing.T) {
			result := p.send(test.kind, test.body)
			if result.Status != test.first || result.CreatedAt == nil {
				t.Errorf("%s answers %+v", test.kind, result)
			}
			p.mustCheckIn()
			p.mustCheckIn()
			if c := p.latest(); c.Type != test.kind || c.State != test.last || !test.reached() {
				t.Errorf("%s ended %s %q, device %+v", test.kind, c.State, c.Outcome, p.device.State())
			}
		})
	}
}

func TestWipeAndRelinquish_EndTheRelation(t *testing.T) {
	w := newWorld(t)
	for _, kind := range []command.Type{command.WipeCompanyData, command.RelinquishOwnership} {
		p := w.enroll(protocol.Ed25519)
		p.mustCheckIn()
		p.send(kind, nil)
		err := p.checkIn()
		if !errors.Is(err, agent.ErrEnded) {
			t.Fatalf("%s: the agent ended with %v", kind, err)
		}
		if kind == command.WipeCompanyData {
			if a := p.asset(); a.Status != asset.Active || p.latest().State != command.Sent {
				t.Errorf("%s: before the silence: asset %s, command %s", kind, a.Status, p.latest().State)
			}
			w.sweep(16 * time.Minute)
		}
		a := p.asset()
		state := p.device.State()
		if a.Status != asset.Deleted || a.Device != nil || p.latest().State != command.Succeeded {
			t.Errorf("%s: asset %s %v, command %s", kind, a.Status, a.Device, p.latest().State)
		}
		if kind == command.WipeCompanyData && !state.Wiped {
			t.Errorf("%s: the device is not erased: %+v", kind, state)
		}
		if kind == command.RelinquishOwnership && !(state.Released && len(state.Settings) == 0) {
			t.Errorf("%s: the device is not released: %+v", kind, state)
		}
		if _, err := agent.New(p.options); !errors.Is(err, agent.ErrNotEnrolled) {
			t.Errorf("%s: the identity is still there: %v", kind, err)
		}
	}
}

func TestExecute_MissingCapabilityIsRefused(t *testing.T) {
	w := newWorld(t)
	p := w.enroll(protocol.Ed25519)
	shell := simulated.Default("SN-shell")
	shell.Form = simulated.Shell
	p.options.Device = simulated.New(shell, time.Now)
	p.start()
	p.mustCheckIn()
	_, err := w.commands.Execute(t.Context(), w.call, command.Request{Type: command.WipeCompanyData, AssetID: p.assetID})
	if fault.CodeOf(err) != fault.Unsupported {
		t.Errorf("wipe of a device that cannot: %v", err)
	}
}

// counting is a device that counts what it did for each command.
type counting struct {
	*simulated.Device
	done map[string]int
}

// Do implements agent.Device.
func (d *counting) Do(ctx context.Context, a agent.Action) (string, error) {
	outcome, err := d.Device.Do(ctx, a)
	if err == nil {
		d.done[a.CommandID]++
	}
	return outcome, err
}

// A lost answer, at any request, changes nothing about the end: each command
// takes effect once.
func TestCheckIn_LostAnswersAndDoubleDeliveries(t *testing.T) {
	w := newWorld(t)
	p := w.enroll(protocol.Ed25519)
	device := &counting{p.device, map[string]int{}}
	p.options.Device = device
	p.start()
	p.mustCheckIn()
	for lost := 1; lost <= 4; lost++ {
		p.send(command.LaunchApp, command.LaunchAppBody{PackageName: "com.example.app"})
		var n atomic.Int32
		w.losing(func(r *http.Request) bool {
			return r.URL.Path != protocol.Base+"/wake" && int(n.Add(1)) == lost
		})
		_ = p.checkIn() // may fail: its answer is lost
		w.lose.Store(nil)
		expireLeases(t, w)
		for range 3 {
			p.mustCheckIn()
		}
		c := p.latest()
		if c.State != command.Succeeded || device.done[c.ID] != 1 {
			t.Errorf("lost answer %d: %s %q, executed %d times", lost, c.State, c.Outcome, device.done[c.ID])
		}
	}
}

func expireLeases(t *testing.T, w *world) {
	t.Helper()
	if err := w.db.ExpireDeliveryLeases(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// The agent is killed before each of its durable steps and started again: the
// end is the same.
func TestAgent_CrashAtEveryStep(t *testing.T) {
	w := newWorld(t)
	for _, step := range []string{"before confirm", "before received", "before started", "after started", "before done"} {
		p := w.enroll(protocol.Ed25519)
		p.mustCheckIn()
		p.send(command.NotificationMessage, command.MessageBody{Title: "a", Body: "b"})
		p.send(command.Reboot, nil)
		crashed := false
		p.options.Crash = func(at string) {
			if at == step && !crashed {
				crashed = true
				panic(errCrash)
			}
		}
		p.start()
		func() {
			defer func() {
				if r := recover(); r != nil && r != errCrash { //nolint:errorlint // a panic's value
					panic(r)
				}
			}()
			_ = p.checkIn()
		}()
		if !crashed {
			t.Fatalf("%s: never reached", step)
		}
		p.start()
		expireLeases(t, w)
		for range 4 {
			p.mustCheckIn()
		}
		if c := p.latest(); c.State != command.Succeeded || len(p.device.State().Shown) != 1 {
			t.Errorf("%s: reboot %s %q, shown %v", step, c.State, c.Outcome, p.device.State().Shown)
		}
	}
}

var errCrash = errors.New("crash")

func TestStream_WakesARunningAgent(t *testing.T) {
	w := newWorld(t)
	p := w.enroll(protocol.Ed25519)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.agent.Run(ctx) }()
	waitFor(t, "the first check-in", func() bool { return p.asset().Status == asset.Active })
	p.send(command.LaunchApp, command.LaunchAppBody{PackageName: "com.example.app"})
	waitFor(t, "the command", func() bool { return p.latest().State == command.Succeeded })
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("the agent ended with %v", err)
	}
}

func waitFor(t *testing.T, what string, ready func() bool) {
	t.Helper()
	poll.Until(t, what, func() error {
		if !ready() {
			return errors.New("not in time")
		}
		return nil
	})
}

// capture is a request as it went over the wire.
type capture struct {
	request *http.Request
	body    []byte
}

func (p *phone) capture() capture {
	p.world.t.Helper()
	var got capture
	base := p.options.Client.Transport
	client := *p.options.Client
	client.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		if strings.HasSuffix(r.URL.Path, "/checkin") {
			got = capture{r.Clone(context.Background()), body}
		}
		return base.RoundTrip(r)
	})
	p.options.Client = &client
	p.start()
	p.mustCheckIn()
	return got
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestRequest_ReplayedTamperedOrForeignIsRefused(t *testing.T) {
	w := newWorld(t)
	p, other := w.enroll(protocol.Ed25519), w.enroll(protocol.Ed25519)
	got := p.capture()
	for what, test := range map[string]struct {
		change func(*http.Request) string // returns the body
		status int
	}{
		"replayed":     {func(*http.Request) string { return string(got.body) }, http.StatusConflict},
		"another body": {func(*http.Request) string { return string(got.body) + " " }, http.StatusUnauthorized},
		"another device": {func(r *http.Request) string {
			r.Header.Set(protocol.HeaderDevice, other.agent.DeviceID())
			return string(got.body)
		}, http.StatusUnauthorized},
		"no device": {func(r *http.Request) string {
			r.Header.Set(protocol.HeaderDevice, "missing")
			return string(got.body)
		}, http.StatusUnauthorized},
		"another number": {func(r *http.Request) string {
			r.Header.Set(protocol.HeaderSequence, "99999999")
			return string(got.body)
		}, http.StatusUnauthorized},
		"another time": {func(r *http.Request) string { r.Header.Set(protocol.HeaderTime, "1"); return string(got.body) },
			http.StatusUnauthorized},
		"another path": {func(r *http.Request) string { r.URL.Path = protocol.Base + "/unenroll"; return string(got.body) },
			http.StatusUnauthorized},
		"no signature": {func(r *http.Request) string { r.Header.Del(protocol.HeaderSignature); return string(got.body) },
			http.StatusUnauthorized},
	} {
		t.Run(what, func(t *testing.T) {
			r := got.request.Clone(t.Context())
			body := test.change(r)
			r.Body, r.ContentLength, r.RequestURI = io.NopCloser(strings.NewReader(body)), int64(len(body)), ""
			response, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if response.StatusCode != test.status {
				t.Errorf("%s: %d, want %d", what, response.StatusCode, test.status)
			}
		})
	}
	if a := p.asset(); !a.Status.Enrolled() {
		t.Errorf("a refused request ended the device: %s", a.Status)
	}
}

func TestClock_SkewIsCorrected(t *testing.T) {
	w := newWorld(t)
	p := w.enroll(protocol.Ed25519)
	off := -40 * 24 * time.Hour
	p.options.Now = func() time.Time { return time.Now().Add(off) }
	p.start()
	p.mustCheckIn()
	off = 3 * time.Hour
	p.mustCheckIn()
	if a := p.asset(); a.Status != asset.Active {
		t.Errorf("status %s", a.Status)
	}
}

// Only the service ends an enrollment, whatever the answer says.
func TestTombstone_MustBeSigned(t *testing.T) {
	w := newWorld(t)
	p := w.enroll(protocol.Ed25519)
	p.mustCheckIn()
	stranger, _ := protocol.NewPrivateKey(protocol.Ed25519)
	forged, _ := protocol.Seal(stranger, "k1", protocol.KindTombstone,
		protocol.Tombstone{DeviceID: p.agent.DeviceID(), Action: protocol.Unenroll})
	for _, status := range []int{401, 404, 410, 403, 500, 302, 200} {
		evil := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Location", "http://127.0.0.1:1/")
			rw.WriteHeader(status)
			_ = json.NewEncoder(rw).Encode(protocol.Refusal{Code: protocol.Ended, Signed: &forged})
		}))
		client := *agent.NewClient()
		client.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
			r.URL.Host = strings.TrimPrefix(evil.URL, "http://")
			return http.DefaultTransport.RoundTrip(r)
		})
		p.options.Client = &client
		p.start()
		err := p.checkIn()
		evil.Close()
		if errors.Is(err, agent.ErrEnded) || p.device.State().Settings["CAMERA"] != "BLOCK" {
			t.Errorf("status %d freed the device: %v", status, err)
		}
	}
	p.options.Client = agent.NewClient()
	p.start()
	d, err := w.db.AgentDevice(t.Context(), p.agent.DeviceID())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.link.Unenroll(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if err := p.checkIn(); !errors.Is(err, agent.ErrEnded) || p.device.State().Settings["CAMERA"] != "" {
		t.Errorf("the service's tombstone: %v, %v", err, p.device.State().Settings)
	}
}

func TestPolicy_CutOffIsTakenBack(t *testing.T) {
	w := newWorld(t)
	p := w.enroll(protocol.Ed25519)
	p.mustCheckIn()
	cutting := w.newPolicy("Cutting", policy.Change{Setting: "WIFI_STATE", Value: "DISABLED"})
	p.send(command.ChangePolicy, command.PolicyRef(cutting.ID))

	now, off := time.Now(), false
	p.options.Now = func() time.Time { return now }
	client := *agent.NewClient()
	base := client.Transport
	client.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
		if off = p.device.State().Settings["WIFI_STATE"] == "DISABLED"; off {
			return nil, errors.New("no network")
		}
		return base.RoundTrip(r)
	})
	p.options.Client = &client
	p.start()
	if err := p.checkIn(); err == nil || !off {
		t.Fatalf("the policy did not cut the device off: %v", err)
	}
	now = now.Add(4 * time.Minute)
	if err := p.checkIn(); err == nil || p.device.State().Settings["WIFI_STATE"] != "DISABLED" {
		t.Fatalf("taken back too early: %v", err)
	}
	now = now.Add(2 * time.Minute)
	if err := p.checkIn(); err != nil || p.device.State().Settings["WIFI_STATE"] != "" {
		t.Errorf("after five minutes: %v, %v", err, p.device.State().Settings)
	}
}
