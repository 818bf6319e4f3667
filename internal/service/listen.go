package service

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/musterhq/muster/internal/service/ops"
)

// Limits of one HTTP exchange. An operation's own body limit is the surface's.
const (
	headerTimeout   = 10 * time.Second
	readTimeout     = 30 * time.Second
	writeTimeout    = 75 * time.Second // a command may wait 30 s for the platform
	idleTimeout     = 2 * time.Minute
	maxHeaderBytes  = 32 << 10
	maxRequestBytes = 2 << 20 // no request of any surface is larger
	drainTimeout    = 45 * time.Second
)

func newServer(handler http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           http.MaxBytesHandler(handler, maxRequestBytes),
		ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout,
		WriteTimeout: writeTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// listen opens an address, over TLS if certificates are given.
func listen(ctx context.Context, address string, certificates *ops.Certificate) (net.Listener, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("the address %s is taken by another program: stop it, or choose another with --listen", address)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w", address, err)
	}
	if certificates == nil {
		return listener, nil
	}
	if _, err := certificates.Get(nil); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	// HTTP/1.1 alone: wake-up streams of agents take over their connection.
	return tls.NewListener(listener, &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, GetCertificate: certificates.Get,
	}), nil
}
