package fleetsim

import (
	"fmt"
	"io"
	"maps"
	"math"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// Report is how a run ended.
type Report struct {
	Agents      int   `json:"agents"`
	Commands    int   `json:"commands"`
	Succeeded   int   `json:"succeeded"`
	Failed      int   `json:"failed"`      // final, with an error
	Unconfirmed int   `json:"unconfirmed"` // final: the outcome will never be known
	Lost        int   `json:"lost"`        // not final
	Doubled     int   `json:"doubled"`     // carried out twice
	Departed    int   `json:"departed"`    // wiped or relinquished
	CheckIns    int64 `json:"checkIns"`

	// CheckIn is how long check-ins took.
	CheckIn Latency `json:"checkIn"`
	// Sizing is nil if no command could be sent.
	Sizing *Sizing `json:"sizing"`

	LostRequests       int64 `json:"lostRequests"`
	DuplicatedRequests int64 `json:"duplicatedRequests"`
	Crashes            int64 `json:"crashes"`
	Absences           int64 `json:"absences"`

	PostToDevice  Latency `json:"postToDevice"`
	PostToSuccess Latency `json:"postToSuccess"`
	// MemoryPerAgent is what is alive in the process after the fleet came up and
	// was not before, for each agent, in bytes: heap and stacks.
	MemoryPerAgent int64   `json:"memoryPerAgentBytes"`
	Seconds        float64 `json:"seconds"`
	// Failures says why commands failed, and how often.
	Failures map[string]int `json:"failures,omitempty"`
	// Refusals counts requests of agents and API keys that the service was too busy for, by its answer. They were repeated.
	Refusals map[string]int `json:"refusals,omitempty"`
	// Problems are what must not be. None: the run has passed.
	Problems []string `json:"problems"`
}

// Latency is over the commands that were measured.
type Latency struct {
	Count int     `json:"count"`
	P50   float64 `json:"p50Ms"`
	P99   float64 `json:"p99Ms"`
}

// report sums up. It is called when nothing moves any more.
func (f *fleet) report(memory int64) Report {
	r := Report{Agents: len(f.members), CheckIns: f.faults.checkIns.Load(), LostRequests: f.faults.lost.Load(),
		DuplicatedRequests: f.faults.duplicated.Load(), Crashes: f.faults.crashes.Load(), Absences: f.faults.absences.Load(),
		MemoryPerAgent: memory, Seconds: f.Clock().Sub(f.started).Seconds(), Failures: map[string]int{}, Problems: []string{}}
	var toDevice, toSuccess []time.Duration
	for _, m := range f.members {
		m.mu.Lock()
		r.count(m)
		for _, o := range m.orders {
			d, ok := m.deliveryOf(o)
			if !ok {
				continue
			}
			toDevice = append(toDevice, max(0, d.received.Sub(o.posted)))
			if !d.confirmed.IsZero() {
				toSuccess = append(toSuccess, d.confirmed.Sub(o.posted))
			}
		}
		m.mu.Unlock()
		for _, id := range m.device.doubled() {
			r.Doubled++
			f.problem("device %d carried out command %s twice", m.number, id)
		}
	}
	r.CheckIn = f.checkIns.latency()
	r.PostToDevice, r.PostToSuccess = latency(toDevice), latency(toSuccess)
	if r.Lost > 0 {
		f.problem("%d commands are not final", r.Lost)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	r.Problems, r.Refusals = append(r.Problems, f.problems...), maps.Clone(f.refusals)
	return r
}

// count adds a device's history.
func (r *Report) count(m *member) {
	r.Commands += len(m.orders)
	for _, e := range m.history {
		switch {
		case e.Status == "SUCCESS", e.Status == "IN_PROGRESS" && m.erased(): // the service takes note when the device stays silent
			r.Succeeded++
		case e.Status == "ERROR":
			r.Failed++
			r.Failures[e.Type+": "+kindOf(e.Outcome)]++
		case e.Status == "UNCONFIRMED":
			r.Unconfirmed++
		default:
			r.Lost++
		}
	}
	r.Lost += max(0, len(m.orders)-len(m.history))
	if m.ended.Load() {
		r.Departed++
	}
}

var moment = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ][0-9:.]+(Z|[+-]\d\d:?\d\d)?`)

// kindOf is an outcome without the times in it, so that equal reasons count
// together.
func kindOf(outcome string) string { return moment.ReplaceAllString(outcome, "(time)") }

func latency(all []time.Duration) Latency {
	if len(all) == 0 {
		return Latency{}
	}
	slices.Sort(all)
	at := func(share float64) float64 {
		i := int(math.Ceil(share*float64(len(all)))) - 1
		return float64(all[max(0, i)].Microseconds()) / 1000
	}
	return Latency{len(all), at(0.50), at(0.99)}
}

// Write prints the report for people.
func (r Report) Write(w io.Writer) error {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("Agents            %d (%d departed), %.1f s", r.Agents, r.Departed, r.Seconds)
	line("Commands          %d: %d succeeded, %d failed, %d unconfirmed, %d lost, %d carried out twice",
		r.Commands, r.Succeeded, r.Failed, r.Unconfirmed, r.Lost, r.Doubled)
	line("Check-ins         %d, p50 %.1f ms, p99 %.1f ms of real time", r.CheckIns, r.CheckIn.P50, r.CheckIn.P99)
	line("Faults            %d requests lost, %d doubled, %d crashes, %d absences", r.LostRequests, r.DuplicatedRequests,
		r.Crashes, r.Absences)
	line("POST to device    p50 %.1f ms, p99 %.1f ms of real time (%d)", r.PostToDevice.P50, r.PostToDevice.P99, r.PostToDevice.Count)
	line("POST to success   p50 %.1f ms, p99 %.1f ms of real time (%d)", r.PostToSuccess.P50, r.PostToSuccess.P99, r.PostToSuccess.Count)
	line("Memory per agent  %.1f KiB", float64(r.MemoryPerAgent)/1024)
	if r.Sizing != nil {
		r.Sizing.lines(line)
	}
	for _, why := range slices.Sorted(maps.Keys(r.Failures)) {
		line("Failed %d times: %s", r.Failures[why], why)
	}
	for _, why := range slices.Sorted(maps.Keys(r.Refusals)) {
		line("Refused %d times: %s", r.Refusals[why], why)
	}
	const shown = 20
	for _, p := range r.Problems[:min(shown, len(r.Problems))] {
		line("PROBLEM: %s", p)
	}
	if more := len(r.Problems) - shown; more > 0 {
		line("and %d more problems", more)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// liveMemory is what is alive in the process, in bytes: heap and stacks.
func liveMemory() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// histogram counts durations in buckets, each 5 % wider than the one before, from a microsecond to
// five minutes: a run of any length takes the same memory. The zero value is empty. It may be
// used concurrently.
type histogram struct {
	buckets [buckets]atomic.Int64
}

const (
	buckets = 400
	growth  = 1.05
)

func (h *histogram) add(d time.Duration) {
	at := int(math.Log(float64(max(1, d.Microseconds()))) / math.Log(growth))
	h.buckets[min(at, buckets-1)].Add(1)
}

// latency returns the percentiles, which are at most 5 % too high.
func (h *histogram) latency() Latency {
	var counts [buckets]int64
	var l Latency
	for i := range h.buckets {
		counts[i] = h.buckets[i].Load()
		l.Count += int(counts[i])
	}
	at := func(share float64) float64 {
		left := int64(math.Ceil(share * float64(l.Count)))
		for i, n := range counts {
			if left -= n; left <= 0 {
				return math.Pow(growth, float64(i+1)) / 1000
			}
		}
		return 0
	}
	if l.Count > 0 {
		l.P50, l.P99 = at(0.50), at(0.99)
	}
	return l
}
