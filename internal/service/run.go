package service

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/service/ops"
)

// Run serves and works until ctx ends; then it drains: it is not ready, but
// serves for as long as the configuration says, so that proxies turn away from
// it; then it takes no new connections, finishes the requests under way, stops
// the loops, writes what is pending and closes the database. It returns nil if
// all of that went well.
func (s *Service) Run(ctx context.Context) error {
	// Loops outlive the last request: a command in its last step may need them.
	working, stopLoops := context.WithCancel(context.WithoutCancel(ctx))
	defer stopLoops()
	if s.options.Manager.Watchdog > 0 {
		s.loops = append(s.loops, s.watched())
	}
	s.running.start(working, s.loops)

	var serving sync.WaitGroup
	failed := make(chan error, 2)
	servers := []*http.Server{s.serve(&serving, failed, s.listener, s.leaving(s.handler), s.requests.ConnState)}
	if s.metricsListener != nil {
		metrics := http.NewServeMux()
		s.metrics.Mount(metrics)
		if s.config.Pprof {
			ops.MountProfiles(metrics)
		}
		servers = append(servers, s.serve(&serving, failed, s.metricsListener, metrics, nil))
	}
	s.options.Logger.Info("serving", "address", s.Addr().String(), "publicURL", s.public,
		"version", ops.ReadBuild(s.options.Version).Version, "database", s.config.Engine(), "limits", s.shares)
	if s.shares.Few() {
		s.options.Logger.Warn("few open files are allowed, so few agents are woken at once; the others poll",
			"openFiles", s.shares.OpenFiles, "wakeStreams", s.shares.Streams, "remedy", ops.OpenFilesRemedy)
	}
	s.logUnnotified(s.options.Manager.Ready())

	var err error
	select {
	case <-ctx.Done():
		s.logUnnotified(s.options.Manager.Stopping())
		s.options.Logger.Info("draining", "delay", s.config.DrainDelay, "limit", drainTimeout)
		s.draining.Store(true)
		select {
		case <-time.After(s.config.DrainDelay):
		case err = <-failed:
		}
	case err = <-failed:
	case err = <-s.ended:
		stopLoops() // this program is to write nothing more
	}
	s.draining.Store(true)
	s.requests.Leave(leaveTimeout)
	for _, end := range s.drains {
		end()
	}
	err = errors.Join(err, shutdown(servers, drainTimeout, s.options.Logger))
	serving.Wait()
	stopLoops()
	s.running.wait()
	err = errors.Join(err, s.Close())
	s.options.Logger.Info("stopped")
	return err
}

// leaving has clients and proxies open no further request on their connections while the
// service drains: one that is sent when the service closes the connection is lost.
func (s *Service) leaving(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.draining.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// serve runs one server in a goroutine that serving waits for. state, if it is
// not nil, is told how each connection changes.
func (s *Service) serve(serving *sync.WaitGroup, failed chan<- error, on net.Listener, handler http.Handler,
	state func(net.Conn, http.ConnState)) *http.Server {
	server := newServer(handler, s.options.Logger)
	server.ConnState = state
	serving.Go(func() {
		if err := server.Serve(on); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			failed <- err
		}
	})
	return server
}

// shutdown finishes the requests under way, and cuts those off that last longer than the
// limit: that is no failure of the service.
func shutdown(servers []*http.Server, limit time.Duration, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	var errs []error
	for _, server := range servers {
		err := server.Shutdown(ctx)
		if errors.Is(err, context.DeadlineExceeded) {
			log.Warn("requests that did not end were cut off", "limit", limit)
			err = server.Close()
		} else if err != nil {
			err = errors.Join(err, server.Close())
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
