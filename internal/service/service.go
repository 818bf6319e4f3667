// Package service assembles one whole Muster from a configuration: database,
// domain, platform adapter, surfaces, background loops, health and metrics
// (ADR 0002). `muster serve` and the tests' servertest run exactly this.
package service

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/musterhq/muster/internal/agentserver"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/platform"
	"github.com/musterhq/muster/internal/service/ops"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// Options are what a configuration cannot say.
type Options struct {
	// Now is the clock. Required.
	Now func() time.Time
	// ServerClock corrects Now by the clock of a PostgreSQL server wherever
	// replicas must agree: budgets, leases, proposals.
	ServerClock bool
	// Ticker makes the intervals of background work, with what stops them; nil: time.NewTicker.
	// Tests in virtual time give their own.
	Ticker func(interval time.Duration) (ticks <-chan time.Time, stop func())
	// Logger is required.
	Logger *slog.Logger
	// Version is the version that the linker set; empty: that of the go command's stamp.
	Version string
	// Manager is told when the service serves and ends.
	Manager ops.Manager
	// Shared lets other services of this process use the same SQLite file. Tests of several
	// services set it; a service that does not refuses a file that another has open.
	Shared bool
	// Crash is called at each step of a command's life, so that tests can end
	// the process there (command.Service). Nil in production.
	Crash func(step string)
	// SignInOnce is web.SignIn's Once: the demo's link signs in with it. Nil in production.
	SignInOnce func(code string) (email string, ok bool)
	// Spent is told what each piece of work cost at the database (database.Options). Nil in
	// production.
	Spent func(ctx context.Context, c database.Cost)
	// CustomizeMCP adds to the MCP server; conformance tests mount their
	// fixtures with it. Nil in production.
	CustomizeMCP func(*sdk.Server)
}

// Service is one replica. New opens it, Run serves until its context ends;
// Close releases what New opened if Run is never called.
type Service struct {
	config   config.Service
	options  Options
	public   string
	db       *database.DB
	keys     *ops.Keys
	metrics  *ops.Metrics
	platform *platform.Platform
	link     *agentserver.Server
	registry *operation.Registry
	routes   []frame.Route
	handler  http.Handler
	shares   ops.Shares // of the files that the process may open
	running  loops
	loops    []Loop
	draining atomic.Bool

	requests        *ops.Gate
	listener        net.Listener // requests, over TLS if there are certificates
	metricsListener net.Listener // nil: on the main one
	closers         []func() error
	drains          []func()   // ends what would keep a request open for long
	ended           chan error // why this process may not go on
}

// New opens everything that a service needs. It fails before the first request
// rather than at it: a wrong setting, a taken address, a database out of reach.
func New(ctx context.Context, settings config.Service, o Options) (_ *Service, err error) {
	settings = settings.WithDefaults()
	if err := settings.Check(); err != nil {
		return nil, err
	}
	s := &Service{config: settings, options: o, metrics: ops.NewMetrics(o.Now), shares: ops.CurrentShares(), ended: make(chan error, 1),
		running: loops{log: o.Logger, down: map[string]string{}}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	for _, step := range []func(context.Context) error{s.listen, s.openDatabase, s.assemble} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	if err := s.db.SetPublicURL(ctx, s.public); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Service) listen(ctx context.Context) error {
	on, err := listen(ctx, s.config.Listen, "--listen")
	if err != nil {
		return err
	}
	s.requests = ops.NewGate(on, s.shares.Requests)
	s.onClose(s.requests.Close)
	s.listener = s.requests
	if s.config.TLSCert != "" { // else something in front of the service ends TLS
		certificates := ops.NewCertificate(s.config.TLSCert, s.config.TLSKey, s.options.Logger, s.options.Now)
		if s.listener, err = overTLS(s.requests, certificates); err != nil {
			return err
		}
		s.metrics.Certificate(certificates.NotAfter)
	}
	s.public = s.config.PublicAddress(s.listener.Addr())
	if s.config.MetricsListen == "" {
		return nil
	}
	metrics, err := listen(ctx, s.config.MetricsListen, "--metrics-listen")
	if err != nil {
		return err
	}
	s.metricsListener = metrics
	s.onClose(func() error {
		if err := metrics.Close(); !errors.Is(err, net.ErrClosed) { // its server may have closed it
			return err
		}
		return nil
	})
	return nil
}

func (s *Service) onClose(step func() error) { s.closers = append(s.closers, step) }

func (s *Service) onDrain(step func()) { s.drains = append(s.drains, step) }

// Close releases everything, the last opened first. Run does it by itself.
func (s *Service) Close() error {
	var errs []error
	for i := len(s.closers) - 1; i >= 0; i-- {
		errs = append(errs, s.closers[i]())
	}
	s.closers = nil
	return errors.Join(errs...)
}

// PublicURL is the address under which the service is reached.
func (s *Service) PublicURL() string { return s.public }

// Addr is the address listened on.
func (s *Service) Addr() net.Addr { return s.listener.Addr() }

// Handler is everything that the main address serves.
func (s *Service) Handler() http.Handler { return s.handler }

// Platform is the adapter to the vendor's platform.
func (s *Service) Platform() *platform.Platform { return s.platform }

// Agents serves devices with our own agent; it issues their tokens.
func (s *Service) Agents() *agentserver.Server { return s.link }

// Registry holds every operation that the service offers.
func (s *Service) Registry() *operation.Registry { return s.registry }

// Pages are the addresses of the portal.
func (s *Service) Pages() []frame.Route { return s.routes }

// MetricsURL is where metrics are served if they have an address of their own.
func (s *Service) MetricsURL() string {
	if s.metricsListener == nil {
		return s.public
	}
	return "http://" + s.metricsListener.Addr().String()
}
