package agent_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/protocol"
)

// wakes is a service whose wake streams a function answers. It counts the requests.
type wakes struct {
	*updateWorld
	mu            sync.Mutex
	streams, asks int
	stream        func(r *http.Request, number int) (*http.Response, error)
}

// RoundTrip implements http.RoundTripper.
func (s *wakes) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(r.URL.Path, "/wake") {
		s.mu.Lock()
		s.asks++
		s.mu.Unlock()
		return s.updateWorld.RoundTrip(r)
	}
	s.mu.Lock()
	s.streams++
	number := s.streams
	s.mu.Unlock()
	return s.stream(r, number)
}

// runFor has an agent with the options run for a while.
func (s *wakes) runFor(o agent.Options, d time.Duration) error {
	s.t.Helper()
	o.Dir, o.Device, o.Client, o.Now = s.dir, s, &http.Client{Transport: s}, time.Now
	if o.Log == nil {
		o.Log = discard()
	}
	a, err := agent.New(o)
	if err != nil {
		s.t.Fatal(err)
	}
	defer s.close(a)
	ctx, cancel := context.WithTimeout(s.t.Context(), d)
	defer cancel()
	return a.Run(ctx)
}

// A stream that is refused for the clock is opened again at once, twice; one that is refused because the device has ended has
// it check in.
func TestRun_StreamIsRefused(t *testing.T) {
	for _, test := range []struct {
		code          protocol.ErrorCode
		within        time.Duration
		streams, asks [2]int // at least, and at most
	}{
		{protocol.ClockSkew, 900 * time.Millisecond, [2]int{3, 3}, [2]int{1, 1}},
		{protocol.Busy, 900 * time.Millisecond, [2]int{1, 1}, [2]int{1, 1}},
		{protocol.Ended, 900 * time.Millisecond, [2]int{1, 1}, [2]int{2, 2}},
		{protocol.Ended, 50 * time.Second, [2]int{1, 1}, [2]int{2, 2}},
		{protocol.Busy, 50 * time.Second, [2]int{3, 9}, [2]int{1, 1}},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &wakes{updateWorld: newUpdateWorld(t)}
			s.stream = func(r *http.Request, _ int) (*http.Response, error) {
				refusal := protocol.Refusal{Code: test.code}
				if test.code == protocol.ClockSkew {
					sealed := forger{t: t}.seal(s.key, "k1", protocol.KindTime, protocol.Time{DeviceID: "d1",
						ServerTime: time.Now().UnixMilli(), InReplyTo: r.Header.Get(protocol.HeaderSignature)})
					refusal.Signed = &sealed
				}
				return respond(r, http.StatusConflict, refusal)
			}
			_ = s.runFor(agent.Options{}, test.within)
			if s.streams < test.streams[0] || s.streams > test.streams[1] || s.asks < test.asks[0] || s.asks > test.asks[1] {
				t.Errorf("%s: %d streams and %d check-ins in %s", test.code, s.streams, s.asks, test.within)
			}
		})
	}
}

// alive is the body of a stream on which the service comments each minute until it ends.
type alive struct{ ctx context.Context }

func (a alive) Read(p []byte) (int, error) {
	select {
	case <-a.ctx.Done():
		return 0, a.ctx.Err()
	case <-time.After(time.Minute):
		return copy(p, ":\n"), nil
	}
}

func (alive) Close() error { return nil }

// warnings counts the warnings about streams.
type warnings struct {
	slog.Handler
	n *int
}

// Enabled implements slog.Handler.
func (warnings) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (w warnings) Handle(_ context.Context, r slog.Record) error {
	if r.Level == slog.LevelWarn && r.Message == "wake stream interrupted" {
		*w.n++
	}
	return nil
}

// The log has one warning about streams that break off, until one has held for eight minutes.
func TestRun_WarnsOfStreamsOnce(t *testing.T) {
	for _, test := range []struct {
		holds time.Duration // the third stream
		want  int
	}{{0, 1}, {8*time.Minute - time.Second, 1}, {8 * time.Minute, 2}, {20 * time.Minute, 2}} {
		synctest.Test(t, func(t *testing.T) {
			s := &wakes{updateWorld: newUpdateWorld(t)}
			s.stream = func(r *http.Request, number int) (*http.Response, error) {
				if number != 3 || test.holds == 0 {
					return nil, errAway
				}
				ctx, cancel := context.WithTimeout(r.Context(), test.holds)
				context.AfterFunc(r.Context(), cancel)
				return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: r, Body: alive{ctx}}, nil
			}
			n := 0
			_ = s.runFor(agent.Options{Log: slog.New(warnings{n: &n})}, time.Hour)
			if n != test.want {
				t.Errorf("a stream holds for %s: %d warnings, want %d", test.holds, n, test.want)
			}
		})
	}
}

// everyMinute is a push service that wakes the device each minute, ten times.
type everyMinute struct {
	tokens
	left int
}

// Wait implements agent.Push.
func (p *everyMinute) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Minute):
	}
	if p.left--; p.left < 0 {
		return errors.New("no push comes")
	}
	return nil
}

// A device with a push service opens no stream: each push has it check in.
func TestRun_Push(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &wakes{updateWorld: newUpdateWorld(t), stream: func(*http.Request, int) (*http.Response, error) { return nil, errAway }}
		_ = s.runFor(agent.Options{Push: &everyMinute{left: 10}}, 11*time.Minute+30*time.Second)
		if s.streams != 0 || s.asks != 11 {
			t.Errorf("%d streams, %d check-ins", s.streams, s.asks)
		}
	})
}

// A simulated agent that runs faster than its clock waits that much less.
func TestRun_Pace(t *testing.T) {
	for pace, want := range map[float64]int{0: 1, 100: 5} {
		synctest.Test(t, func(t *testing.T) {
			s := &wakes{updateWorld: newUpdateWorld(t), stream: func(r *http.Request, _ int) (*http.Response, error) {
				return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: r, Body: alive{r.Context()}}, nil
			}}
			_ = s.runFor(agent.Options{Pace: pace}, time.Minute)
			if s.asks < want || s.asks > 2*want {
				t.Errorf("%g times as fast: %d check-ins in a minute", pace, s.asks)
			}
		})
	}
}

// A stream that is opened after its refusal for the clock is not worth a warning.
func TestRun_WarnsOfNoCorrection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &wakes{updateWorld: newUpdateWorld(t)}
		s.stream = func(r *http.Request, number int) (*http.Response, error) {
			if number > 1 {
				return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: r, Body: alive{r.Context()}}, nil
			}
			sealed := forger{t: t}.seal(s.key, "k1", protocol.KindTime, protocol.Time{DeviceID: "d1", ServerTime: time.Now().UnixMilli(),
				InReplyTo: r.Header.Get(protocol.HeaderSignature)})
			return respond(r, http.StatusUnauthorized, protocol.Refusal{Code: protocol.ClockSkew, Signed: &sealed})
		}
		n := 0
		if _ = s.runFor(agent.Options{Log: slog.New(warnings{n: &n})}, 2*time.Minute); n != 0 || s.streams != 2 {
			t.Errorf("%d warnings, %d streams", n, s.streams)
		}
	})
}

// able is a device that can do more after a while.
type able struct {
	*interrupted
	can []protocol.Capability
}

// Capabilities implements agent.Device.
func (d *able) Capabilities(context.Context) ([]protocol.Capability, error) { return d.can, nil }

// What a device can do is reported at first and when it changes.
func TestOnce_Capabilities(t *testing.T) {
	t.Parallel()
	d := &able{newFollower(t, "does", nil), []protocol.Capability{protocol.Notify}}
	a := d.agentFor(d, d)
	defer d.close(a)
	for i, says := range []bool{true, false, true, false} {
		if i == 2 {
			d.can = append(d.can, protocol.Launch)
		}
		d.trace = nil
		if _, err := a.Once(t.Context()); err != nil || strings.Contains(d.trace[0], "[can]") != says {
			t.Errorf("check-in %d: %v, %v", i, d.trace, err)
		}
	}
}
