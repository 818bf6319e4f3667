package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agent/protocol"
)

// capacitySlots is how many commands are under way at most, and how many connections the loader
// keeps for calls: the service serves 512 beside the streams.
const capacitySlots = 200

// checkInEvery is how often an idle agent checks in (docs/agent-protocol.md).
const checkInEvery = 15 * time.Minute

// capacityKeys is enough for ten commands a minute of each key.
func capacityKeys() int {
	const mostPerSecond = 1500
	return keysFor(mostPerSecond, 2**capacityTime) + 1000
}

// keysFor is how many keys may send so many commands a second for a time, ten a minute each.
func keysFor(perSecond float64, last time.Duration) int {
	return int(min(last, 75*time.Second).Seconds() * perSecond / 10)
}

// capacityLoad sends commands to connected agents that carry them out from their wake streams.
type capacityLoad struct {
	f       *loadFleet
	private string // the address of the metrics and profiles
	conns   []net.Conn
	readers sync.WaitGroup
	waiting []atomic.Pointer[chan error] // for each agent, what waits until its command is acknowledged
	closed  atomic.Bool
	meter
}

func newCapacityLoad(f *loadFleet, private string) *capacityLoad {
	f.ours.client = &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: capacitySlots,
		TLSClientConfig: anyCertificate()}}
	l := &capacityLoad{f: f, private: private, conns: make([]net.Conn, len(f.agents)),
		waiting: make([]atomic.Pointer[chan error], len(f.agents))}
	l.meter = newMeter(l.figures)
	return l
}

// meter takes the times of a load, and the figures of who is under it.
type meter struct {
	slots      chan struct{}
	took       timings // commands
	polled     timings // check-ins of idle agents
	eventTimes timings // events, from when they were true
	read       func(*testing.T) figures
}

func newMeter(read func(*testing.T) figures) meter {
	return meter{slots: make(chan struct{}, capacitySlots), read: read}
}

// timings are durations since they were taken last.
type timings struct {
	mu  sync.Mutex
	all []time.Duration
}

func (s *timings) add(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, d)
}

func (s *timings) take() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.all
	s.all = nil
	return all
}

// connect opens the wake stream of every agent.
func (l *capacityLoad) connect(t *testing.T) {
	t.Helper()
	(&connected{conns: l.conns}).dialAll(t, func(n int) (net.Conn, error) { return l.f.agents[n].listen(l.f) })
	if t.Failed() {
		t.FailNow()
	}
	for n, conn := range l.conns {
		l.readers.Go(func() { l.listen(n, conn) })
	}
}

// disconnect resets the connections, as a network that fails does.
func (l *capacityLoad) disconnect() {
	if l.closed.Swap(true) {
		return
	}
	for _, conn := range l.conns {
		plain := conn
		if secure, ok := conn.(*tls.Conn); ok {
			plain = secure.NetConn()
		}
		if tcp, ok := plain.(*net.TCPConn); ok {
			_ = errors.Join(tcp.SetLinger(0), tcp.Close())
		}
	}
	l.readers.Wait()
}

// listen carries out what comes on a stream: a command, or what a hint is about.
func (l *capacityLoad) listen(n int, conn net.Conn) {
	lines := bufio.NewReaderSize(conn, 256)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			if !l.closed.Load() {
				l.done(n, errors.Join(errors.New("the stream ended"), err))
			}
			return
		}
		data, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data: "))
		if !ok {
			continue
		}
		some := false
		if err := l.f.agents[n].pushed(l.f, data, func() { some = true }); err != nil || some {
			l.done(n, err)
		}
	}
}

// done notes how the agent's command ended.
func (l *capacityLoad) done(n int, err error) {
	if waits := l.waiting[n].Swap(nil); waits != nil {
		*waits <- err
	}
}

// one sends a command to an idle agent and measures, from when it was due, until its device
// knows that the service has its result.
func (l *capacityLoad) one(due time.Time) error {
	ended := make(chan error, 1)
	n := rand.IntN(len(l.conns))
	for !l.waiting[n].CompareAndSwap(nil, &ended) {
		n = rand.IntN(len(l.conns))
	}
	if err := l.f.agents[n].order(l.f); err != nil {
		l.waiting[n].Store(nil)
		return err
	}
	select {
	case err := <-ended:
		l.took.add(time.Since(due))
		return err
	case <-time.After(time.Minute):
		return errors.New("a command was not carried out within a minute")
	}
}

// capacity is the least of three rounds of commands a second: each caller sends its next when the
// one before is acknowledged, while idle agents check in. The rounds are long, because a command
// costs more where many were before it.
func (l *capacityLoad) capacity(t *testing.T) float64 {
	t.Helper()
	const rounds = 3
	ctx, cancel := context.WithCancel(t.Context())
	var idle sync.WaitGroup
	idle.Go(func() { l.checkIns(ctx, t) })
	least := 0.0
	for n := range rounds + 1 { // the first one warms up
		rate := l.round(t)
		t.Logf("round %d: %.0f commands a second", n, rate)
		if n > 0 && (least == 0 || rate < least) {
			least = rate
		}
	}
	cancel()
	idle.Wait()
	l.polled.take()
	if least == 0 || t.Failed() {
		t.Fatal("no capacity was found")
	}
	return least
}

// round is how many commands a second come back when 32 callers send them.
func (l *capacityLoad) round(t *testing.T) float64 {
	t.Helper()
	const callers = 32
	ctx, cancel := context.WithTimeout(t.Context(), *capacityTime/8)
	defer cancel()
	var all sync.WaitGroup
	began := time.Now()
	for range callers {
		all.Go(func() {
			for ctx.Err() == nil {
				if err := l.one(time.Now()); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	return float64(len(l.took.take())) / time.Since(began).Seconds()
}

// hold sends so many commands a second for a time, lets idle agents check in, and samples.
func (l *capacityLoad) hold(t *testing.T, rate float64, last time.Duration) []sample {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), last)
	defer cancel()
	var all sync.WaitGroup
	all.Go(func() { l.atRate(ctx, t, rate, l.one) })
	all.Go(func() { l.checkIns(ctx, t) })
	samples := l.sample(ctx, t, max(time.Second/2, min(10*time.Second, last/6)))
	all.Wait()
	return samples
}

// checkIns has idle agents check in, each now and then.
func (l *capacityLoad) checkIns(ctx context.Context, t *testing.T) {
	l.atRate(ctx, t, float64(len(l.conns))/checkInEvery.Seconds(), func(due time.Time) error {
		_, err := l.f.agents[rand.IntN(len(l.conns))].checkIn(l.f, protocol.CheckinRequest{AgentVersion: "1"})
		l.polled.add(time.Since(due))
		return err
	})
}

// atRate is an open loop: what is due is measured from then, also if all slots are taken.
func (m *meter) atRate(ctx context.Context, t *testing.T, rate float64, work func(due time.Time) error) {
	var all sync.WaitGroup
	defer all.Wait()
	began := time.Now()
	for n := 0; ; n++ {
		due := began.Add(time.Duration(float64(n) / rate * float64(time.Second)))
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(due)):
		}
		select {
		case <-ctx.Done():
			return
		case m.slots <- struct{}{}:
		}
		all.Go(func() {
			defer func() { <-m.slots }()
			if err := work(due); err != nil && !t.Failed() {
				t.Error(err)
			}
		})
	}
}
