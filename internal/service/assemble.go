package service

import (
	"context"
	"net/http"
	"time"

	"github.com/musterhq/muster/internal/apikey"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/budget"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/enrollment"
	"github.com/musterhq/muster/internal/explain"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/passkey"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/proposal"
	"github.com/musterhq/muster/internal/provisioning"
	"github.com/musterhq/muster/internal/surface/edge"
	"github.com/musterhq/muster/internal/surface/rest"
	"github.com/musterhq/muster/internal/surface/status"
)

// assemble wires the domain to its store, its channels and its surfaces.
func (s *Service) assemble(ctx context.Context) error {
	if err := s.warnOfNames(ctx); err != nil {
		return err
	}
	if _, embedded := s.config.SQLitePath(); embedded {
		// Alone with its database: claims that a former process held are stale.
		if err := s.db.EndClaimLeases(ctx); err != nil {
			return err
		}
		// And what was offered to devices, they may not have received.
		if err := s.db.ExpireDeliveryLeases(ctx); err != nil {
			return err
		}
		// Commands that a former process was sending are not being sent either.
		if err := s.commands().Abandon(ctx); err != nil {
			return err
		}
		// Nor applies the proposals that are EXECUTING: the keeper may look now.
		if err := s.db.EndTurns(ctx); err != nil {
			return err
		}
	}
	s.records = s.newRecords()
	commands := s.commands()
	enrolments := &enrollment.Service{Store: s.db, Companies: s.db, Now: s.options.Now}
	var err error
	if s.platform, err = s.newPlatform(commands, enrolments); err != nil {
		return err
	}
	commands.Channels[asset.Platform] = s.platform
	if commands.Push, err = s.push(); err != nil {
		return err
	}
	s.companions = commands.Push != nil
	mux := http.NewServeMux()
	link, err := s.agents(mux, commands, enrolments)
	if err != nil {
		return err
	}
	registry, err := s.operations(commands, link)
	if err != nil {
		return err
	}
	allowances := budget.Limiter{Store: s.db, Now: s.db.Now}
	kernel := operation.NewKernel(operation.Config{
		Limiter: allowances, Apart: allowances,
		ReadsPerMinute: s.config.ReadsPerMinute, Observer: kernelMetrics{s.metrics},
		Log: s.options.Logger, Now: s.options.Now,
	})
	explain.Define(registry, &explain.Service{Registry: registry, Kernel: kernel, Limits: s.db, Status: status.Of})
	s.metrics.Operations(registry.All())
	keys := apikey.Authenticator{Keys: s.db, Now: s.options.Now}
	api := rest.New(rest.Config{
		Registry: registry, Kernel: kernel, Authenticator: keys, PublicURL: s.public, Claims: s.db, Sealer: s.keys,
		Observer: restMetrics{s.metrics}, Log: s.options.Logger, Now: s.options.Now,
	})
	s.probes(mux)
	if err := s.assistants(mux, registry, kernel, keys); err != nil {
		return err
	}
	s.registry = registry
	proxies, err := s.config.Proxies()
	if err != nil {
		return err
	}
	s.handler = edge.Harden(clientAddress{proxies}.withOrigin(api.Wrap(mux)), s.public, s.options.Logger)
	s.loops = append(s.loops,
		s.every("presence", database.PresentEvery, s.present),
		s.every("command sweeper", sweepInterval, commands.Sweep),
		s.every("stopped commands", sweepInterval, commands.CancelStopped),
		s.every("loosened controls", sweepInterval, s.db.ApplyLoosenings),
		s.every("database sweeper", expiryInterval, s.db.Sweep),
		s.every("inactivity", inactivityInterval, func(ctx context.Context) error {
			_, err := enrolments.SweepInactive(ctx)
			return err
		}),
		s.every("activity chain", sealInterval, s.records.Seal),
		s.every("activity heads", inspectInterval, s.records.Inspect),
		s.every("activity head log", noteInterval, s.records.Note),
		s.every("activity retention", forgetInterval, s.records.Forget),
		Loop{Name: "platform", Run: s.platform.Run},
	)
	return nil
}

// operations declares everything that the service offers.
func (s *Service) operations(commands *command.Service, agents provisioning.Issuer) (*operation.Registry, error) {
	policies, err := policyService(s.db, s.options.Now)
	if err != nil {
		return nil, err
	}
	registry := &operation.Registry{}
	asset.Define(registry, s.db)
	policy.DefineList(registry, s.db)
	command.Define(registry, commands)
	policy.Define(registry, s.db)
	proposals := &proposal.Service{
		Store: s.db, Policies: s.db, Companies: s.db, Checker: policies.Checker, Publisher: s.platform,
		PublicURL: s.public, Log: s.options.Logger, Crash: s.options.Crash,
	}
	if ceremonies, err := passkey.New(s.public); err == nil {
		proposals.Keys = ceremonies
	}
	proposal.Define(registry, proposals)
	s.editor = policy.Editor{Service: policies}
	s.reviewer = proposal.Reviewer{Service: proposals, Store: s.db}
	keeper := &proposal.Reconciler{Store: s.db, Policies: s.db, Companies: s.db, Publisher: s.platform, Log: s.options.Logger}
	s.loops = append(s.loops, s.every("proposal keeper", reconcileInterval, keeper.Settle),
		s.every("policy figures", figuresInterval, func(ctx context.Context) error {
			waiting, failing, err := s.db.PoliciesBehind(ctx)
			if err == nil {
				s.metrics.PoliciesBehind(waiting, failing)
			}
			return err
		}))
	provisioning.Define(registry, &provisioning.Service{
		Catalogue: s.db, Records: s.db, PublicURL: s.public, Now: s.options.Now,
		Issuers: map[policy.Type]provisioning.Issuer{policy.Platform: s.platform, policy.Agent: agents},
	})
	return registry, nil
}

func (s *Service) commands() *command.Service {
	return &command.Service{
		Store: s.db, Finder: s.db, Inventory: s.db, Cancels: s.db,
		Channels: map[asset.Management]command.Channel{},
		Now:      s.options.Now, Log: s.options.Logger, Observer: commandMetrics{s.metrics},
		Crash: s.options.Crash, Digest: s.keys.Digest, PublicURL: s.public,
	}
}

// How often background work looks.
const (
	sweepInterval      = 2 * time.Second
	reconcileInterval  = 2 * time.Second
	figuresInterval    = 15 * time.Second
	expiryInterval     = 5 * time.Minute
	inactivityInterval = time.Minute
	sealInterval       = 2 * time.Second
	inspectInterval    = time.Minute
	forgetInterval     = time.Hour
	noteInterval       = time.Hour
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
