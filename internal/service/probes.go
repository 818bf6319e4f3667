package service

import (
	"context"
	"errors"
	"net/http"

	"github.com/musterhq/muster/internal/surface/probe"
)

// probes adds what watches over the process.
func (s *Service) probes(mux *http.ServeMux) {
	mux.Handle("GET /healthz", probe.Live())
	mux.Handle("GET /readyz", probe.Ready(
		probe.Check{Name: "service", Test: s.notDraining},
		probe.Check{Name: "database", Test: s.databaseReachable},
		probe.Check{Name: "loops", Test: func(context.Context) error { return s.running.check() }},
	))
	if s.config.MetricsListen == "" {
		mux.Handle("GET /metrics", s.metrics.Handler())
	}
}

func (s *Service) metricsOnly() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s.metrics.Handler())
	return mux
}

func (s *Service) notDraining(context.Context) error {
	if s.draining.Load() {
		return errors.New("draining")
	}
	return nil
}

// databaseReachable says no more than that: a driver's error may hold an
// address or a user's name.
func (s *Service) databaseReachable(ctx context.Context) error {
	if err := s.db.Ping(ctx); err != nil {
		s.options.Logger.WarnContext(ctx, "the database does not answer", "error", err)
		return errors.New("does not answer")
	}
	return nil
}
