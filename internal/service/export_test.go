package service

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
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
	return listen(ctx, address, cert, key)
}

func ClientAddress(proxies []netip.Prefix, r *http.Request) string {
	return clientAddress{proxies}.of(r)
}
