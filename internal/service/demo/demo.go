// Package demo runs a whole Muster that needs no other program and no settings (muster demo). One process has an
// embedded database and the platform's emulator, a company with policies, and simulated devices that enroll, report and
// answer commands through the real protocols.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/provisioning"
	"github.com/musterhq/muster/internal/script"
	"github.com/musterhq/muster/internal/service"
	"github.com/musterhq/muster/internal/surface/cli"
)

// Settings are the choices of a demo's caller.
type Settings struct {
	Data   string // directory; made if it does not exist
	Listen string // host:port of the service; port 0: a free one
	// AcceptLostKeys is config.Service.AcceptLostKeys.
	AcceptLostKeys bool
	// History fills a new demo with a month of use before it starts, which takes some seconds. A demo that exists
	// already is left as it is.
	History bool
	// Ticker is service.Options.Ticker.
	Ticker func(interval time.Duration) (ticks <-chan time.Time, stop func())
	config.WebhookNetworks
}

// Demo is one running demo.
type Demo struct {
	settings Settings
	now      func() time.Time
	log      *slog.Logger
	out      io.Writer

	emulator *service.Emulator
	service  *service.Service
	agents   sync.WaitGroup                        // the simulated devices with our own agent
	use      func(context.Context, *Running) error // nil: introduce the demo and serve
	link     *link                                 // signs a person in to the portal once
	past     *past                                 // the clock of a Demo that makes the History; nil: now is the clock
}

// Run starts the demo, prints to out how to use it, and serves until ctx ends. Started again on the same directory, the
// demo continues where it stopped.
func Run(ctx context.Context, s Settings, now func() time.Time, log *slog.Logger, out io.Writer) error {
	return (&Demo{settings: s, now: now, log: log, out: out}).run(ctx)
}

func (d *Demo) run(ctx context.Context) error {
	if err := os.MkdirAll(d.settings.Data, 0o700); err != nil {
		return fmt.Errorf("cannot make the demo's directory: %w", err)
	}
	isNew, err := d.isNew()
	if err == nil && isNew && d.settings.History {
		err = d.livePast(ctx)
	}
	if err != nil || ctx.Err() != nil {
		return err
	}
	d.say("Opening the demo in %s …", d.settings.Data)
	d.emulator, err = service.NewEmulator(ctx, "127.0.0.1:0", filepath.Join(d.settings.Data, "emulator"),
		service.Options{Now: d.now, Logger: d.log})
	if err != nil {
		return err
	}
	return d.withEmulator(ctx)
}

// withEmulator runs the emulator until the service has ended, also if ctx ends before: the service needs it until then.
func (d *Demo) withEmulator(ctx context.Context) error {
	emulating, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var failed error
	var work sync.WaitGroup
	work.Go(func() { failed = d.emulator.Run(emulating) })
	err := d.withService(ctx)
	stop()
	work.Wait()
	return errors.Join(err, failed)
}

// withService opens the service, fills it while it runs, and waits for its end. Once it is filled, a demo with use or past
// has nothing more to do, and ends.
func (d *Demo) withService(ctx context.Context) error {
	var err error
	d.link = newLink(d.now)
	d.service, err = service.New(ctx, d.config(), service.Options{Now: d.now, Logger: d.log, SignInOnce: d.link.take,
		Ticker: d.settings.Ticker})
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(ctx)
	defer d.agents.Wait()
	defer stop()
	ended := make(chan error, 1)
	go func() {
		defer stop() // fill ends when the service does
		ended <- d.service.Run(serving)
	}()
	if err := script.Attempt(func() { d.fill(serving) }); err != nil && ctx.Err() == nil {
		stop()
		return errors.Join(err, <-ended)
	}
	if d.use != nil || d.past != nil {
		stop()
	}
	return <-ended
}

// databaseFile is the demo's database, in its directory.
const databaseFile = "muster.db"

func (d *Demo) config() config.Service {
	return config.Service{
		Store:    config.Store{Database: "sqlite:" + filepath.Join(d.settings.Data, databaseFile)},
		Platform: config.Platform{PlatformEndpoint: d.emulator.URL()},
		Listen:   d.settings.Listen, NameLoopback: true, AcceptLostKeys: d.settings.AcceptLostKeys,
		WebhookNetworks: d.settings.WebhookNetworks,
	}
}

func (d *Demo) say(format string, args ...any) { fmt.Fprintf(d.out, format+"\n", args...) }

// Running is a demo that is up, for a caller in the same process.
type Running struct {
	Service  *service.Service
	Emulator *service.Emulator
	Admin    *cli.Admin
	Company  company.Company
	Store    config.Store // the demo's database
	// User and Password sign in to the portal as an administrator.
	User, Password string
	Key            string // an API key with all permissions
}

// Use starts a demo in its directory, calls use with it, ends it, and returns the error of use or of the demo.
func Use(ctx context.Context, s Settings, now func() time.Time, log *slog.Logger, use func(context.Context, *Running) error) error {
	return (&Demo{settings: s, now: now, log: log, out: io.Discard, use: use}).run(ctx)
}

// Policies are the policies of the company, by name.
func (r *Running) Policies(ctx context.Context) ([]policy.Policy, error) {
	all, _, err := r.Admin.Policies.Store.Policies(ctx, policy.Query{CompanyID: r.Company.ID, Order: policy.ByName, Limit: 1000})
	return all, err
}

// Policy finds a policy of the company by its name. found is false, without an error, if there is none.
func (r *Running) Policy(ctx context.Context, name string) (p policy.Policy, found bool, err error) {
	all, err := r.Policies(ctx)
	at := slices.IndexFunc(all, func(p policy.Policy) bool { return p.Name == name })
	if at < 0 {
		return p, false, err
	}
	return all[at], true, err
}

// AgentToken makes a token with which a device with our own agent enrolls.
func (r *Running) AgentToken(ctx context.Context, p policy.Policy) (string, error) {
	code, err := r.Service.Agents().Issue(ctx, r.Company, p,
		provisioning.Wanted{Usage: provisioning.Unspecified, Lifetime: provisioning.Lifetime})
	if err != nil {
		return "", err
	}
	return protocol.TokenOf(string(code.Payload))
}

func (f *filler) running() *Running {
	return &Running{Service: f.service, Emulator: f.emulator, Admin: f.admin, Company: f.company, Store: f.config().Store,
		User: portalUser, Password: f.memory.Password, Key: f.memory.Key}
}
