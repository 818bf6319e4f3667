package command_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/database/dbtest"
	"github.com/musterhq/muster/internal/enrollment"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/outcome"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/test/spec"
)

// clock is a hand-set clock.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// channel is the far side: it counts what it is sent and answers as told.
type channel struct {
	command.Direct
	mu     sync.Mutex
	sent   map[string]int // by command id
	last   command.Order
	answer func(context.Context, command.Order) command.Receipt
}

func (c *channel) Send(ctx context.Context, o command.Order) command.Receipt {
	c.mu.Lock()
	c.sent[o.Command.ID]++
	c.last = o
	answer := c.answer
	c.mu.Unlock()
	return answer(ctx, o)
}

func (c *channel) sends() (total, most int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.sent {
		total += n
		most = max(most, n)
	}
	return total, most
}

// answers makes the channel answer everything with a receipt.
func (c *channel) answers(r command.Receipt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answer = func(context.Context, command.Order) command.Receipt { return r }
}

// counter is a command.Observer.
type counter struct {
	mu       sync.Mutex
	finished map[string]int
}

func (c *counter) CommandFinished(t command.Type, outcome string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.finished[string(t)+" "+outcome]++
}

// fixture is the service on a real database, with a channel that does as told.
type fixture struct {
	testing.TB
	clock    *clock
	file     string
	db       *database.DB
	company  company.Company
	policies map[string]policy.Policy // by name
	channel  *channel
	push     *channel
	counter  *counter
	log      *bytes.Buffer
	service  *command.Service
	devices  int
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	f := &fixture{TB: t, clock: &clock{now: time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)}, file: filepath.Join(t.TempDir(), "muster.db"),
		policies: map[string]policy.Policy{}, channel: &channel{sent: map[string]int{}}, push: &channel{sent: map[string]int{}},
		counter: &counter{finished: map[string]int{}}, log: &bytes.Buffer{}}
	db, err := database.Open(t.Context(), database.Options{URL: dbtest.SQLite(t, f.file), Now: f.clock.Now})
	f.ok(err)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	f.db = db
	f.company, err = company.New("acme", "Acme", access.Settings{DeviceCommands: true, DestructiveCommands: true}, f.clock.Now())
	f.ok(err)
	f.company.Enterprise = "enterprises/LC1"
	f.company.Settings.Controls.DestructiveLimit = access.DestructiveLimit{} // more devices are wiped here than a company may in an hour
	f.ok(db.CreateCompany(f.ctx(), f.company))
	for display, kind := range map[string]policy.Type{"Office": policy.Platform, "Field": policy.Platform, "Kiosk": policy.Agent,
		"Lobby": policy.Agent} {
		p := policy.Policy{ID: resource.NewID(), CompanyID: f.company.ID, CompanySlug: "acme", Name: display, Type: kind, Version: 1,
			Document: json.RawMessage(`{}`), CreatedAt: f.clock.Now(), UpdatedAt: f.clock.Now()}
		f.ok(db.CreatePolicy(f.ctx(), p, policy.Author{Kind: "SYSTEM", ID: "operator", Name: "operator"}, ""))
		f.policies[display] = p
	}
	f.channel.answers(command.Receipt{Code: outcome.Accepted})
	f.push.answers(command.Receipt{Code: outcome.Done})
	f.service = f.newService(db)
	return f
}

// newService is the service as a process that starts now would have it.
func (f *fixture) newService(s command.Store) *command.Service {
	return &command.Service{Store: s, Finder: f.db, Inventory: f.db, Now: f.clock.Now, Observer: f.counter,
		Log:      slog.New(slog.NewTextHandler(f.log, nil)),
		Channels: map[asset.Management]command.Channel{asset.Platform: f.channel, asset.Agent: f.channel},
		Push:     f.push}
}

// ctx outlives the test's own context, which ends before its cleanups.
func (f *fixture) ctx() context.Context { return context.WithoutCancel(f.Context()) }

func (f *fixture) ok(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// kind is a sort of device.
type kind struct {
	management asset.Management
	ownership  asset.Ownership
	mode       asset.Mode
	push       bool
}

var (
	fullyManaged = kind{asset.Platform, asset.CompanyOwned, asset.FullyManaged, true}
	companyWork  = kind{asset.Platform, asset.CompanyOwned, asset.WorkProfile, true}
	personalWork = kind{asset.Platform, asset.PersonallyOwned, asset.WorkProfile, true}
	agentManaged = kind{asset.Agent, asset.CompanyOwned, asset.FullyManaged, true}
)

func (k kind) String() string { return fmt.Sprintf("%s %s %s", k.management, k.ownership, k.mode) }

// enroll enrolls a new device and returns its asset.
func (f *fixture) enroll(k kind) asset.Asset {
	f.Helper()
	under := f.policies["Office"]
	if k.management == asset.Agent {
		under = f.policies["Kiosk"]
	}
	f.devices++
	now := f.clock.Now()
	change, err := f.db.Observe(f.ctx(), enrollment.Observation{CompanyID: f.company.ID, Device: fmt.Sprintf("devices/%d", f.devices),
		Management: k.management, Ownership: k.ownership, Mode: k.mode, Enrolling: true, EnrolledAt: now, ReportedAt: now, ObservedAt: now,
		PolicyID: under.ID, AppliedPolicy: under.ID, AppliedVersion: 1})
	f.ok(err)
	f.ok(f.db.SetPushReachable(f.ctx(), change.AssetID, change.Epoch, k.push))
	return f.asset(change.AssetID)
}

func (f *fixture) asset(id string) asset.Asset {
	f.Helper()
	a, err := f.db.Asset(f.ctx(), f.company.ID, id)
	f.ok(err)
	return a
}

// caller is an API key that may do everything.
func (f *fixture) caller() access.Principal {
	return access.Principal{Kind: access.APIKey, ID: "key-1", Prefix: "abcdefgh", Name: "ci", CompanyID: f.company.ID, CompanySlug: "acme",
		Permissions: access.All, Settings: f.company.Settings}
}

// body is a proper body of the type: what the operation makes of the example of the contract.
func (f *fixture) body(t command.Type) any {
	c := spec.CommandOf(string(t))
	if c.Example == "" {
		return nil
	}
	r := &operation.Registry{}
	command.Define(r, f.service)
	arguments := reflect.New(r.Find(c.Tool).Args())
	f.ok(json.Unmarshal([]byte(c.Example), arguments.Interface()))
	return arguments.Elem().Field(1).Interface() // after the asset
}

// run runs an operation through the kernel, as every surface does, with the
// arguments of one JSON object.
func (f *fixture) run(s *command.Service, o string, arguments map[string]any) (any, *fault.Error) {
	f.Helper()
	r := &operation.Registry{}
	command.Define(r, s)
	text, err := json.Marshal(arguments)
	f.ok(err)
	kernel := operation.NewKernel(operation.Config{Budgets: operation.Budgets{Uncounted: true}, Now: f.clock.Now})
	out := kernel.Run(f.ctx(), r.Find(o), f.caller(), operation.Meta{RequestID: "r1"}, operation.Flat(text))
	return out.Result, out.Fault
}

// execute sends a command with a proper body.
func (f *fixture) execute(a asset.Asset, t command.Type) (command.Result, error) {
	f.Helper()
	return f.executeAs(f.service, operation.Call{Principal: f.caller()}, a, t)
}

func (f *fixture) executeAs(s *command.Service, call operation.Call, a asset.Asset, t command.Type) (command.Result, error) {
	body := f.body(t)
	if t == command.ChangePolicy {
		to := f.policies["Field"]
		if a.Device != nil && a.Device.Management == asset.Agent {
			to = f.policies["Lobby"]
		}
		body = command.PolicyRef(to.PathName())
	}
	return s.Execute(f.ctx(), call, command.Request{Type: t, AssetID: a.PathName(), Body: body})
}

// history returns the asset's commands, newest first.
func (f *fixture) history(a asset.Asset) []command.Command {
	f.Helper()
	all, _, err := f.db.History(f.ctx(), f.company.ID, a.ID, operation.PageRequest{Size: 100})
	f.ok(err)
	return all
}

// latest returns the asset's newest command.
func (f *fixture) latest(a asset.Asset) command.Command {
	f.Helper()
	all := f.history(a)
	if len(all) == 0 {
		f.Fatal("the history is empty")
	}
	return all[0]
}
