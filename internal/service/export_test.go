package service

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/musterhq/muster/internal/event"
	"github.com/musterhq/muster/internal/service/ops"
)

// Supervisor lets tests run loops by themselves.
type Supervisor struct{ l loops }

func NewSupervisor(log *slog.Logger) *Supervisor {
	return &Supervisor{loops{log: log, down: map[string]string{}}}
}
func (s *Supervisor) Start(ctx context.Context, all ...Loop) { s.l.start(ctx, all) }
func (s *Supervisor) Wait()                                  { s.l.wait() }
func (s *Supervisor) Check() error                           { return s.l.check() }

const RestartDelay = restartDelay

func Listen(ctx context.Context, address, cert, key string) (net.Listener, error) {
	return ListenLogged(ctx, address, cert, key, slog.New(slog.DiscardHandler))
}

// ListenLogged is Listen with a log for the certificate's errors.
func ListenLogged(ctx context.Context, address, cert, key string, log *slog.Logger) (net.Listener, error) {
	on, err := listen(ctx, address, "--listen")
	if err != nil || cert == "" {
		return on, err
	}
	return overTLS(on, ops.NewCertificate(cert, key, log, time.Now))
}

func ClientAddress(proxies []netip.Prefix, r *http.Request) string {
	return clientAddress{proxies}.of(r)
}

const (
	MaxHeaderBytes  = maxHeaderBytes
	MaxRequestBytes = maxRequestBytes
)

// Outages lets tests say how calls of the platform ended.
type Outages struct{ o outages }

func NewOutages(store event.OutageStore, now func() time.Time) Outages {
	return Outages{newOutages(store, now)}
}
func (o Outages) Called(method, class string)    { o.o.called(method, class) }
func (o Outages) Look(ctx context.Context) error { return o.o.Look(ctx) }

func Shutdown(servers []*http.Server, limit time.Duration, log *slog.Logger) error {
	return shutdown(servers, limit, log)
}
