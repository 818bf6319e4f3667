package service

import (
	"context"
	"crypto/ed25519"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"
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
	if cert == "" {
		return listen(ctx, address, nil)
	}
	return listen(ctx, address, &certificateFiles{cert: cert, key: key, log: log, now: time.Now})
}

func ClientAddress(proxies []netip.Prefix, r *http.Request) string {
	return clientAddress{proxies}.of(r)
}

// ShareFiles returns how many wake streams and how many connections of requests
// a replica takes.
func ShareFiles(limit, cpus int) (streams, requests int) {
	s := shareFiles(limit, cpus)
	return s.Streams, s.Requests
}

func NewGate(on net.Listener, limit int) (net.Listener, func(net.Conn, http.ConnState)) {
	g := newGate(on, limit)
	return g, g.connState
}

const (
	MaxHeaderBytes  = maxHeaderBytes
	MaxRequestBytes = maxRequestBytes
)

// ES256CommandKey is the id of the P-256 command key that comes of a secret.
func ES256CommandKey(secret []byte) (string, error) {
	s, err := signerOf([]signingKey{{key: ed25519.NewKeyFromSeed(secret)}}, signingKey.es256)
	return s.ID, err
}
