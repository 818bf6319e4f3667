package e2e_test

import (
	"flag"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/service/ops"
	"github.com/musterhq/muster/test/poll"
	"github.com/musterhq/muster/test/port"
)

// The service as a process of its own holds 80 % of its capacity for a long time, with all agents
// connected. A run worth quoting is
//
//	go test ./test/e2e -run TestCapacity_HoldsLoad -v -capacity-agents 10000 -capacity-time 10m -timeout 60m
var (
	capacityAgents = flag.Int("capacity-agents", 200, "connected agents in the tests of the capacity")
	capacityTime   = flag.Duration("capacity-time", 4*time.Second, "how long the tests of the capacity hold the load; what they measure "+
		"is checked from a minute on")
	capacityShare = flag.Float64("capacity-share", 0.8, "share of the capacity that they hold")
	capacityChart = flag.String("capacity-chart", "", "file for the chart of TestCapacity_HoldsLoad (SVG); by default a temporary one")
)

// capacityFiles is what each of the two processes has open beside the connections of its agents.
const capacityFiles = 800

func TestCapacity_HoldsLoad(t *testing.T) {
	t.Parallel()
	holdCapacity(t).draw(t, *capacityChart)
}

// The same with TLS in the service's process.
func TestCapacity_TLS(t *testing.T) {
	t.Parallel()
	cert, key, _ := selfSigned(t, "localhost")
	holdCapacity(t, "MUSTER_TLS_CERT="+cert, "MUSTER_TLS_KEY="+key)
}

// holdCapacity connects the agents, finds the capacity, holds a share of it, and disconnects the
// agents again. settings are more of the service.
func holdCapacity(t *testing.T, settings ...string) *capacityRun {
	t.Helper()
	agents := *capacityAgents
	if need, limit := agents+capacityFiles, ops.OpenFileLimit(); need > limit {
		t.Skipf("%d agents need %d open files in the loader and in the service each, and the limit is %d: raise it with `ulimit -n`",
			agents, need, limit)
	}
	private := port.Address(t)
	before := append([]string{"env", "MUSTER_METRICS_LISTEN=" + private}, settings...)
	f := newLoadFleet(t, "sqlite:"+filepath.Join(t.TempDir(), "capacity.db"), agents, capacityKeys(), before...)
	l := newCapacityLoad(f, "http://"+private)
	t.Cleanup(l.disconnect)

	idle := l.settled(t)
	began := time.Now()
	l.connect(t)
	connected := l.settled(t)
	t.Logf("%d agents connected in %.0f s; memory after a garbage collection: heap %.1f MB, before %.1f MB; process %.1f MB, "+
		"before %.1f MB",
		agents, time.Since(began).Seconds(), mb(connected.heap), mb(idle.heap), mb(connected.own), mb(idle.own))

	most := l.capacity(t)
	run := &capacityRun{Agents: agents, Capacity: most, Rate: *capacityShare * most}
	run.samples = l.hold(t, run.Rate, *capacityTime)
	run.report(t)
	if *capacityTime >= time.Minute {
		run.check(t)
	}
	l.disconnect()
	l.returns(t, idle)
	return run
}

func mb(bytes float64) float64 { return bytes / 1e6 }

// settled is what the service has after a garbage collection.
func (l *capacityLoad) settled(t *testing.T) figures {
	t.Helper()
	servertest.Send(t, "GET", l.private+"/debug/pprof/heap?gc=1", "").Want(t, http.StatusOK)
	return l.figures(t)
}

// returns waits until the disconnected agents have left nothing: no goroutine, and no more memory
// than the caches of their keys. The service notices a dead connection when it writes to it: a
// command, or what keeps the stream alive every 55 seconds.
func (l *capacityLoad) returns(t *testing.T, idle figures) {
	t.Helper()
	const goroutines, heap, heapPerAgent, few = 30, 16e6, 2048, 1000
	if len(l.f.agents) <= few {
		if err := l.f.each(8, func(n int) error { return l.f.agents[n].order(l.f) }); err != nil {
			t.Fatal(err)
		}
	}
	err := poll.For(3*time.Minute, func() error {
		l.f.ours.client.CloseIdleConnections()
		now := l.settled(t)
		if now.goroutines > idle.goroutines+goroutines || now.heap > idle.heap+heap+heapPerAgent*float64(len(l.f.agents)) {
			return fmt.Errorf("%.0f goroutines and a heap of %.1f MB, before %.0f and %.1f MB", now.goroutines, mb(now.heap),
				idle.goroutines, mb(idle.heap))
		}
		t.Logf("after the agents have disconnected: %.0f goroutines, before %.0f; heap %.1f MB, before %.1f MB", now.goroutines,
			idle.goroutines, mb(now.heap), mb(idle.heap))
		return nil
	})
	if err != nil {
		t.Errorf("the service is not as before the agents: %v", err)
	}
}
