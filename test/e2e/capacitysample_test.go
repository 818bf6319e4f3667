package e2e_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/servertest"
)

// figures are what the service's process has at a moment; memory in bytes. own is resident memory
// without pages of files: SQLite maps up to 1 GB of the database, which the system can take back.
type figures struct {
	goroutines, heap, own, resident, cpu float64
	stored
}

func (l *capacityLoad) figures(t *testing.T) figures {
	t.Helper()
	return processFigures(t, l.private, l.f.ours.pid)
}

// processFigures reads the metrics of a process.
func processFigures(t *testing.T, private string, pid int) (f figures) {
	t.Helper()
	_, metrics := servertest.Fetch(t, private+"/metrics")
	into := map[string]*float64{"go_goroutines": &f.goroutines, "go_memstats_heap_alloc_bytes": &f.heap,
		"process_resident_memory_bytes": &f.resident, "process_cpu_seconds_total": &f.cpu}
	for line := range strings.Lines(metrics) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		if value := into[name]; value != nil {
			var err error
			if *value, err = strconv.ParseFloat(text, 64); err != nil {
				t.Fatal(err)
			}
		}
	}
	if f.goroutines == 0 || f.heap == 0 {
		t.Fatal("the metrics do not have the figures of the process")
	}
	f.own = ownMemory(t, pid)
	return f
}

// ownMemory is what a process has resident and not from files, in bytes.
func ownMemory(t *testing.T, pid int) float64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skip("memory can be measured on Linux alone")
	}
	_, after, _ := strings.Cut(string(text), "\nRssAnon:")
	kib, err := strconv.ParseFloat(strings.TrimSpace(strings.SplitN(after, "kB", 2)[0]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib * 1024
}

// sample is an interval under load. Times are in milliseconds.
type sample struct {
	figures
	at                    time.Duration
	rate, checkInRate     float64 // commands and check-ins a second
	p50, p99              float64 // commands
	checkInP50            float64
	checkInP99            float64
	eventP99              float64 // events
	commands, events      int
	cpuShare, walBySecond float64
}

// sample measures each interval until ctx ends, and three at least: a busy machine may be late for those of a short run.
func (m *meter) sample(ctx context.Context, t *testing.T, every time.Duration) (all []sample) {
	t.Helper()
	began, last, before := time.Now(), time.Now(), m.read(t)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			if len(all) >= 3 {
				return all
			}
			<-tick.C
		case <-tick.C:
		}
		took, polled, delays, now := m.took.take(), m.polled.take(), m.eventTimes.take(), time.Now()
		seconds := now.Sub(last).Seconds()
		s := sample{figures: m.read(t), at: now.Sub(began), commands: len(took), events: len(delays),
			rate: float64(len(took)) / seconds, p50: percentile(took, 50), p99: percentile(took, 99), eventP99: percentile(delays, 99),
			checkInRate: float64(len(polled)) / seconds, checkInP50: percentile(polled, 50), checkInP99: percentile(polled, 99)}
		s.cpuShare, s.walBySecond = (s.cpu-before.cpu)/seconds, (s.wal-before.wal)/seconds
		all, last, before = append(all, s), now, s.figures
	}
}

// percentile is in milliseconds; 0: nothing was measured.
func percentile(of []time.Duration, share int) float64 {
	if len(of) == 0 {
		return 0
	}
	slices.Sort(of)
	return float64(of[min(len(of)-1, len(of)*share/100)]) / float64(time.Millisecond)
}

// capacityRun is what was measured.
type capacityRun struct {
	Agents         int
	Capacity, Rate float64 // commands a second: at most, and held
	samples        []sample
}

// measure is one that must not get worse: that of the last third of the samples may be
// the factor times that of a third before, and a little more.
type measure struct {
	what        string
	of          func(sample) float64
	over        func([]sample, func(sample) float64) float64 // medianOf or mostOf
	than        int                                          // the third that it is compared with, from 0
	factor, few float64
}

// checkTrends fails for each measure that was worse in the last third.
func checkTrends(t *testing.T, samples []sample, all []measure) {
	t.Helper()
	thirds := thirdsOf(t, samples)
	for _, m := range all {
		before, last := m.over(thirds[m.than], m.of), m.over(thirds[2], m.of)
		if last > before*m.factor+m.few {
			t.Errorf("%s: %.1f in the last third, %.1f in third %d; want at most %.1f times as much", m.what, last,
				before, m.than+1, m.factor)
		}
	}
}

func thirdsOf(t *testing.T, samples []sample) [3][]sample {
	t.Helper()
	if len(samples) < 3 {
		t.Fatalf("%d samples, want three at least", len(samples))
	}
	third := len(samples) / 3
	return [3][]sample{samples[:third], samples[third : 2*third], samples[2*third:]}
}

// reached fails if the load was not.
func reached(t *testing.T, what string, samples []sample, of func(sample) float64, want float64) {
	t.Helper()
	const share = 0.95
	if rate := medianOf(samples, of); rate < share*want {
		t.Errorf("%.0f %s a second instead of %.0f: the service does not keep up", rate, what, want)
	}
}

// check fails if the last third of the run was worse than the second, or the load was not reached.
func (r *capacityRun) check(t *testing.T) {
	t.Helper()
	checkTrends(t, r.samples, []measure{
		{"p99 of commands in ms", func(s sample) float64 { return s.p99 }, medianOf, 1, 2, 0},
		{"memory in MB", func(s sample) float64 { return mb(s.own) }, medianOf, 1, 1.2, 0},
		{"goroutines", func(s sample) float64 { return s.goroutines }, medianOf, 1, 1.2, 0},
	})
	reached(t, "commands", r.samples, func(s sample) float64 { return s.rate }, r.Rate)
}

func medianOf(samples []sample, of func(sample) float64) float64 {
	values := valuesOf(samples, of)
	slices.Sort(values)
	return values[len(values)/2]
}

func mostOf(samples []sample, of func(sample) float64) float64 {
	return slices.Max(valuesOf(samples, of))
}

func valuesOf(samples []sample, of func(sample) float64) []float64 {
	values := make([]float64, len(samples))
	for i, s := range samples {
		values[i] = of(s)
	}
	return values
}

// report logs the medians of each third.
func (r *capacityRun) report(t *testing.T) {
	t.Helper()
	commands := 0
	for _, s := range r.samples {
		commands += s.commands
	}
	t.Logf("%d agents, capacity %.0f commands a second, held %.0f for %.0f s: %d commands", r.Agents, r.Capacity, r.Rate,
		r.samples[len(r.samples)-1].at.Seconds(), commands)
	for n, part := range thirdsOf(t, r.samples) {
		of := func(get func(sample) float64) float64 { return medianOf(part, get) }
		t.Logf("third %d: %.0f/s, p50 %.1f ms, p99 %.1f ms, p99 of check-ins %.1f ms, memory %.1f MB, with mapped files %.1f MB, heap "+
			"%.1f MB, %.0f goroutines, %.2f CPUs", n+1,
			of(func(s sample) float64 { return s.rate }), of(func(s sample) float64 { return s.p50 }),
			of(func(s sample) float64 { return s.p99 }),
			of(func(s sample) float64 { return s.checkInP99 }), of(func(s sample) float64 { return mb(s.own) }),
			of(func(s sample) float64 { return mb(s.resident) }),
			of(func(s sample) float64 { return mb(s.heap) }), of(func(s sample) float64 { return s.goroutines }),
			of(func(s sample) float64 { return s.cpuShare }))
	}
}
