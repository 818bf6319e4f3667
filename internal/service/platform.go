package service

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/emulator"
	"github.com/musterhq/muster/internal/event"
	"github.com/musterhq/muster/internal/outcome"
	"github.com/musterhq/muster/internal/platform"
	"github.com/musterhq/muster/internal/service/ops"
	"github.com/musterhq/muster/internal/surface/edge"
	"github.com/musterhq/muster/internal/surface/portal/settings"
)

// platformConfig is what service and command line have in common.
func platformConfig(p config.Platform, publicURL string, db *database.DB, now func() time.Time) platform.Config {
	c := ops.PlatformConfig(p, now)
	c.CallbackURL = publicURL + settings.CallbackPath
	c.Stores = platform.Stores{Companies: db, Enterprises: db, Policies: db, Signups: db, Leases: db, Quota: db}
	return c
}

// Emulator is the platform's emulator, listening.
type Emulator struct {
	*emulator.Emulator
	listener net.Listener
	options  Options
}

// NewEmulator opens the emulator on an address. Its state is kept in dataDir,
// or in memory only if that is empty.
func NewEmulator(ctx context.Context, address, dataDir string, o Options) (*Emulator, error) {
	if dataDir != "" {
		if err := os.MkdirAll(dataDir, 0o700); err != nil {
			return nil, err
		}
	}
	listener, err := listen(ctx, address, "--listen")
	if err != nil {
		return nil, err
	}
	inner, err := emulator.New(emulator.Options{Now: o.Now, Logger: o.Logger, DataDir: dataDir})
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return &Emulator{inner, listener, o}, nil
}

// URL is the address under which the emulator is reached.
func (e *Emulator) URL() string { return "http://" + e.listener.Addr().String() }

// Run serves, and lets the simulated devices live, until ctx ends; then it
// saves the state.
func (e *Emulator) Run(ctx context.Context) error {
	server := newServer(edge.Punctual(e.Handler(), e.options.Logger), e.options.Logger)
	server.WriteTimeout = 0 // a pull and an injected delay may take minutes
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var serving sync.WaitGroup
	var failed error
	serving.Go(func() {
		if err := server.Serve(e.listener); !errors.Is(err, http.ErrServerClosed) {
			failed = err
			cancel()
		}
	})
	err := e.Emulator.Run(ctx)
	err = errors.Join(err, shutdown([]*http.Server{server}, drainTimeout, e.options.Logger))
	serving.Wait()
	return errors.Join(failed, err, e.Save()) // with what the last calls changed
}

// outages watch the two services of the platform, each by its own calls: while one fails,
// the calls of the other succeed.
type outages struct{ management, notifications *event.Outage }

func newOutages(store event.OutageStore, now func() time.Time) outages {
	return outages{&event.Outage{Of: event.ManagementService, Store: store, Now: now},
		&event.Outage{Of: event.NotificationService, Store: store, Now: now}}
}

// Look tells an outage of either service that has lasted.
func (o outages) Look(ctx context.Context) error {
	return errors.Join(o.management.Look(ctx), o.notifications.Look(ctx))
}

// called notes how a call of the platform ended. What acknowledges notifications says
// nothing: it is called only after a pull that succeeded. A device or token that does not
// exist says nothing about the platform either, and what it refuses it has answered; a
// subscription that does not exist, or a pull that is refused, is an outage, for no
// notification comes.
func (o outages) called(method, class string) {
	if !strings.HasPrefix(method, "pubsub.") {
		switch outcome.Code(class) {
		case outcome.Missing:
		case outcome.Refused, outcome.Conflict:
			o.management.Called(true)
		default:
			o.management.Called(class == platform.Succeeded)
		}
		return
	}
	if !strings.HasSuffix(method, ".acknowledge") && !strings.HasSuffix(method, ".modifyAckDeadline") {
		o.notifications.Called(class == platform.Succeeded)
	}
}

// watched is what observes the calls of the platform.
type watched struct {
	platform.Observer
	outages outages
}

// VendorCall implements platform.Observer.
func (o watched) VendorCall(method, class string, took time.Duration) {
	o.Observer.VendorCall(method, class, took)
	o.outages.called(method, class)
}
