package agent_test

import (
	"container/heap"
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterhq/muster/internal/agent"
)

var errAway = errors.New("connection refused")

// One pause grows for the failures of the stream and of check-ins, up to eight minutes;
// it is forgotten once both work.
func TestPace_OneGrowingPause(t *testing.T) {
	t.Parallel()
	var p agent.Pace
	p.Answered()
	now := time.Unix(0, 0)
	limit := 2 * time.Second
	for i := range 12 {
		wait := p.Failed(now, errAway, i%2 == 0)
		if wait < limit/2 || wait > limit {
			t.Errorf("the pause %d is %s, want %s to %s", i, wait, limit/2, limit)
		}
		if rest := p.Failed(now.Add(wait/2), errAway, i%2 == 1); rest != wait-wait/2 {
			t.Errorf("within the pause another failure makes it %s, want the rest, %s", rest, wait-wait/2)
		}
		now, limit = now.Add(wait), min(2*limit, 8*time.Minute)
	}
	p.Answered() // the stream fails still
	if wait := p.Failed(now, errAway, true); wait < 4*time.Minute {
		t.Errorf("check-ins alone make the pause of the stream %s", wait)
	}
	p.Held()
	if wait := p.Failed(now.Add(time.Hour), errAway, true); wait > 2*time.Second {
		t.Errorf("after a time that was good the pause is %s", wait)
	}
}

// An agent is in touch from its first check-in that was answered on, until one fails; a stream that fails says nothing. Failures
// are forgotten after a check-in only while the stream holds.
func TestPace_InTouch(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		did       string // in this order: a answered, s a stream failed, c a check-in failed, h a stream held
		in        bool
		forgotten bool
	}{{"", false, true}, {"s", false, false}, {"c", false, false}, {"a", true, true}, {"as", true, false}, {"ac", false, false},
		{"acs", false, false}, {"aca", true, false}, {"hacccca", true, true}, {"hascca", true, false}, {"ccch", false, false},
		{"cccah", true, true}} {
		var p agent.Pace
		now := time.Unix(0, 0)
		for _, c := range test.did {
			now = now.Add(time.Hour)
			switch c {
			case 'a':
				p.Answered()
			case 'h':
				p.Held()
			default:
				p.Failed(now, errAway, c == 's')
			}
		}
		if in := p.InTouch(); in != test.in {
			t.Errorf("%q: in touch: %t", test.did, in)
		}
		if wait := p.Failed(now.Add(time.Hour), errAway, true); (wait <= 2*time.Second) != test.forgotten && wait != 2*time.Second {
			t.Errorf("%q: the next pause is %s", test.did, wait)
		}
	}
}

// What only a person can change is looked for every quarter of an hour, and is no failure of the way.
func TestPace_Superseded(t *testing.T) {
	t.Parallel()
	var p agent.Pace
	now := time.Unix(0, 0)
	if wait := p.Failed(now, agent.ErrSuperseded, false); wait < 12*time.Minute || wait > 18*time.Minute {
		t.Errorf("the pause is %s", wait)
	}
	if wait := p.Failed(now, errAway, false); wait > 2*time.Second {
		t.Errorf("the pause after a failure is %s", wait)
	}
}

// attempt is when an agent of a fleet tries to connect, for its stream or a check-in.
type attempt struct {
	at     time.Duration
	number int
	stream bool
}

type attempts []attempt

func (a attempts) Len() int           { return len(a) }
func (a attempts) Less(i, j int) bool { return a[i].at < a[j].at }
func (a attempts) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *attempts) Push(v any)        { *a = append(*a, v.(attempt)) }
func (a *attempts) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

// A service that was away for an hour from 100,000 agents is not run down when it is
// back, and each of them is in touch within ten minutes. A stream takes the connection
// of the check-in before it.
func TestPace_FleetAfterAnHour(t *testing.T) {
	t.Parallel()
	const fleet, away = 100_000, time.Hour
	paces := make([]agent.Pace, fleet)
	var due attempts
	for i := range paces {
		paces[i].Answered()
		due = append(due, attempt{0, i, true}, attempt{rand.N(15 * time.Minute), i, false}) // every stream breaks off at once
	}
	heap.Init(&due)
	seconds, in := map[time.Duration]int{}, make([]bool, fleet)
	var last time.Duration
	for due.Len() > 0 {
		now := heap.Pop(&due).(attempt)
		p := &paces[now.number]
		if in[now.number] || now.stream && !p.InTouch() {
			continue // it is back, or leaves the attempt to check-ins
		}
		if now.at < away {
			heap.Push(&due, attempt{now.at + p.Failed(time.Unix(0, 0).Add(now.at), errAway, now.stream), now.number, now.stream})
			continue
		}
		seconds[now.at.Truncate(time.Second)]++
		in[now.number], last = true, now.at-away
	}
	most := 0
	for _, n := range seconds {
		most = max(most, n)
	}
	if most > 500 || last > 10*time.Minute {
		t.Errorf("%d connections in a second, the last after %s", most, last)
	}
	for i := range in {
		if !in[i] {
			t.Fatal("an agent never came back")
		}
	}
}

// simulatedAgent is one whose service is the function.
func simulatedAgent(t *testing.T, service func(r *http.Request) (*http.Response, error)) *agent.Agent {
	t.Helper()
	return movingAgent(t, nil, service)
}

// movingAgent is one whose network has the name that a function returns.
func movingAgent(t *testing.T, network func() string, service func(r *http.Request) (*http.Response, error)) *agent.Agent {
	t.Helper()
	w := newCommandWorld(t, vectorKey(t, "device"), "LAUNCH_APP", "NEW", "intime,answers,does")
	a, err := agent.New(agent.Options{Dir: w.dir, Device: w, Client: &http.Client{Transport: roundTripper(service)}, Network: network,
		Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// drip gives a byte every three seconds, forever.
type drip struct{ ctx context.Context }

func (d drip) Read(p []byte) (int, error) {
	select {
	case <-d.ctx.Done():
		return 0, d.ctx.Err()
	case <-time.After(3 * time.Second):
		return copy(p, " "), nil
	}
}

func (drip) Close() error { return nil }

// An answer that drips holds the agent for two minutes and no longer.
func TestExchange_Ends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := simulatedAgent(t, func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: drip{r.Context()}, Request: r}, nil
		})
		defer a.Close()
		began := time.Now()
		if _, err := a.Once(t.Context()); err == nil || time.Since(began) > 2*time.Minute+time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}

// A device that changes its network waits for the end of no pause, and begins with the
// shortest again.
func TestRun_AnotherNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var network atomic.Int64
		var tries atomic.Int64
		a := movingAgent(t, func() string { return strconv.FormatInt(network.Load(), 10) }, func(*http.Request) (*http.Response, error) {
			tries.Add(1)
			return nil, errAway
		})
		defer a.Close()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- a.Run(ctx) }()
		time.Sleep(3 * time.Hour)
		before := tries.Load()
		network.Add(1)
		time.Sleep(20 * time.Second)
		if n := tries.Load() - before; n < 3 {
			t.Errorf("it tried %d times in 20 seconds of another network", n)
		}
		before = tries.Load()
		time.Sleep(time.Hour)
		if n := tries.Load() - before; n > 25 {
			t.Errorf("it tried %d times in the next hour", n)
		}
		cancel()
		<-ended
	})
}

// A device that cannot apply its policy, or change its key, is in touch: the service wakes it.
func TestRun_WhatFailsBesideACheckInHoldsBackNoStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var streams, checkIns atomic.Int64
		a := simulatedAgent(t, func(r *http.Request) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, "/wake") {
				streams.Add(1)
				return nil, errAway
			}
			checkIns.Add(1)
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: r,
				Body: io.NopCloser(strings.NewReader(`{"nextSeconds": 900, "assignment": {"kind": "of another key"}}`))}, nil
		})
		defer a.Close()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- a.Run(ctx) }()
		time.Sleep(24 * time.Hour)
		if s, c := streams.Load(), checkIns.Load(); s < 100 || s > 1000 || c < 100 || c > 1000 {
			t.Errorf("it opened a stream %d times in a day, and checked in %d times", s, c)
		}
		cancel()
		<-ended
	})
}

// Hints without end cause five check-ins a second, and an answer cannot put the next
// check-in off for longer than an hour, nor have it come at once.
func TestRun_HostilePace(t *testing.T) {
	for next, bounds := range map[string][2]int{"9223372036854776": {1, 4}, "-5": {6000, 13000}} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			var checkIns []time.Time
			soFar := func() []time.Time {
				mu.Lock()
				defer mu.Unlock()
				return slices.Clone(checkIns)
			}
			a := simulatedAgent(t, func(r *http.Request) (*http.Response, error) {
				if strings.HasSuffix(r.URL.Path, "/wake") {
					return nil, errAway
				}
				mu.Lock()
				defer mu.Unlock()
				checkIns = append(checkIns, time.Now())
				return &http.Response{StatusCode: http.StatusOK, Header: http.Header{},
					Body: io.NopCloser(strings.NewReader(`{"nextSeconds":` + next + `}`)), Request: r}, nil
			})
			defer a.Close()
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- a.Run(ctx) }()
			for range 1000 {
				a.Hint()
				time.Sleep(10 * time.Millisecond)
			}
			times := soFar()
			flood := len(times)
			for i := 5; i < flood; i++ {
				if between := times[i].Sub(times[i-5]); between < time.Second {
					t.Fatalf("six check-ins within %s", between)
				}
			}
			if flood < 40 {
				t.Errorf("%d check-ins in ten seconds of hints", flood)
			}
			time.Sleep(2 * time.Hour)
			if n := len(soFar()) - flood; n < bounds[0] || n > bounds[1] {
				t.Errorf("with nextSeconds %s it checked in %d times in two hours", next, n)
			}
			cancel()
			<-ended
		})
	}
}
