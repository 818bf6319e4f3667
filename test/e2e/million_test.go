package e2e_test

import (
	"database/sql"
	"flag"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/database/pgtest"
	"github.com/musterhq/muster/internal/service/ops"
	"github.com/musterhq/muster/test/port"
)

// Two replicas on one PostgreSQL with many enrolled agents, most of which a loader made. The load
// is the same a second for the whole time, however long the service takes. A run worth quoting is
//
//	go test ./test/e2e -run TestMillion_ -v -million-agents 1000000 -million-time 10m -million-checkins 1500 \
//		-million-commands 20 -timeout 60m
var (
	millionAgents = flag.Int("million-agents", 500, "enrolled agents in TestMillion_HoldsLoad, at most 9,000,000")
	millionTime   = flag.Duration("million-time", 4*time.Second,
		"how long it holds the load; what it measures is checked from a minute on, memory, dead rows and WAL from five minutes on")
	millionCheckIns = flag.Float64("million-checkins", 50, "check-ins a second")
	millionCommands = flag.Float64("million-commands", 5, "commands a second")
	millionChart    = flag.String("million-chart", "", "file for its chart (SVG); by default a temporary one")
)

func TestMillion_HoldsLoad(t *testing.T) {
	t.Parallel()
	m := newMillion(t)
	m.fill(t)
	ended := m.follow(t)
	m.verifyFilled(t)
	samples := m.hold(t)
	ended(t)
	m.settled(t)
	m.report(t, samples)
	if *millionTime >= time.Minute {
		m.check(t, samples)
	}
	m.draw(t, samples)
}

func (m *million) draw(t *testing.T, samples []sample) {
	t.Helper()
	dead := func(table string) chartLine {
		return chartLine{Name: table, of: func(s sample) float64 { return s.dead[table] / 1000 }}
	}
	title := fmt.Sprintf("%d enrolled agents, %.0f check-ins and %.0f commands a second, two replicas",
		*millionAgents, *millionCheckIns, *millionCommands)
	drawChart(t, *millionChart, title, samples, []chartPanel{
		{Name: "p99, ms", Lines: []chartLine{
			{Name: "commands", of: func(s sample) float64 { return s.p99 }},
			{Name: "check-ins", of: func(s sample) float64 { return s.checkInP99 }}}},
		{Name: "Dead rows, thousands", Lines: []chartLine{dead("agent_devices"), dead("assets")}},
		{Name: "WAL, MB a second", Lines: []chartLine{{Name: "WAL", of: func(s sample) float64 { return mb(s.walBySecond) }}}},
		memoryPanel("Memory of both replicas, MB"),
	})
}

// million is the two replicas and their database.
type million struct {
	meter
	url      string
	pool     *sql.DB
	replicas [2]*loadFleet // the first has the one agent that enrolled by itself
	private  [2]string     // where they have their metrics
	requests atomic.Int64
	busy     [4096]chan struct{} // by the device: one request at a time, as agents do
	events   *eventLoad          // the commands that were accepted, and their events
}

// newMillion starts the replicas with an agent.
func newMillion(t *testing.T) *million {
	t.Helper()
	m := &million{url: durable(pgtest.DSN(t))}
	m.meter = newMeter(m.figures)
	pool, err := sql.Open("pgx", m.url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() })
	m.pool = pool
	for i := range m.busy {
		m.busy[i] = make(chan struct{}, 1)
	}
	file := filepath.Join(t.TempDir(), "keys")
	if err := ops.MakeKeyFile(file, time.Now()); err != nil {
		t.Fatal(err)
	}
	environment := func(n int) []string {
		private := port.Address(t)
		m.private[n] = "http://" + private
		return []string{"env", "MUSTER_KEY_FILE=" + file, "MUSTER_METRICS_LISTEN=" + private}
	}
	const spare = 20
	keys := 2 * (keysFor(*millionCommands, 2**millionTime) + spare)
	one := newLoadFleet(t, m.url, 1, keys, environment(0)...)
	two := &loadFleet{ours: startUnderLoad(t, "service", m.url, environment(1)...), keys: one.keys[keys/2:]}
	one.keys = one.keys[:keys/2]
	m.replicas = [2]*loadFleet{one, two}
	for _, f := range m.replicas {
		f.ours.client = &http.Client{Timeout: 2 * time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: capacitySlots}}
	}
	return m
}

// next are the replicas in turn: that of a call, and the other one.
func (m *million) next() (*loadFleet, *loadFleet) {
	n := m.requests.Add(1) % 2
	return m.replicas[n], m.replicas[1-n]
}

// figures are those of both replicas, and of the database.
func (m *million) figures(t *testing.T) (sum figures) {
	t.Helper()
	for n, f := range m.replicas {
		process := processFigures(t, m.private[n], f.ours.pid)
		sum.goroutines += process.goroutines
		sum.heap += process.heap
		sum.own += process.own
		sum.resident += process.resident
		sum.cpu += process.cpu
	}
	sum.stored = m.storage(t)
	return sum
}

// report logs the medians of each third, and the most dead rows, as the documentation has them.
func (m *million) report(t *testing.T, samples []sample) {
	t.Helper()
	var text strings.Builder
	row := func(name, format string, over func([]sample, func(sample) float64) float64, of func(sample) float64) {
		fmt.Fprintf(&text, "\n| %s |", name)
		for _, third := range thirdsOf(t, samples) {
			fmt.Fprintf(&text, " "+format+" |", over(third, of))
		}
	}
	text.WriteString("\n| | first third | second | last |\n|---|---|---|---|")
	row("check-ins a second", "%.0f", medianOf, func(s sample) float64 { return s.checkInRate })
	row("check-ins, p50 in ms", "%.1f", medianOf, func(s sample) float64 { return s.checkInP50 })
	row("check-ins, p99 in ms", "%.1f", medianOf, func(s sample) float64 { return s.checkInP99 })
	row("commands a second, there and back", "%.1f", medianOf, func(s sample) float64 { return s.rate })
	row("commands, p50 in ms", "%.1f", medianOf, func(s sample) float64 { return s.p50 })
	row("commands, p99 in ms", "%.1f", medianOf, func(s sample) float64 { return s.p99 })
	row("events, p99 in ms", "%.1f", medianOf, func(s sample) float64 { return s.eventP99 })
	for _, table := range watched() {
		row("dead rows of `"+table+"`, most", "%.0f", mostOf, func(s sample) float64 { return s.dead[table] })
	}
	row("WAL, MB a second", "%.2f", medianOf, func(s sample) float64 { return mb(s.walBySecond) })
	row("size of the database, MB", "%.0f", medianOf, func(s sample) float64 { return mb(s.size) })
	row("memory of both replicas, MB", "%.0f", medianOf, func(s sample) float64 { return mb(s.own) })
	row("their heaps, MB", "%.0f", medianOf, func(s sample) float64 { return mb(s.heap) })
	row("their goroutines", "%.0f", medianOf, func(s sample) float64 { return s.goroutines })
	row("their CPUs", "%.2f", medianOf, func(s sample) float64 { return s.cpuShare })
	row("runs of autovacuum so far", "%.0f", mostOf, func(s sample) (n float64) {
		for _, one := range s.vacuums {
			n += one
		}
		return n
	})
	t.Log(text.String())
}

// levelsFrom is how long the load is held before memory, dead rows and WAL are checked: autovacuum runs once
// a minute and waits until a fifth of a table is dead, and a replica remembers 100,000 keys.
const levelsFrom = 5 * time.Minute

// check fails if the load was not reached, or the run got worse.
func (m *million) check(t *testing.T, samples []sample) {
	t.Helper()
	const ms = 20
	worse := []measure{
		{"p99 of check-ins in ms", func(s sample) float64 { return s.checkInP99 }, medianOf, 0, 1.5, ms},
		{"p99 of commands in ms", func(s sample) float64 { return s.p99 }, medianOf, 0, 1.5, ms},
		{"goroutines", func(s sample) float64 { return s.goroutines }, medianOf, 1, 1.2, 0},
	}
	if *millionTime >= levelsFrom {
		worse = append(worse,
			measure{"memory in MB", func(s sample) float64 { return mb(s.own) }, medianOf, 1, 1.2, 0},
			measure{"MB of WAL a second", func(s sample) float64 { return mb(s.walBySecond) }, medianOf, 1, 1.5, 0})
		for _, table := range watched() {
			worse = append(worse, measure{"dead rows of " + table, func(s sample) float64 { return s.dead[table] }, mostOf, 1, 1.5, 1000})
		}
	}
	checkTrends(t, samples, worse)
	reached(t, "check-ins", samples, func(s sample) float64 { return s.checkInRate }, *millionCheckIns)
	reached(t, "commands", samples, func(s sample) float64 { return s.rate }, *millionCommands)
}
