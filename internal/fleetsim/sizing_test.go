package fleetsim

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/test/expect"
)

// played is what a run of 2,000 devices and 6,000 commands in ten seconds measured.
func played(t *testing.T, err error) Sizing {
	t.Helper()
	f := &fleet{members: make([]*member, 2000)}
	f.requests.Store(21_000)
	began := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	m := measured{before: cost{1, 60e6}, connected: cost{3, 74e6}, after: cost{9, 80e6}, began: began, requests: 1000, err: err}
	return f.sizing(m, began.Add(10*time.Second), 6000)
}

func TestSizing_Figures(t *testing.T) {
	t.Parallel()
	s := played(t, nil)
	expect.Equal(t, "sizing", expect.Values{
		"requests":           {s.Requests, int64(20_000)},
		"requests a second":  {s.RequestsPerSecond, 2000.0},
		"commands a second":  {s.CommandsPerSecond, 600.0},
		"memory of devices":  {s.Service.MemoryPer1000Devices, int64(7e6)},
		"memory of commands": {s.Service.MemoryPer1000Commands, int64(1e6)},
		"CPU of enrollments": {s.Service.CPUSecondsPer1000Enrolled, 1.0},
		"CPU of commands":    {s.Service.CPUSecondsPer1000Commands, 1.0},
		"advice": {s.Advice, "Plan 60 MB of memory and 7 MB for each 1,000 connected devices, and one CPU for each 800 " +
			"commands a second, of which they take 80 %."},
	})
}

// The text has every figure, or says what is missing.
func TestReport_WritesSizing(t *testing.T) {
	t.Parallel()
	alone, unknown := played(t, nil), played(t, errors.New("the metrics are missing"))
	for title, c := range map[string]struct {
		sizing Sizing
		want   []string
	}{
		"service alone": {alone, []string{"Load              2000 requests and 600 commands a second, for 10.0 s\n",
			"Service           60 MB of memory at first, 80 MB at most; each 1,000 devices 7.0 MB, each 1,000 commands 1.0 MB\n",
			"CPU               each 1,000 enrollments 1.00 s, each 1,000 commands 1.00 s\n", "Advice            Plan 60 MB"}},
		"no metrics": {unknown, []string{"Missing           the metrics are missing\n",
			"Advice            Plan with at least 600 commands a second"}},
	} {
		var text strings.Builder
		if err := (Report{Sizing: &c.sizing}).Write(&text); err != nil {
			t.Fatal(err)
		}
		for _, want := range c.want {
			if !strings.Contains(text.String(), want) {
				t.Errorf("%s: %q is missing in:\n%s", title, want, &text)
			}
		}
	}
}

// The cost is that of all replicas; what a listener does not serve is named.
func TestCost_OfReplicas(t *testing.T) {
	t.Parallel()
	serve := func(status int, text string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(text))
		}))
		t.Cleanup(s.Close)
		return s.URL + "/metrics"
	}
	good := serve(200, "# HELP process_cpu_seconds_total Time\nprocess_cpu_seconds_total 1.5\nprocess_resident_memory_bytes 6.5e+07\n")
	for title, c := range map[string]struct {
		addresses []string
		missing   string
	}{
		"two replicas": {[]string{good, good}, ""},
		"none":         {nil, "--metrics"},
		"no address":   {[]string{good, serve(404, "unknown endpoint")}, "answers 404"},
		"no process":   {[]string{serve(200, "go_goroutines 5\n")}, "has no process_cpu_seconds_total"},
		"no number":    {[]string{serve(200, "process_cpu_seconds_total many\n")}, "has no number"},
	} {
		f := &fleet{Options: Options{Metrics: c.addresses}, http: newTransport(1)}
		got, err := f.cost(t.Context())
		if c.missing == "" {
			expect.Equal(t, title, expect.Values{"error": {err, nil}, "CPU": {got.cpu, 3.0}, "memory": {got.memory, int64(130e6)}})
		} else if err == nil || !strings.Contains(err.Error(), c.missing) {
			t.Errorf("%s: %v, want %q", title, err, c.missing)
		}
	}
}

// Percentiles are exact to 5 %, however many durations there are.
func TestHistogram_Percentiles(t *testing.T) {
	t.Parallel()
	var s histogram
	for n := range 1000 {
		s.add(time.Duration(n+1) * time.Millisecond)
	}
	l := s.latency()
	for name, v := range map[string]struct{ got, want float64 }{"p50": {l.P50, 500}, "p99": {l.P99, 990}} {
		if v.got < v.want || v.got > v.want*growth {
			t.Errorf("%s is %.1f ms, want %.0f to %.0f", name, v.got, v.want, v.want*growth)
		}
	}
	s.add(24 * time.Hour) // in the last bucket
	if got := s.latency().Count; got != 1001 {
		t.Errorf("%d durations, want 1001", got)
	}
	if empty := (&histogram{}).latency(); empty != (Latency{}) {
		t.Errorf("no durations: %+v", empty)
	}
}

// Progress counts what is done, with its rate by the clock, and the last error of an agent.
func TestProgress_String(t *testing.T) {
	t.Parallel()
	p := Progress{Doing: "Sending commands", Done: 30, Total: 120, Rate: 10, Since: 3 * time.Second,
		LastError: `the last error of agent 1 is "refused"`}
	if got, want := p.String(), `Sending commands: 30 of 120 (25 %), 10 a second, 3 s; the last error of agent 1 is "refused"`; got !=
		want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := (Progress{Doing: "Waiting", Since: time.Second}).String(), "Waiting, 1 s"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
