package demo_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/client"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/service/demo"
	"github.com/musterhq/muster/test/poll"
)

// running is a demo, with what it has printed.
type running struct {
	t    *testing.T
	url  string
	key  string
	link string // signs in once
	stop func()
	// ahead is how far the demo's clock is ahead, in nanoseconds.
	ahead atomic.Int64
	// rounds is the background work of the demo's service.
	rounds servertest.Rounds
}

// screen is what a person sees.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *screen) find(expression string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := regexp.MustCompile(expression).FindSubmatch(s.text.Bytes())
	if found == nil {
		return ""
	}
	return string(found[1])
}

func start(t *testing.T, dir string) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	out, done, r := &screen{}, make(chan error, 1), &running{t: t}
	now := func() time.Time { return time.Now().Add(time.Duration(r.ahead.Load())) }
	go func() {
		settings := demo.Settings{Data: dir, Listen: "127.0.0.1:0", Ticker: r.rounds.Ticker}
		done <- demo.Run(ctx, settings, now, slog.New(slog.DiscardHandler), out)
	}()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the demo did not end well: %v", err)
		}
	})
	t.Cleanup(r.stop)
	eventually(t, "the demo is up", func() bool { return out.find(`Three commands (to) try`) != "" })
	for _, want := range []string{`Portal +(http://localhost:)`, `Controls +(at most 25 devices in 60 minutes)`,
		`approval of policy changes: (off); authorization of destructive commands: off; a person with an account of any age`} {
		if out.find(want) == "" {
			t.Errorf("the demo does not print %s", want)
		}
	}
	r.url, r.key, r.link = out.find(`(http://[^\s]+)`), out.find(`API key +(\S+)`), out.find(`Open +(http://\S+)`)
	return r
}

// eventually waits: a machine under load takes its time.
func eventually(t *testing.T, what string, ready func() bool) {
	t.Helper()
	if err := poll.For(2*time.Minute, func() error {
		if !ready() {
			return errors.New("not in time")
		}
		return nil
	}); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// linkSignsInOnce follows the link that the demo prints: to the overview, then to a page that
// says that it was used.
func (r *running) linkSignsInOnce() {
	r.t.Helper()
	for _, want := range []string{"<title>Overview", "was used already"} {
		page := client.NewBrowser(r.url).Get(r.t.Context(), r.link)
		if !strings.Contains(page.Body, want) {
			r.t.Errorf("the link %s leads to %d %s, which does not say %s", r.link, page.Status, page.Path, want)
		}
	}
}

func (r *running) call(method, path string, into any) int {
	r.t.Helper()
	answer := servertest.Client{TB: r.t, URL: r.url, Key: r.key}.Do(method, path, nil)
	if into != nil {
		answer.JSON(r.t, into)
	}
	return answer.Status
}

type device struct {
	PathName, Identification, Status string
	ManagedDevice                    *struct{ ManagementType, PolicyName string }
}

// agents are the devices with Muster's own agent, by name, and the number of
// all assets.
func (r *running) agents() (map[string]device, int) {
	r.t.Helper()
	var page struct{ Content []device }
	r.call("GET", "/assets?size=100", &page)
	found := map[string]device{}
	for _, d := range page.Content {
		if d.ManagedDevice != nil && d.ManagedDevice.ManagementType == "AGENT" {
			found[d.Identification] = d
		}
	}
	return found, len(page.Content)
}

// The demo has kiosks, a handheld and headsets with the real agent, which obey,
// and which are the same after another start on the same directory.
func TestDemo_Agents(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := start(t, dir)
	first.linkSignsInOnce()
	var before map[string]device
	eventually(t, "every agent has its policy", func() bool {
		before, _ = first.agents()
		for _, d := range before {
			if d.Status != "ACTIVE" {
				return false
			}
		}
		return len(before) == 5
	})
	_, total := first.agents()
	first.obey(before["I-Series 4 0417"], "reboot", "SUCCESS")
	if got := before["VIVE Focus 3 5570"].ManagedDevice.PolicyName; got != "Training headsets" {
		t.Errorf("the headset has the policy %q", got)
	}
	wiped := before["EA660 H31C"]
	first.obey(wiped, "wipe", "IN_PROGRESS")
	eventually(t, "the device erases itself", func() bool { return erased(t, dir) })
	eventually(t, "the wipe is done", func() bool { // its silence proves it, while the service listens
		first.ahead.Add(int64(45 * time.Second))
		first.rounds.All(t)
		return first.latest(wiped) == "SUCCESS"
	})
	first.stop()

	second := start(t, dir)
	after, still := second.agents()
	if len(after) != 4 || still != total {
		t.Errorf("after another start there are %d agents and %d assets, want 4 and %d", len(after), still, total)
	}
	for name, d := range after {
		if d.PathName != before[name].PathName {
			t.Errorf("%s became another asset", name)
		}
	}
	second.obey(after["I-Series 4 0418"], "reboot", "SUCCESS")
	second.obey(after["I-Series 4 0418"], "upload-log", "SUCCESS")
}

// obey sends a command and waits for its end.
func (r *running) obey(d device, path, end string) {
	r.t.Helper()
	var answer struct{ Detail string }
	if status := r.call("POST", "/assets/"+d.PathName+"/commands/"+path, &answer); status != 200 {
		r.t.Errorf("%s of %s: %d %s", path, d.Identification, status, answer.Detail)
		return
	}
	eventually(r.t, path+" of "+d.Identification, func() bool { return r.latest(d) == end })
}

// latest is the status of a device's newest command; empty: it has none.
func (r *running) latest(d device) string {
	r.t.Helper()
	var page struct{ Content []struct{ Status string } }
	r.call("GET", "/assets/"+d.PathName+"/commands", &page)
	if len(page.Content) == 0 {
		return ""
	}
	return page.Content[0].Status
}

// erased reports whether a simulated device of the demo has erased itself.
func erased(t *testing.T, dir string) bool {
	t.Helper()
	found := false
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "device.json" {
			return nil // what goes away while the demo runs is of no interest
		}
		text, err := os.ReadFile(path)
		found = found || err == nil && bytes.Contains(text, []byte(`"wiped":true`))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
