package wait_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/wait"
)

// What goes on failing is told once, then every 15 minutes, and at the end; another reason after a
// minute, because the text of an error may differ each time.
func TestRounds_TellsOfTroubleOnce(t *testing.T) {
	now := time.Date(2026, 11, 28, 9, 0, 0, 0, time.UTC)
	var log bytes.Buffer
	ticks := make(chan time.Time)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	type round struct {
		after time.Duration
		err   string
		tells string
	}
	rounds := []round{{0, "", ""}, {time.Second, "no route", "no route"}, {time.Second, "no route", ""}, {time.Second, "port 1", ""},
		{time.Minute, "port 2", "port 2"}, {2 * time.Second, "port 3", ""}, {14 * time.Minute, "port 2", ""},
		{time.Minute, "port 2", "port 2"}, {time.Second, "", "after=16m5s"}, {time.Second, "", ""},
		{time.Second, "no route", "no route"}, {-time.Hour, "no route", "no route"}}
	n := 0
	work := func(context.Context) error {
		if n > 0 {
			if was := rounds[n-1]; (was.tells != "") != (log.Len() > 0) || !strings.Contains(log.String(), was.tells) {
				t.Errorf("round %d, %+v: %q", n, was, log.String())
			}
		}
		log.Reset()
		if n == len(rounds) {
			cancel()
			return nil
		}
		now = now.Add(rounds[n].after)
		n++
		if text := rounds[n-1].err; text != "" {
			return errors.New(text)
		}
		return nil
	}
	go func() {
		for {
			select {
			case ticks <- time.Time{}:
			case <-ctx.Done():
				return
			}
		}
	}()
	err := wait.Rounds{Name: "work", Work: work, Ticks: ticks, Now: func() time.Time { return now },
		Log: slog.New(slog.NewTextHandler(&log, nil))}.Run(ctx)
	if !errors.Is(err, context.Canceled) || n != len(rounds) {
		t.Errorf("it ended with %v after %d rounds", err, n)
	}
}
