package ops

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/musterhq/muster/internal/surface/edge"
)

// Probes answer programs that monitor the process: /healthz says that it lives, /readyz
// that it can serve (docs/operating.md).
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
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		edge.JSON(w, http.StatusOK, edge.NoStore, map[string]string{"status": "ok"})
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ready, answer := p.Ready(r.Context())
		status := http.StatusOK
		if !ready {
			status = http.StatusServiceUnavailable
		}
		edge.JSON(w, status, edge.NoStore, answer)
	})
}

func (p Probes) conditions() []condition {
	return []condition{
		{name: "service", test: p.notDraining},
		{name: "database", test: p.databaseReachable},
		{name: "disk", test: p.Disk},
		{name: "platform", advice: true, test: p.enterprises},
		{name: "loops", test: func(context.Context) error { return p.Loops() }},
	}
}

// condition is one of readiness. An error's text is shown to every client, so it must hold
// nothing secret.
type condition struct {
	name string
	test func(ctx context.Context) error
	// advice: what fails is said, and the process is ready all the same.
	advice bool
}

// readyLimit bounds one answer of Ready.
const readyLimit = 2 * time.Second

// Ready reports whether every condition holds that is no advice, and says of each "ok" or what
// is wrong. It takes at most readyLimit.
func (p Probes) Ready(ctx context.Context) (ready bool, answer map[string]string) {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	ready, answer = true, map[string]string{"status": "ready"}
	for _, c := range p.conditions() {
		answer[c.name] = "ok"
		if err := c.test(ctx); err != nil {
			answer[c.name] = err.Error()
			if !c.advice {
				ready, answer["status"] = false, "not ready"
			}
		}
	}
	return ready, answer
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

// MountProfiles adds the profiles of Go's runtime below /debug/pprof/, for the listener of the
// metrics alone: profiles contain parts of the memory's content, and each costs CPU time. The
// command line, which net/http/pprof would show as well, is left out, because its flags may hold
// secrets. A CPU profile or a trace takes at most as long as the server may write.
func MountProfiles(mux *http.ServeMux) {
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
}
