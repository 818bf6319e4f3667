package remote_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/servertest"
)

// A proxy that answers 502 in the place of the service does not say that a command was refused:
// one command ends UNCONFIRMED, and a run over many sends to no device twice.
func TestCommands_BehindAProxyThatLosesAnswers(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	tenant, replica := env.NewTenant("acme"), env.Start()
	devices := tenant.Devices(replica, servertest.FullyManaged(), 3)
	upstream, err := url.Parse(replica.PublicURL())
	if err != nil {
		t.Fatal(err)
	}
	var loses atomic.Bool
	loses.Store(true)
	forward := httputil.NewSingleHostReverseProxy(upstream)
	forward.ModifyResponse = func(r *http.Response) error {
		if loses.Load() && r.Request.Method == http.MethodPost {
			r.StatusCode, r.Header = http.StatusBadGateway, http.Header{"Content-Type": {"text/html"}}
		}
		return nil
	}
	proxy := httptest.NewServer(forward)
	t.Cleanup(proxy.Close)
	l := newLaptop(t, env)
	keyFile := filepath.Join(l.dir, "key")
	if err := os.WriteFile(keyFile, []byte(tenant.Client(replica, access.DevicesRead|access.DevicesCommand).Key), 0o600); err != nil {
		t.Fatal(err)
	}
	all := []string{"devices", "reboot", "--filter", "status=ACTIVE", "--url", proxy.URL, "--key-file", keyFile}
	if code, _, stderr := l.run(all...); code == 0 || strings.Contains(stderr, "3 failed") {
		t.Errorf("a run whose answers were lost ends with %d: %s", code, stderr)
	}
	loses.Store(false)
	l.ok(all...)
	caller := tenant.Client(replica, access.DevicesRead)
	for _, d := range devices {
		if sent := caller.History(d.AssetID); len(sent) != 1 {
			t.Errorf("device %s got %d commands", d.AssetID, len(sent))
		}
	}
	loses.Store(true)
	code, _, stderr := l.run("devices", "lock", devices[0].AssetID, "--url", proxy.URL, "--key-file", keyFile)
	if code != 3 || !strings.Contains(stderr, "UNCONFIRMED") {
		t.Errorf("one command whose answer was lost ends with %d: %s", code, stderr)
	}
}

// A command that never left the computer says so, and one that cannot be sent is bad usage.
func TestCommands_NothingWasSent(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	service := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	l := newLaptop(t, servertest.New(t))
	keyFile := filepath.Join(l.dir, "key")
	if err := os.WriteFile(keyFile, []byte("mk_abc_x"), 0o600); err != nil {
		t.Fatal(err)
	}
	lock := []string{"devices", "lock", "--url", service.URL, "--key-file", keyFile}
	for _, flags := range [][]string{{"enterprises/acme/assets/x", "--reason", "a\nb"}, {"--filter", "all=true", "--ticket", "a\nb"}} {
		code, _, stderr := l.run(append(lock[:len(lock):len(lock)], flags...)...)
		if code != 2 || asked.Load() > 0 || !strings.Contains(stderr, flags[len(flags)-2]) {
			t.Errorf("%q ends with %d after %d requests: %s", flags, code, asked.Load(), stderr)
		}
	}
	service.Close()
	code, _, stderr := l.run(append(lock, "enterprises/acme/assets/x")...)
	if code != 1 || strings.Contains(stderr, "UNCONFIRMED") || !strings.Contains(stderr, "refused") {
		t.Errorf("without a service it ends with %d: %s", code, stderr)
	}
}

// A device whose request was never sent in a run is sent to when the run goes on, also with another key.
func TestFanOut_GoesOnWithWhatWasNeverSent(t *testing.T) {
	t.Parallel()
	var service *httptest.Server
	calls := 0
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls++; calls == 2 { // of the list: the service ends after its answer
			w.Header().Set("Connection", "close")
			_ = service.Listener.Close()
		}
		_, _ = io.WriteString(w, `{"content":[{"pathName":"enterprises/acme/assets/x"}],"last":true}`)
	})
	service = httptest.NewServer(handler)
	address := service.Listener.Addr().String()
	l := newLaptop(t, servertest.New(t))
	lock := func(key string) (code int, out, stderr string) {
		keyFile := filepath.Join(l.dir, key)
		if err := os.WriteFile(keyFile, []byte(key), 0o600); err != nil {
			t.Fatal(err)
		}
		return l.run("devices", "lock", "--filter", "all=true", "--url", "http://"+address, "--key-file", keyFile)
	}
	if code, _, stderr := lock("mk_abc_x"); code != 1 || !strings.Contains(stderr, "(0 of 1") || calls != 2 {
		t.Errorf("a run whose service ends, ends with %d after %d calls: %s", code, calls, stderr)
	}
	service.Close()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	service = httptest.NewUnstartedServer(handler)
	_ = service.Listener.Close()
	service.Listener = listener
	service.Start()
	t.Cleanup(service.Close)
	if code, out, stderr := lock("mk_def_x"); code != 0 || !strings.Contains(out, "1 accepted") {
		t.Errorf("the same command ends with %d: %s %s", code, out, stderr)
	}
}

// A table of events says how those after it are read.
func TestEvents_TableSaysWhatIsNext(t *testing.T) {
	t.Parallel()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"events":[{"id":"e1","type":"device.enrolled","data":{}}],"next":"c2"}`)
	}))
	t.Cleanup(service.Close)
	l := newLaptop(t, servertest.New(t))
	keyFile := filepath.Join(l.dir, "key")
	if err := os.WriteFile(keyFile, []byte("mk_x"), 0o600); err != nil {
		t.Fatal(err)
	}
	out := l.ok("events", "--url", service.URL, "--key-file", keyFile)
	if want := "id  type\ne1  device.enrolled\n--after c2 shows what happened after these\n"; out != want {
		t.Errorf("it prints %q, want %q", out, want)
	}
}

// Events that happen while an answer is lost are read from the place before, also where the reading begins at the latest.
func TestEvents_FollowFromTheLatest(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var asked []string
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		asked = append(asked, q.Get("after")+" "+q.Get("wait"))
		switch len(asked) {
		case 1:
			_, _ = io.WriteString(w, `{"events":[],"next":"c1"}`)
		case 2, 3:
			w.WriteHeader(http.StatusBadGateway)
		case 4:
			_, _ = io.WriteString(w, `{"events":[{"id":"e1","type":"device.enrolled","at":"2026-01-01T00:00:00.000Z","data":{}}],"next":"c2"}`)
		default:
			cancel()
		}
	}))
	t.Cleanup(service.Close)
	l := newLaptop(t, servertest.New(t))
	l.ctx = ctx
	l.wait = func(ctx context.Context, _ time.Duration) bool { return ctx.Err() == nil }
	keyFile := filepath.Join(l.dir, "key")
	if err := os.WriteFile(keyFile, []byte("mk_x"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, stderr := l.run("events", "--follow", "--after", "latest", "-o", "json", "--url", service.URL, "--key-file", keyFile)
	if got := strings.Join(asked, ", "); code != 0 || got != "latest , c1 30, c1 30, c1 30, c2 30" || !strings.Contains(out, `"e1"`) {
		t.Errorf("asked for %q, ends with %d, printed %s", got, code, out)
	}
	if strings.Count(stderr, "answers 502") != 1 || strings.Count(stderr, "; trying again\n") != 1 {
		t.Errorf("two failures in a row are told with %q", stderr)
	}
}
