package ops

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/musterhq/muster/internal/surface/probe"
)

// Probes is what watches over the process.
type Probes struct {
	Draining func() bool  // whether it takes no new requests
	Loops    func() error // the background loops that are down
	Database interface{ Ping(context.Context) error }
	Disk     func(context.Context) error // why the database's disk takes no writes
	Platform func(context.Context) error // what is wrong with enterprises
	Log      *slog.Logger
}

// Mount adds the addresses.
func (p Probes) Mount(mux *http.ServeMux) {
	mux.Handle("GET /healthz", probe.Live())
	mux.Handle("GET /readyz", probe.Ready(
		probe.Check{Name: "service", Test: p.notDraining},
		probe.Check{Name: "database", Test: p.databaseReachable},
		probe.Check{Name: "disk", Test: p.Disk},
		probe.Check{Name: "platform", Advice: true, Test: p.enterprises},
		probe.Check{Name: "loops", Test: func(context.Context) error { return p.Loops() }},
	))
}

func (p Probes) notDraining(context.Context) error {
	if p.Draining() {
		return errors.New("draining")
	}
	return nil
}

// enterprises says what is known; that the database does not answer is said already.
func (p Probes) enterprises(ctx context.Context) error {
	if p.Database.Ping(ctx) != nil {
		return nil
	}
	return p.Platform(ctx)
}

// databaseReachable says no more than that: a driver's error may hold an
// address or a user's name.
func (p Probes) databaseReachable(ctx context.Context) error {
	if err := p.Database.Ping(ctx); err != nil {
		p.Log.WarnContext(ctx, "the database does not answer", "error", err)
		return errors.New("does not answer")
	}
	return nil
}
