package e2e_test

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// figures are what the service's process has at a moment; memory in bytes. own is resident memory
// without pages of files: SQLite maps up to 1 GB of the database, which the system can take back.
type figures struct{ goroutines, heap, own, resident, cpu float64 }

// figures reads the metrics.
func (l *capacityLoad) figures(t *testing.T) (f figures) {
	t.Helper()
	response, err := http.Get(l.private + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	into := map[string]*float64{"go_goroutines": &f.goroutines, "go_memstats_heap_alloc_bytes": &f.heap,
		"process_resident_memory_bytes": &f.resident, "process_cpu_seconds_total": &f.cpu}
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		name, text, _ := strings.Cut(lines.Text(), " ")
		if value := into[name]; value != nil {
			if *value, err = strconv.ParseFloat(text, 64); err != nil {
				t.Fatal(err)
			}
		}
	}
	if f.goroutines == 0 || f.heap == 0 {
		t.Fatal("the metrics do not have the figures of the process")
	}
	f.own = ownMemory(t, l.f.ours.pid)
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
	at                   time.Duration
	rate                 float64 // commands a second
	p50, p99, checkInP99 float64
	commands, checkIns   int
	cpuShare             float64
}

// sample measures each interval until ctx ends.
func (l *capacityLoad) sample(ctx context.Context, t *testing.T, every time.Duration) (all []sample) {
	t.Helper()
	began, last, before := time.Now(), time.Now(), l.figures(t)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return all
		case <-tick.C:
		}
		took, polled, now := l.took.take(), l.polled.take(), time.Now()
		s := sample{figures: l.figures(t), at: now.Sub(began), commands: len(took), checkIns: len(polled)}
		seconds := now.Sub(last).Seconds()
		s.rate, s.p50, s.p99, s.checkInP99 = float64(len(took))/seconds, percentile(took, 50), percentile(took, 99), percentile(polled, 99)
		s.cpuShare = (s.cpu - before.cpu) / seconds
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

// steady are the measurements that must not get worse, and by which factor the median of the last
// third of the samples may be above that of the second third.
var steady = []struct {
	what string
	of   func(sample) float64
	by   float64
}{
	{"p99 of commands in ms", func(s sample) float64 { return s.p99 }, 2},
	{"memory in MB", func(s sample) float64 { return mb(s.own) }, 1.2},
	{"goroutines", func(s sample) float64 { return s.goroutines }, 1.2},
}

// judge fails if the last third of the run was worse than the second, or the load was not reached.
func (r *capacityRun) judge(t *testing.T) {
	t.Helper()
	third := len(r.samples) / 3
	for _, m := range steady {
		second, last := medianOf(r.samples[third:2*third], m.of), medianOf(r.samples[2*third:], m.of)
		if last > second*m.by {
			t.Errorf("%s: %.1f in the last third, %.1f in the second; want at most %.1f times as much", m.what, last, second, m.by)
		}
	}
	const reached = 0.95
	if rate := medianOf(r.samples, func(s sample) float64 { return s.rate }); rate < reached*r.Rate {
		t.Errorf("%.0f commands a second instead of %.0f: the service does not keep up", rate, r.Rate)
	}
}

func medianOf(samples []sample, of func(sample) float64) float64 {
	values := make([]float64, len(samples))
	for i, s := range samples {
		values[i] = of(s)
	}
	slices.SortFunc(values, cmp.Compare)
	return values[len(values)/2]
}

// report logs the medians of each third.
func (r *capacityRun) report(t *testing.T) {
	t.Helper()
	if len(r.samples) < 3 {
		t.Fatalf("%d samples, want three at least", len(r.samples))
	}
	commands := 0
	for _, s := range r.samples {
		commands += s.commands
	}
	t.Logf("%d agents, capacity %.0f commands a second, held %.0f for %.0f s: %d commands", r.Agents, r.Capacity, r.Rate, r.samples[len(r.samples)-1].at.Seconds(), commands)
	third := len(r.samples) / 3
	for n, part := range [][]sample{r.samples[:third], r.samples[third : 2*third], r.samples[2*third:]} {
		of := func(get func(sample) float64) float64 { return medianOf(part, get) }
		t.Logf("third %d: %.0f/s, p50 %.1f ms, p99 %.1f ms, p99 of check-ins %.1f ms, memory %.1f MB, with mapped files %.1f MB, heap %.1f MB, %.0f goroutines, %.2f CPUs", n+1,
			of(func(s sample) float64 { return s.rate }), of(func(s sample) float64 { return s.p50 }), of(func(s sample) float64 { return s.p99 }),
			of(func(s sample) float64 { return s.checkInP99 }), of(func(s sample) float64 { return mb(s.own) }), of(func(s sample) float64 { return mb(s.resident) }),
			of(func(s sample) float64 { return mb(s.heap) }), of(func(s sample) float64 { return s.goroutines }), of(func(s sample) float64 { return s.cpuShare }))
	}
}
