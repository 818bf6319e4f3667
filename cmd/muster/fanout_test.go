package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// fleet is a service with devices, which notes each request that has an effect and repeats
// its answer for the same Idempotency-Key.
type fleet struct {
	devices int

	mu    sync.Mutex
	calls int
	keys  map[string][]string // of the requests that had an effect, by device
	hangs int                 // every how many effects the answer does not come; 0: never
	done  chan struct{}       // gets one for each effect
}

func newFleet(devices int) *fleet {
	return &fleet{devices: devices, keys: map[string][]string{}, done: make(chan struct{}, 10000)}
}

func (f *fleet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodGet {
		f.list(w, r)
		return
	}
	f.mu.Lock()
	f.calls++
	device, key := strings.TrimSuffix(r.URL.Path, "/commands/sync-policy"), r.Header.Get("Idempotency-Key")
	known := false
	effects := 0
	for path, all := range f.keys {
		effects += len(all)
		for _, one := range all {
			known = known || one == key && path == device
		}
	}
	if !known && f.calls%11 == 0 { // the budget
		f.mu.Unlock()
		w.Header().Set("Retry-After", "0")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = w.Write([]byte(`{"error":"Too Many Requests","message":"wait","status":429}`))
		return
	}
	if !known {
		f.keys[device] = append(f.keys[device], key)
		f.done <- struct{}{}
	}
	hang := !known && f.hangs > 0 && effects%f.hangs == 0 && effects+1 < f.devices // the last is answered
	f.mu.Unlock()
	if hang {
		<-r.Context().Done()
		return
	}
	_, _ = w.Write([]byte(`{"status":"IN_PROGRESS"}`))
}

func (f *fleet) list(w http.ResponseWriter, r *http.Request) {
	var page, size int
	_, _ = fmt.Sscan(r.URL.Query().Get("page"), &page)
	_, _ = fmt.Sscan(r.URL.Query().Get("size"), &size)
	type one struct {
		PathName string `json:"pathName"`
	}
	content := []one{}
	for i := page * size; i < min(f.devices, (page+1)*size); i++ {
		content = append(content, one{fmt.Sprintf("enterprises/acme/assets/device-%d", i)})
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"content": content, "last": (page+1)*size >= f.devices})
}

// all reports whether every device has been sent to.
func (f *fleet) all() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.keys) == f.devices
}

// calm has every request answered.
func (f *fleet) calm() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hangs = 0
}

// each checks that every device has been sent to so many times.
func (f *fleet) each(t *testing.T, times int) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.keys) != f.devices {
		t.Errorf("%d of %d devices were sent to", len(f.keys), f.devices)
	}
	for device, keys := range f.keys {
		if len(keys) != times {
			t.Errorf("%s was sent to %d times, want %d", device, len(keys), times)
		}
	}
}

// A command for several devices that is killed, interrupted or left without an answer, any
// number of times, goes on when it is given again, and reaches each device once.
func TestFanOut_KilledAndInterruptedSendsOnce(t *testing.T) {
	t.Parallel()
	f := newFleet(20)
	f.hangs = 4
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	p := processes{t: t, dir: t.TempDir(), env: []string{"XDG_CONFIG_HOME=" + t.TempDir()}}
	if err := os.WriteFile(filepath.Join(p.dir, "key"), []byte("mk_abcdefgh_x"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"devices", "sync-policy", "--filter", "all=true", "--url", server.URL, "--key-file", "key"}
	kills := 0
	for ; ; kills++ {
		c := p.command(args...)
		c.Stderr = nil
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- c.Wait() }()
		stop := false
		for left := 1 + rand.IntN(8); left > 0 && !stop; left-- { // effects until it is ended
			select {
			case <-f.done:
			case err := <-ended:
				if err != nil {
					t.Fatalf("it ends with %v after %d kills", err, kills)
				}
				stop = true
			case <-time.After(time.Second): // it hangs, or is slow to start
				left = 1
			}
		}
		if !stop && f.all() { // a signal may come when the run is finished, and the next command would begin one
			if err := <-ended; err != nil {
				t.Fatalf("it ends with %v after %d kills", err, kills)
			}
			stop = true
		}
		if stop {
			break
		}
		signal := []syscall.Signal{syscall.SIGKILL, syscall.SIGINT, syscall.SIGTERM}[kills%3]
		_ = c.Process.Signal(signal)
		if err := <-ended; err == nil {
			break // it was done
		}
	}
	t.Logf("%d kills and interruptions", kills)
	if kills < 3 {
		t.Errorf("it was ended %d times only", kills)
	}
	f.each(t, 1)

	f.calm()
	var summary struct{ Total, Accepted int }
	p.json(&summary, args...) // the run was finished: this is a new one
	if summary.Total != 20 || summary.Accepted != 20 {
		t.Errorf("the next run says %+v", summary)
	}
	f.each(t, 2)
}
