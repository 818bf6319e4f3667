// Package servertest runs a whole service in one process for tests: a real
// database, SQLite or PostgreSQL, the real emulator of the platform on a real
// listener, and any number of replicas, assembled by package service exactly as
// `muster serve` assembles them (ADR 0002).
package servertest

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/database/dbtest"
	"github.com/musterhq/muster/internal/emulator"
	"github.com/musterhq/muster/internal/service"
	"github.com/musterhq/muster/internal/service/ops"
	"github.com/musterhq/muster/internal/surface/cli"
	"github.com/musterhq/muster/test/poll"
)

// Env is one database and one platform, on which replicas run.
type Env struct {
	TB       testing.TB
	Emulator *service.Emulator
	Database string // as MUSTER_DATABASE has it
	Dir      string // everything that the service writes to files
	Log      *Log   // of every replica and the emulator
	keyFile  string
	ahead    atomic.Int64 // how far the clock is ahead, in nanoseconds
	admin    func() (*cli.Admin, error)
	db       func() (*database.DB, error)
}

// need ends the test unless err is nil.
func need(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// New makes an environment on SQLite.
func New(tb testing.TB) *Env {
	tb.Helper()
	dir := tb.TempDir()
	return newEnv(tb, dir, dbtest.SQLite(tb, filepath.Join(dir, "muster.db")))
}

// NewPostgres makes an environment on a PostgreSQL database of its own.
func NewPostgres(tb testing.TB) *Env {
	tb.Helper()
	return newEnv(tb, tb.TempDir(), dbtest.Postgres(tb))
}

// OnEach runs a test on an environment of each engine, in parallel.
func OnEach(t *testing.T, test func(t *testing.T, env *Env)) {
	t.Helper()
	for name, make := range map[string]func(testing.TB) *Env{"sqlite": New, "postgres": NewPostgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, make(t))
		})
	}
}

func newEnv(tb testing.TB, dir, database string) *Env {
	tb.Helper()
	env := &Env{TB: tb, Database: database, Dir: dir, Log: &Log{}, keyFile: filepath.Join(dir, "muster.keys")}
	need(tb, ops.MakeKeyFile(env.keyFile, env.Now()))
	env.admin, env.db = sync.OnceValues(env.openAdmin), sync.OnceValues(env.openDB)
	var err error
	env.Emulator, err = service.NewEmulator(tb.Context(), "127.0.0.1:0", "", service.Options{Now: env.Now, Logger: env.logger("emulator")})
	need(tb, err)
	env.run("emulator", env.Emulator.Run)
	return env
}

// run runs a part until the test and all its other clean-ups are done.
func (e *Env) run(name string, part func(context.Context) error) (stop func() error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(e.TB.Context()))
	var failed error
	done := make(chan struct{})
	go func() {
		defer close(done)
		failed = part(ctx)
	}()
	stop = sync.OnceValue(func() error {
		cancel()
		<-done
		return failed
	})
	e.TB.Cleanup(func() {
		if err := stop(); err != nil {
			e.TB.Errorf("%s: %v", name, err)
		}
		if e.TB.Failed() && name == "emulator" { // the last of all: after the assertions
			e.TB.Log(e.Log.failure())
		}
	})
	return stop
}

// Now is the environment's clock, which every replica and the emulator share.
func (e *Env) Now() time.Time { return time.Now().Add(time.Duration(e.ahead.Load())) }

// Advance moves the clock on.
func (e *Env) Advance(by time.Duration) { e.ahead.Add(int64(by)) }

// Config is the configuration of a replica.
func (e *Env) Config() config.Service {
	return config.Service{
		Store: config.Store{Database: e.Database}, Platform: e.Platform(),
		Listen: "127.0.0.1:0", KeyFile: e.keyFile, LogLevel: "debug", TrustedProxies: []string{"127.0.0.0/8"},
		PrivateProviders: []string{"127.0.0.0/8"}, // oidctest's
	}
}

// Platform says where the environment's platform is.
func (e *Env) Platform() config.Platform {
	return config.Platform{PlatformEndpoint: e.Emulator.URL()}
}

// Replica is one running service.
type Replica struct {
	*service.Service
	env  *Env
	stop func() error
}

// Start starts a replica; change may alter its configuration and options.
func (e *Env) Start(change ...func(*config.Service, *service.Options)) *Replica {
	e.TB.Helper()
	settings, options := e.Config(), service.Options{Now: e.Now, Logger: e.logger("service"), Shared: true}
	for _, c := range change {
		c(&settings, &options)
	}
	s, err := service.New(e.TB.Context(), settings, options)
	if err != nil {
		e.TB.Fatalf("cannot start a service: %v", err)
	}
	return &Replica{Service: s, env: e, stop: e.run("service", s.Run)}
}

// Stop drains the replica and waits until it has ended.
func (r *Replica) Stop() {
	r.env.TB.Helper()
	if err := r.stop(); err != nil {
		r.env.TB.Fatalf("the service did not end well: %v", err)
	}
}

// Admin is the database opened for administration, as the command line does.
func (e *Env) Admin() *cli.Admin {
	e.TB.Helper()
	admin, err := e.admin()
	need(e.TB, err)
	return admin
}

func (e *Env) openAdmin() (*cli.Admin, error) {
	admin, err := service.OpenAdmin(e.Now, e.keyFile)(context.WithoutCancel(e.TB.Context()), config.Store{Database: e.Database},
		cli.Creates)
	if err == nil {
		e.TB.Cleanup(func() { _ = admin.Close() })
	}
	return admin, err
}

// DB is the database itself, for looks that administration has no use for.
func (e *Env) DB() *database.DB {
	e.TB.Helper()
	db, err := e.db()
	need(e.TB, err)
	return db
}

func (e *Env) openDB() (*database.DB, error) {
	db, err := database.Open(context.WithoutCancel(e.TB.Context()), database.Options{URL: e.Database, Now: e.Now})
	if err == nil {
		e.TB.Cleanup(func() { _ = db.Close() })
	}
	return db, err
}

// Fault lets the next call of a vendor method meet a fault.
func (e *Env) Fault(f emulator.Fault) {
	e.TB.Helper()
	need(e.TB, e.Emulator.AddFault(f))
}

// Calls counts the calls of a vendor method so far.
func (e *Env) Calls(method string) int { return len(e.Emulator.Calls(0, method)) }

// Eventually waits until check returns nil, and fails the test if it does not.
func (e *Env) Eventually(what string, check func() error) {
	e.TB.Helper()
	poll.Until(e.TB, what, check)
}

func (e *Env) logger(part string) *slog.Logger {
	return slog.New(slog.NewTextHandler(e.Log, &slog.HandlerOptions{Level: slog.LevelDebug})).With("part", part)
}
