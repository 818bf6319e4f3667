package service_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterhq/muster/internal/service"
)

func TestLoops_AreStartedAgain(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func() error{
		"an error": func() error { return errors.New("lost the connection") },
		"nothing":  func() error { return nil },
		"a panic":  func() error { panic("lost its head") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				runs := 0
				loop := service.Loop{Name: "poller", Run: func(ctx context.Context) error {
					if runs++; runs == 1 {
						return end()
					}
					<-ctx.Done()
					return ctx.Err()
				}}
				s := service.NewSupervisor(slog.New(slog.DiscardHandler))
				s.Start(ctx, loop)
				synctest.Wait()
				if err := s.Check(); err == nil || !strings.Contains(err.Error(), "poller") {
					t.Errorf("with the loop down the check says %v", err)
				}
				time.Sleep(service.RestartDelay)
				synctest.Wait()
				if err := s.Check(); err != nil || runs != 2 {
					t.Errorf("after the delay: %v, %d runs", err, runs)
				}
				cancel()
				s.Wait()
			})
		})
	}
}

func TestLoops_EndWithTheirContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := service.NewSupervisor(slog.New(slog.DiscardHandler))
		s.Start(ctx,
			service.Loop{Name: "working", Run: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }},
			service.Loop{Name: "down", Run: func(context.Context) error { return errors.New("no") }},
		)
		synctest.Wait()
		cancel()
		s.Wait() // hangs, and synctest reports it, if a loop outlives its context
	})
}
