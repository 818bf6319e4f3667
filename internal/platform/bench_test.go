package platform_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/database/dbtest"
	"github.com/musterhq/muster/internal/emulator"
	"github.com/musterhq/muster/internal/enrollment"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/platform"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/provisioning"
	"github.com/musterhq/muster/internal/resource"
)

// pipes is a network inside the process: in a testing/synctest bubble, time
// stands still while it carries bytes.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-p.closed:
		return nil, errors.New("connection refused")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// bench is a platform with its emulator, a real store and the domain's own
// services, around one company.
type bench struct {
	*testing.T
	emulator *emulator.Emulator
	url      string // of the database
	network  *pipes
	db       *database.DB
	commands *command.Service
	platform *platform.Platform
	log      *logged
	company  company.Company
	policy   policy.Policy
	stop     context.CancelFunc // ends the platform's loops
	running  *sync.WaitGroup
}

// on runs a test in a bubble, on a bench whose company is not connected yet.
func on(t *testing.T, test func(b *bench)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{T: t, network: newPipes(), log: &logged{}, url: dbtest.SQLite(t, filepath.Join(t.TempDir(), "muster.db"))}
		b.startEmulator()
		b.db = b.open()
		b.start(nil)
		b.populate()
		test(b)
	})
}

// connected is on with a connected company and the loops running.
func connected(t *testing.T, test func(b *bench)) {
	t.Helper()
	on(t, func(b *bench) {
		b.connect()
		b.run()
		test(b)
	})
}

func (b *bench) ok(err error) {
	b.Helper()
	if err != nil {
		b.Fatalf("%v\n%s", err, b.log)
	}
}

func (b *bench) startEmulator() {
	var err error
	b.emulator, err = emulator.New(emulator.Options{Now: time.Now, PublicURL: "http://vendor.test", CheckAnswers: true})
	b.ok(err)
	server := &http.Server{Handler: b.emulator.Handler()}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { _ = server.Serve(b.network) })
	all.Go(func() { _ = b.emulator.Run(ctx) })
	b.Cleanup(func() {
		cancel()
		_ = server.Close()
		all.Wait()
	})
}

func (b *bench) open() *database.DB {
	b.Helper()
	db, err := database.Open(b.Context(), database.Options{URL: b.url, Now: time.Now})
	b.ok(err)
	b.Cleanup(func() {
		if err := db.Close(); err != nil {
			b.Error(err)
		}
	})
	return db
}

// start makes a platform and a command service, as a replica does at its start.
func (b *bench) start(change func(*platform.Config)) {
	b.Helper()
	b.commands = &command.Service{Store: b.db, Finder: b.db, Inventory: b.db, Now: time.Now, Log: b.log.logger()}
	b.platform = b.replica(b.db, b.commands, change)
	b.commands.Channels = map[asset.Management]command.Channel{asset.Platform: b.platform}
}

func (b *bench) replica(db *database.DB, commands *command.Service, change func(*platform.Config)) *platform.Platform {
	b.Helper()
	transport := &http.Transport{DialContext: b.network.dial}
	b.Cleanup(transport.CloseIdleConnections)
	cfg := platform.Config{
		Endpoint: "http://vendor.test", Now: time.Now, Logger: b.log.logger(), Transport: transport,
		Stores: platform.Stores{
			Companies: db, Policies: db, Signups: db, Leases: db, Quota: db, Records: db, Enterprises: db,
			Inventory: &enrollment.Service{Store: db, Companies: db.Companies, Now: time.Now}, Commands: commands,
		},
	}
	if change != nil {
		change(&cfg)
	}
	p, err := platform.New(cfg)
	b.ok(err)
	return p
}

func (b *bench) populate() {
	b.Helper()
	var err error
	b.company, err = company.New("acme", "Acme", access.Settings{DeviceCommands: true, DestructiveCommands: true}, time.Now())
	b.ok(err)
	b.ok(b.db.CreateCompany(b.Context(), b.company))
	b.policy = b.newPolicy("Warehouse",
		`{"cameraDisabled":false,"statusReportingSettings":{"hardwareStatusEnabled":true,"softwareInfoEnabled":true,"powerManagementEventsEnabled":true}}`)
}

// neighbor is the bench around a second company, connected, of the same platform
// and database.
func (b *bench) neighbor() *bench {
	b.Helper()
	other := *b
	var err error
	other.company, err = company.New("globex", "Globex", access.Settings{DeviceCommands: true, DestructiveCommands: true}, time.Now())
	b.ok(err)
	b.ok(b.db.CreateCompany(b.Context(), other.company))
	other.policy = other.newPolicy("Shop", `{}`)
	other.connect()
	return &other
}

func (b *bench) newPolicy(title, document string) policy.Policy {
	b.Helper()
	p := policy.Policy{ID: resource.NewID(), CompanyID: b.company.ID, CompanySlug: b.company.Slug, Name: title, Type: policy.Platform,
		Version: 1, Document: []byte(document), CreatedAt: time.Now(), UpdatedAt: time.Now()}
	b.ok(b.db.CreatePolicy(b.Context(), p, policy.Author{Kind: "USER", ID: "u1", Name: "Ada"}, ""))
	return p
}

// save saves the policy's next version.
func (b *bench) save(p policy.Policy, document string) policy.Policy {
	b.Helper()
	p, err := b.db.Policy(b.Context(), b.company.ID, p.ID)
	b.ok(err)
	next := p
	next.Document, next.UpdatedAt = []byte(document), time.Now()
	next, err = b.db.SavePolicy(b.Context(), next, p.Version,
		policy.Revision{SavedBy: policy.Author{Kind: "USER"}, Origin: policy.FromPortal})
	b.ok(err)
	return next
}

func (b *bench) saved(id string) policy.Policy {
	b.Helper()
	p, err := b.db.Policy(b.Context(), b.company.ID, id)
	b.ok(err)
	return p
}

func (b *bench) connect() {
	b.Helper()
	c, _, err := b.platform.Connect(b.Context(), b.company.ID)
	b.ok(err)
	b.company = c
	if !b.company.Connected() {
		b.Fatal("the company is not connected")
	}
}

// days is connected for tests that let much time pass: the loops look rarely,
// after commands once in asking.
func days(t *testing.T, asking time.Duration, test func(b *bench)) {
	t.Helper()
	on(t, func(b *bench) {
		settings := b.emulator.Settings()
		settings.PullWaitMS = 90_000
		b.ok(b.emulator.SetSettings(settings))
		b.start(func(c *platform.Config) {
			c.Schedule.Push, c.Schedule.Enterprises, c.Schedule.Commands = time.Hour, time.Hour, asking
		})
		b.connect()
		b.run()
		test(b)
	})
}

// run starts the platform's loops; they end with the test, or by halt.
func (b *bench) run() { b.Helper(); b.runOnly(b.platform.Run) }

// runOnly starts one loop.
func (b *bench) runOnly(loop func(context.Context) error) {
	b.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	b.stop, b.running = cancel, &sync.WaitGroup{}
	b.running.Go(func() {
		if err := loop(ctx); err != nil && !errors.Is(err, context.Canceled) {
			b.Error(err)
		}
	})
	b.Cleanup(b.halt)
	synctest.Wait() // until notifications are waited for
}

func (b *bench) halt() { b.stop(); b.running.Wait() }

// enroll makes a QR code and enrolls simulated devices with it.
func (b *bench) enroll(usage provisioning.PersonalUsage, e emulator.Enrollment) []string {
	b.Helper()
	token, err := b.platform.Issue(b.Context(), b.company, b.saved(b.policy.ID),
		provisioning.Wanted{Usage: usage, Lifetime: provisioning.Lifetime})
	b.ok(err)
	e.EnrollmentToken = string(token.Payload)
	names, err := b.emulator.Enroll(b.Context(), e)
	b.ok(err)
	return names
}

// device enrolls one fully managed device and returns its asset.
func (b *bench) device() asset.Asset {
	b.Helper()
	return b.asset(b.enroll(provisioning.Disallowed, emulator.Enrollment{})[0])
}

// asset is the asset of a device that was enrolled.
func (b *bench) asset(device string) asset.Asset {
	b.Helper()
	id, err := b.db.AssetOfDevice(b.Context(), b.company.ID, device)
	b.ok(err)
	a, err := b.db.Asset(b.Context(), b.company.ID, id)
	b.ok(err)
	return a
}

func (b *bench) again(a asset.Asset) asset.Asset {
	b.Helper()
	a, err := b.db.Asset(b.Context(), b.company.ID, a.ID)
	b.ok(err)
	return a
}

// send sends a command as the service does, without the checks before it.
func (b *bench) send(a asset.Asset, t command.Type, body any) command.Receipt {
	b.Helper()
	return b.platform.Send(b.Context(), b.order(a, t, body))
}

func (b *bench) order(a asset.Asset, t command.Type, body any) command.Order {
	b.Helper()
	o := order(t, body)
	o.Command.ID, o.Command.CompanyID, o.Command.AssetID, o.Command.Epoch = resource.NewID(), b.company.ID, a.ID, a.Device.Epoch
	o.AssetID, o.Device = a.ID, *a.Device
	return o
}

// command runs a command through the domain's service, checks included.
func (b *bench) command(a asset.Asset, t command.Type, body any) (command.Result, error) {
	b.Helper()
	caller := access.Principal{Kind: access.APIKey, ID: "k1", Prefix: "abc", CompanyID: b.company.ID, CompanySlug: b.company.Slug,
		Permissions: ^access.Permission(0)}
	return b.commands.Execute(b.Context(), operation.Call{Principal: caller}, command.Request{Type: t, AssetID: a.ID, Body: body})
}

// history is the asset's commands, newest first.
func (b *bench) history(a asset.Asset) []command.Command {
	b.Helper()
	all, _, err := b.db.History(b.Context(), b.company.ID, a.ID, operation.PageRequest{Size: 100})
	b.ok(err)
	return all
}

func (b *bench) fault(f emulator.Fault) { b.Helper(); b.ok(b.emulator.AddFault(f)) }

// calls counts what the emulator was asked.
func (b *bench) calls(method string) int { return len(b.emulator.Calls(0, method)) }

func (b *bench) equal(what string, got, want any) {
	b.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		b.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func (b *bench) says(what, text, part string) {
	b.Helper()
	if !strings.Contains(text, part) {
		b.Errorf("%s: %q does not say %q", what, text, part)
	}
}

// pass lets time pass; everything that is due in it happens.
func (b *bench) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
