package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/logfile"
	"github.com/musterhq/muster/internal/agent/protocol"
)

// The bounds of a simulated day, and of what is left after it.
const (
	dayRequests   = 1500      // connections that could wake the device's radio: check-ins, streams, uploads
	dayFiles      = 12        // files in the state directory
	dayBytes      = 512 << 10 // of all of them
	dayHeap       = 1 << 20   // how much the heap may have grown since the first hour
	dayGoroutines = 20        // and the goroutines
)

// badDay is a service, and the way to it, that fails in every way for a day: it refuses,
// stalls, drips, cuts answers, is away for hours, and breaks streams off.
type badDay struct {
	*commandWorld
	mu       sync.Mutex
	dice     *rand.Rand
	began    time.Time
	open     map[string]protocol.Envelope // commands that have no last word
	acked    map[string]int               // last words
	uploads  map[string]int
	requests int
	done     map[string]int // what the device did
	network  atomic.Int64
	healed   atomic.Bool // nothing fails any more

	heap       uint64 // after the first hour
	goroutines int
}

// Do implements agent.Device.
func (d *badDay) Do(_ context.Context, a agent.Action) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.done[a.CommandID]++
	return "did", nil
}

// Report implements agent.Device.
func (d *badDay) Report(context.Context, agent.Reporting) (agent.Report, error) {
	return agent.Report{Values: json.RawMessage(`{"batteryLevel":80}`)}, nil
}

// fault is how a request fails; empty: it does not.
func (d *badDay) fault() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.requests++
	hour := time.Since(d.began).Hours()
	switch {
	case d.healed.Load():
		return ""
	case hour >= 3 && hour < 6, hour >= 13 && hour < 14: // the service, or the network, is away
		return "drop"
	case d.dice.IntN(100) < 60:
		return ""
	}
	faults := []string{"drop", "503", "500", "stall", "drip", "cut", "foreign"}
	return faults[d.dice.IntN(len(faults))]
}

// RoundTrip implements http.RoundTripper.
func (d *badDay) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	answer := func(status int, body io.Reader) (*http.Response, error) {
		return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(body), Request: r}, nil
	}
	fault := d.fault()
	switch fault {
	case "drop":
		return nil, errAway
	case "stall": // the transport gives up on the head of an answer
		select {
		case <-r.Context().Done():
		case <-time.After(30 * time.Second):
		}
		return nil, errAway
	case "503", "500":
		status, _ := strconv.Atoi(fault)
		return answer(status, strings.NewReader(`{"error":"internal","message":"x"}`))
	case "drip":
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: drip{r.Context()}, Request: r}, nil
	case "foreign": // a captive portal
		return answer(http.StatusOK, strings.NewReader("<html>sign in</html>"))
	}
	if strings.HasSuffix(r.URL.Path, "/wake") {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{},
			Body: &dayStream{ctx: r.Context(), ends: time.Now().Add(d.lasts())}, Request: r}, nil
	}
	text := d.answer(r, body)
	if fault == "cut" {
		text = text[:len(text)/2]
	}
	return answer(http.StatusOK, strings.NewReader(text))
}

// lasts is how long a stream lasts: until the service restarts, or the way breaks.
func (d *badDay) lasts() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Duration(1+d.dice.IntN(90)) * time.Minute
}

// answer is what the service says, which happens also if the answer is lost.
func (d *badDay) answer(r *http.Request, body []byte) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var payload any = struct{}{}
	switch {
	case r.Method == http.MethodGet:
		payload = d.document
	case strings.Contains(r.URL.Path, "/log/"):
		if len(body) > protocol.MaxLog {
			d.t.Errorf("a log has %d bytes", len(body))
		}
		d.uploads[filepath.Base(r.URL.Path)]++
	default:
		checkin := d.checkin(body, r.Header.Get(protocol.HeaderSequence))
		d.trace, checkin.Commands = nil, nil
		var request protocol.CheckinRequest
		if err := json.Unmarshal(body, &request); err != nil {
			d.t.Error(err)
		}
		for _, ack := range request.Acks {
			if _, isOpen := d.open[ack.CommandID]; isOpen {
				d.acked[ack.CommandID]++
				delete(d.open, ack.CommandID)
			}
		}
		for _, c := range d.open {
			checkin.Commands = append(checkin.Commands, c)
		}
		payload = checkin
	}
	text, err := json.Marshal(payload)
	if err != nil {
		d.t.Error(err)
	}
	return string(text)
}

// order has the service send a command.
func (d *badDay) order(n int) {
	kind := []string{agent.ShowMessage, agent.OpenApp, "STATUS_REPORT", "SYNC_POLICY", "UPLOAD_LOG"}[n%5]
	c := protocol.Command{DeviceID: "d1", ID: fmt.Sprintf("c-%d", n), Type: kind, Args: json.RawMessage(`{}`), NotBefore: 1}
	sealed := commandEnvelope(d.t, d.key, c)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open[c.ID] = sealed
}

// dayStream is a wake stream: a comment each minute, a hint every quarter of an hour.
type dayStream struct {
	ctx  context.Context
	ends time.Time
	n    int
}

// Read implements io.Reader.
func (s *dayStream) Read(p []byte) (int, error) {
	if !time.Now().Before(s.ends) {
		return 0, io.ErrUnexpectedEOF
	}
	select {
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	case <-time.After(time.Minute):
	}
	if s.n++; s.n%15 == 0 {
		return copy(p, "data: {}\n\n"), nil
	}
	return copy(p, ": here\n\n"), nil
}

// Close implements io.Closer.
func (*dayStream) Close() error { return nil }

// run runs an agent's process for a while.
func (d *badDay) run(kept *logfile.File, lasts time.Duration) {
	a, err := agent.New(agent.Options{Dir: d.dir, Device: d, Client: &http.Client{Transport: d}, Now: time.Now,
		Network: func() string { return strconv.FormatInt(d.network.Load(), 10) }, Log: slog.New(slog.NewTextHandler(kept, nil)),
		Kept: kept})
	if err != nil {
		d.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(d.t.Context(), lasts)
	defer cancel()
	go d.moves(ctx)
	if err := a.Run(ctx); ctx.Err() == nil {
		d.t.Errorf("the agent ended: %v", err)
	}
	if err := a.Close(); err != nil {
		d.t.Error(err)
	}
}

// moves changes the device's network every few minutes, also in the middle of a pause.
func (d *badDay) moves(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(7 * time.Minute):
			d.network.Add(1)
		}
	}
}

// load is what the process uses.
func load() (heap uint64, goroutines int) {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc, runtime.NumGoroutine()
}

// A day with a service that fails in every way costs the device a bounded number of
// connections, bounded files and no memory; every command is done, once, when it is over.
func TestRun_ADayOfFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &badDay{commandWorld: newCommandWorld(t, vectorKey(t, "device"), "LAUNCH_APP", "NEW", "intime,answers,does"),
			dice:  rand.New(rand.NewPCG(1, 2)),
			began: time.Now(), open: map[string]protocol.Envelope{}, acked: map[string]int{}, uploads: map[string]int{},
			done: map[string]int{}}
		kept := logfile.Open(filepath.Join(d.dir, agent.LogFile))
		orders := 0
		for hour := range 24 {
			for range 5 {
				d.order(orders)
				orders++
			}
			d.run(kept, 30*time.Minute)
			d.run(kept, 30*time.Minute) // another process
			if hour == 0 {
				d.heap, d.goroutines = load()
			}
		}
		heap, goroutines := load()
		requests := d.requests
		d.healed.Store(true)
		d.run(kept, 30*time.Minute)
		d.settled(orders)
		files, bytes := d.files()
		t.Logf("a day of faults: %d requests, %d files with %d bytes, the heap %+d bytes and %+d goroutines since the first hour",
			requests, files, bytes,
			int64(heap)-int64(d.heap), goroutines-d.goroutines)
		if requests > dayRequests {
			t.Errorf("%d requests, want at most %d", requests, dayRequests)
		}
		if files > dayFiles || bytes > dayBytes {
			t.Errorf("%d files with %d bytes, want at most %d with %d", files, bytes, dayFiles, dayBytes)
		}
		if heap > d.heap+dayHeap || goroutines > d.goroutines+dayGoroutines {
			t.Errorf("want at most %d bytes of heap and %d goroutines more", dayHeap, dayGoroutines)
		}
	})
}

// settled checks that each command had its effect, or its upload, and its last word.
func (d *badDay) settled(orders int) {
	d.t.Helper()
	for n := range orders {
		id := fmt.Sprintf("c-%d", n)
		if d.acked[id] != 1 {
			d.t.Errorf("command %s has %d last words", id, d.acked[id])
		}
		switch n % 5 {
		case 0, 1:
			if d.done[id] != 1 {
				d.t.Errorf("command %s was done %d times", id, d.done[id])
			}
		case 4:
			if d.uploads[id] < 1 {
				d.t.Errorf("for command %s no log was uploaded", id)
			}
		}
	}
}

// files are the number and the size of what is in the state directory.
func (d *badDay) files() (n int, size int64) {
	err := filepath.WalkDir(d.dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		n++
		size += info.Size()
		return err
	})
	if err != nil {
		d.t.Error(err)
	}
	return n, size
}
