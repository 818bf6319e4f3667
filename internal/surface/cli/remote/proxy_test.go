package remote_test

import (
	"context"
	"io"
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
		case 2:
			w.WriteHeader(http.StatusBadGateway)
		case 3:
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
	out := l.ok("events", "--follow", "--after", "latest", "-o", "json", "--url", service.URL, "--key-file", keyFile)
	if got := strings.Join(asked, ", "); got != "latest , c1 30, c1 30, c2 30" || !strings.Contains(out, `"e1"`) {
		t.Errorf("asked for %q, printed %s", got, out)
	}
}
