package service

import (
	"context"
	"net/http"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/budget"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/surface/rest"
)

// assemble wires the domain to its store, its channels and its surfaces.
func (s *Service) assemble(ctx context.Context) error {
	if _, embedded := s.config.SQLitePath(); embedded {
		// Alone with its database: whoever held an idempotent request is gone.
		if err := s.db.EndClaimLeases(ctx); err != nil {
			return err
		}
	}
	commands := s.commands()
	registry := &operation.Registry{}
	asset.Define(registry, s.db)
	policy.DefineList(registry, s.db)
	command.Define(registry, commands)

	kernel := operation.NewKernel(operation.Config{
		Limiter:        budget.Limiter{Store: s.db, Now: s.options.Now},
		ReadsPerMinute: s.config.ReadsPerMinute, Observer: kernelMetrics{s.metrics},
		Log: s.options.Logger, Now: s.options.Now,
	})
	keys := access.Authenticator{Keys: s.db, Now: s.options.Now}
	api := rest.New(rest.Config{
		Registry: registry, Kernel: kernel, Authenticator: keys, PublicURL: s.public, Claims: s.db, Sealer: s.keys,
		Observer: restMetrics{s.metrics}, Log: s.options.Logger, Now: s.options.Now,
	})
	mux := http.NewServeMux()
	s.probes(mux)
	if err := s.assistants(mux, registry, kernel, keys); err != nil {
		return err
	}
	s.registry = registry
	s.handler = api.Wrap(mux)
	s.loops = append(s.loops,
		s.every("command sweeper", sweepInterval, commands.Sweep),
		s.every("database sweeper", expiryInterval, s.db.Sweep),
		s.every("inactivity", inactivityInterval, s.markInactive),
	)
	return nil
}

func (s *Service) commands() *command.Service {
	return &command.Service{
		Store: s.db, Finder: s.db, Inventory: s.db,
		Channels: map[asset.Management]command.Channel{},
		Now:      s.options.Now, Log: s.options.Logger, Observer: commandMetrics{s.metrics},
		Crash: s.options.Crash,
	}
}

// How often background work looks.
const (
	sweepInterval      = 5 * time.Second
	expiryInterval     = 5 * time.Minute
	inactivityInterval = time.Minute
	inactivityBatch    = 1000
)

// every is a loop that works at once and then at intervals. A failure is
// logged and the next round tries again.
func (s *Service) every(name string, interval time.Duration, work func(context.Context) error) Loop {
	return Loop{Name: name, Run: func(ctx context.Context) error {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			if err := work(ctx); err != nil && ctx.Err() == nil {
				s.options.Logger.WarnContext(ctx, "background work failed and is tried again", "loop", name, "error", err)
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-ticker.C:
			}
		}
	}}
}

// markInactive turns devices INACTIVE that were silent for their company's
// inactivity period (decisions "Assets").
func (s *Service) markInactive(ctx context.Context) error {
	all, err := s.db.Companies(ctx)
	if err != nil {
		return err
	}
	for _, c := range all {
		for marked := inactivityBatch; marked == inactivityBatch; {
			marked, err = s.db.MarkInactive(ctx, c.ID, s.options.Now().Add(-c.InactiveAfter), inactivityBatch)
			if err != nil {
				return err
			}
		}
	}
	return nil
}
