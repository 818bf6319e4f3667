package service

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/service/ops"
	"github.com/musterhq/muster/internal/surface/portal/devices"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// Limits of one HTTP exchange. An operation's own body limit is the surface's.
const (
	headerTimeout   = 10 * time.Second
	readTimeout     = 30 * time.Second
	writeTimeout    = 75 * time.Second // a command may wait 30 s for the platform
	idleTimeout     = 2 * time.Minute
	maxHeaderBytes  = 32 << 10
	maxRequestBytes = 2 << 20     // no request of any surface is larger, but for an upload
	leaveTimeout    = time.Second // for the first request of a connection, when the service ends
	drainTimeout    = 45 * time.Second
)

func newServer(handler http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           bounded(handler),
		ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout,
		WriteTimeout: writeTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// bounded limits the bodies of requests. The portal reads an upload after it has let the
// person in.
func bounded(handler http.Handler) http.Handler {
	usual, upload := http.MaxBytesHandler(handler, maxRequestBytes), http.MaxBytesHandler(handler, devices.MaxUpload)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == frame.ImportPath {
			upload.ServeHTTP(w, r)
			return
		}
		usual.ServeHTTP(w, r)
	})
}

// listen opens an address, which the operator sets with flag.
func listen(ctx context.Context, address, flag string) (*net.TCPListener, error) {
	var config net.ListenConfig
	config.SetMultipathTCP(false) // ops.Gate's Leave needs what Linux does not offer with it
	listener, err := config.Listen(ctx, "tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("the address %s is taken by another program: stop it, or choose another with %s", address, flag)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w", address, err)
	}
	return listener.(*net.TCPListener), nil
}

// overTLS serves a listener's connections with a certificate. It closes the listener
// when there is none. HTTP/1.1 alone: wake-up streams of agents take over their connection.
func overTLS(on net.Listener, certificates *ops.Certificate) (net.Listener, error) {
	if _, err := certificates.Get(nil); err != nil {
		return nil, errors.Join(err, on.Close())
	}
	return tls.NewListener(on, &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, GetCertificate: certificates.Get,
	}), nil
}

// clientAddress finds out where a request came from.
type clientAddress struct{ proxies []netip.Prefix }

// of is the peer's address, whatever a header says; only from a proxy that the
// operator trusts it is the last address in X-Forwarded-For that no trusted
// proxy has.
func (c clientAddress) of(r *http.Request) string {
	peer, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		next, err := netip.ParseAddr(strings.TrimSpace(hop))
		if err != nil || !c.trusts(peer) {
			break
		}
		peer = next.Unmap().WithZone("").String()
	}
	return peer
}

func (c clientAddress) trusts(address string) bool {
	ip, err := netip.ParseAddr(address)
	return err == nil && slices.ContainsFunc(c.proxies, func(p netip.Prefix) bool { return p.Contains(ip.Unmap().WithZone("")) })
}

// withOrigin notes where each request came from, for the activity log.
func (c clientAddress) withOrigin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o := access.Origin{Address: c.of(r), Client: r.UserAgent()}
		next.ServeHTTP(w, r.WithContext(access.WithOrigin(r.Context(), o)))
	})
}
