package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/fault"
)

// Loop is background work that runs until its context ends. One that returns
// before, or panics, is started again after restartDelay.
type Loop struct {
	Name string
	Run  func(ctx context.Context) error
}

const restartDelay = 5 * time.Second

// loops runs background work and knows which of it is down.
type loops struct {
	log  *slog.Logger
	work sync.WaitGroup

	mu   sync.Mutex
	down map[string]string // by name: why
}

// start runs every loop until ctx ends; wait returns when all have ended.
func (l *loops) start(ctx context.Context, all []Loop) {
	for _, loop := range all {
		l.work.Go(func() { l.keep(ctx, loop) })
	}
}

func (l *loops) wait() { l.work.Wait() }

func (l *loops) keep(ctx context.Context, loop Loop) {
	for ctx.Err() == nil {
		err := runGuarded(ctx, loop)
		if ctx.Err() != nil {
			return
		}
		err = cmp.Or(err, errors.New("ended by itself"))
		l.mark(loop.Name, err.Error())
		l.log.Error("a background loop failed and will be started again", "loop", loop.Name, "error", err, "after", restartDelay)
		select {
		case <-ctx.Done():
		case <-time.After(restartDelay):
			l.mark(loop.Name, "")
		}
	}
}

func runGuarded(ctx context.Context, loop Loop) (err error) {
	defer fault.Rescue(func(panicked error) { err = panicked })
	return loop.Run(ctx)
}

func (l *loops) mark(name, why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if why == "" {
		delete(l.down, name)
		return
	}
	l.down[name] = why
}

// check reports the loops that are down.
func (l *loops) check() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.down) == 0 {
		return nil
	}
	return fmt.Errorf("background loops down: %s", strings.Join(slices.Sorted(maps.Keys(l.down)), ", "))
}

// watched is the loop that gives the service manager signs of life. Each follows an answer
// to /healthz, by everything but the network: a process that can no longer answer is killed.
// The database has no part in it, because another start does not bring it back.
func (s *Service) watched() Loop {
	return Loop{Name: "watchdog", Run: func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "/healthz", nil)
		if err != nil {
			return err
		}
		return s.options.Manager.Watch(ctx, func(context.Context) {
			s.handler.ServeHTTP(unread{http.Header{}}, request)
			_ = s.running.check() // returns unless the loops block each other
		})
	}}
}

// logUnnotified logs that the service manager could not be logUnnotified.
func (s *Service) logUnnotified(err error) {
	if err != nil {
		s.options.Logger.Warn("the service manager was not told", "error", err)
	}
}

// unread takes an answer that is not read.
type unread struct{ header http.Header }

func (u unread) Header() http.Header         { return u.header }
func (u unread) Write(b []byte) (int, error) { return len(b), nil }
func (u unread) WriteHeader(int)             {}
