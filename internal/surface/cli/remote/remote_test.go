package remote_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/service"
	"github.com/musterhq/muster/internal/surface/cli"
	"github.com/musterhq/muster/internal/surface/cli/remote"
)

// laptop is a computer away from the server.
type laptop struct {
	t    *testing.T
	env  *servertest.Env
	dir  string
	open func(address string) error
	wait func(ctx context.Context, d time.Duration) bool
	ctx  context.Context // of the command that runs
}

func newLaptop(t *testing.T, env *servertest.Env) *laptop {
	l := &laptop{t: t, env: env, dir: t.TempDir(), ctx: t.Context()}
	l.wait = func(ctx context.Context, d time.Duration) bool {
		env.Advance(d)
		return ctx.Err() == nil
	}
	return l
}

// run runs one command line and returns its exit code and what it prints.
func (l *laptop) run(args ...string) (code int, out, errOut string) {
	l.t.Helper()
	var commands struct{ remote.Logins }
	parser, err := kong.New(&commands, remote.Options(service.Declarations())...)
	if err != nil {
		l.t.Fatal(err)
	}
	chosen, err := parser.Parse(args)
	if err != nil {
		l.t.Fatalf("%v: %v", args, err)
	}
	var stderr, warned bytes.Buffer
	err = chosen.Run(&remote.Env{Env: &cli.Env{Context: l.ctx, In: strings.NewReader(""), Out: &stderr, Err: &warned, Now: l.env.Now},
		ConfigDir: l.dir, Host: "laptop", Open: l.open, Wait: l.wait})
	if own, ok := errors.AsType[*cli.ExitError](err); ok {
		return own.Code, stderr.String(), warned.String() + own.Text
	}
	if err != nil {
		return 1, stderr.String(), warned.String() + err.Error()
	}
	return 0, stderr.String(), warned.String()
}

func (l *laptop) ok(args ...string) string {
	l.t.Helper()
	code, out, errOut := l.run(args...)
	if code != 0 {
		l.t.Fatalf("muster %v ends with %d: %s", args, code, errOut)
	}
	return out
}

// allows is a browser in which a person allows what is asked for.
func allows(t *testing.T, p *servertest.Browser, preset string) func(string) error {
	return func(address string) error {
		p.Send(address, nil).Want(t, http.StatusOK)
		u, _ := url.Parse(address)
		form := u.Query()
		form.Set("preset", preset)
		u.RawQuery = ""
		answer := p.Send(u.String(), form).Want(t, http.StatusOK)
		to := answer.Onward()
		for _, wrong := range []string{strings.Replace(to, "state=", "state=x", 1), strings.Replace(to, "code=", "kode=", 1)} {
			if status, _ := servertest.Fetch(t, wrong); status != http.StatusBadRequest { // another page's attempt
				t.Errorf("%s is answered %d", wrong, status)
			}
		}
		servertest.Fetch(t, to)
		return nil
	}
}

// A person logs in with the browser, works, and logs out, on both engines.
func TestLogin_BrowserToLogout(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		tenant, replica := env.NewTenant("acme"), env.Start()
		person := env.Browser(tenant.Company, account.Admin)
		person.SignIn(replica.PublicURL())
		l := newLaptop(t, env)
		l.open = allows(t, person, "help-desk")
		out := l.ok("login", "--url", replica.PublicURL())
		if !strings.Contains(out, "muster login on laptop") || strings.Contains(out, "mk_") {
			t.Errorf("login says %q", out)
		}
		file := filepath.Join(l.dir, "muster", "login.json")
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the key is kept with %v, %v", info, err)
		}
		var kept struct{ Key string }
		text, _ := os.ReadFile(file)
		if err := json.Unmarshal(text, &kept); err != nil {
			t.Fatal(err)
		}
		l.ok("devices", "list", "-o", "json")
		l.ok("events", "--after", "latest", "--wait", "0") // which only REST has
		if code, _, stderr := l.run("devices", "wipe", "x"); code != 1 || !strings.Contains(stderr, "DEVICES_COMMAND_DESTRUCTIVE") {
			t.Errorf("a wipe ends with %d: %s", code, stderr)
		}
		replica.As(kept.Key).Get("/assets").Want(t, http.StatusOK)
		l.ok("login") // again, at the same service: the key before is revoked
		replica.As(kept.Key).Get("/assets").Want(t, http.StatusUnauthorized)
		text, _ = os.ReadFile(file)
		_ = json.Unmarshal(text, &kept)
		replica.As(kept.Key).Get("/assets").Want(t, http.StatusOK)
		l.ok("logout")
		replica.As(kept.Key).Get("/assets").Want(t, http.StatusUnauthorized)
		if _, err := os.Stat(file); err == nil {
			t.Error("the key is still kept after logout")
		}
	})
}

// A login leaves no valid key behind that login made and no file has.
func TestLogin_LeavesNoKeyBehind(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		tenant, replica, other := env.NewTenant("acme"), env.Start(), env.Start()
		person := env.Browser(tenant.Company, account.Admin)
		person.SignIn(replica.PublicURL())
		person.SignIn(other.PublicURL())
		l := newLaptop(t, env)
		l.open = allows(t, person, "help-desk")
		live := func(after string, want int) {
			t.Helper()
			keys, err := env.Admin().Keys.Keys(t.Context(), tenant.Company.ID)
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for _, k := range keys {
				if strings.HasPrefix(k.Name, "muster login") && k.RevokedAt.IsZero() {
					n++
				}
			}
			if n != want {
				t.Errorf("%d valid keys that login made after %s, want %d", n, after, want)
			}
		}
		l.ok("login", "--url", replica.PublicURL())
		l.ok("login", "--url", other.PublicURL())
		live("a login at another address", 1)
		file := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(file, []byte(env.Key(tenant.Company, access.DevicesRead)), 0o600); err != nil {
			t.Fatal(err)
		}
		l.ok("login", "--key-file", file)
		live("a login with a key of a file", 0)
		l.dir = file // in which nothing can be kept
		if code, _, _ := l.run("login", "--url", replica.PublicURL()); code == 0 {
			t.Error("a login that cannot be kept succeeds")
		}
		live("a login that cannot be kept", 0)
	})
}

// A command for several devices waits for the budget, and goes on after an interruption
// without a second command to any device.
func TestFanOut_BudgetAndInterruption(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		tenant, replica := env.NewTenant("acme"), env.Start()
		const count = 23
		devices := tenant.Devices(replica, servertest.FullyManaged(), count)
		key := tenant.Client(replica, access.DevicesRead|access.DevicesCommand).Key
		l := newLaptop(t, env)
		keyFile := filepath.Join(l.dir, "key")
		if err := os.WriteFile(keyFile, []byte(key+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		l.ctx = ctx
		waited := l.wait
		l.wait = func(ctx context.Context, d time.Duration) bool { // Ctrl-C at the first wait
			cancel()
			return waited(ctx, d)
		}
		args := []string{"devices", "lock", "--filter", "status=ACTIVE", "--url", replica.PublicURL(), "--key-file", keyFile}
		if code, _, stderr := l.run(args...); code != 1 || !strings.Contains(stderr, "interrupted (10 of 23") {
			t.Fatalf("an interrupted run ends with %d: %s", code, stderr)
		}
		l.ctx, l.wait = t.Context(), waited
		code, out, stderr := l.run(append(args, "-o", "json")...)
		var result struct{ Total, Accepted int }
		if err := json.Unmarshal([]byte(out), &result); err != nil || code != 0 || result.Accepted != count ||
			!strings.Contains(stderr, "10 of 23 were done") {
			t.Errorf("the same command ends with %d: %s %s", code, out, stderr)
		}
		caller := tenant.Client(replica, access.DevicesRead)
		for _, d := range devices {
			var page struct{ Content []struct{ Type string } }
			caller.Get("/assets/"+d.AssetID+"/commands").Want(t, http.StatusOK).JSON(t, &page)
			if len(page.Content) != 1 {
				t.Errorf("device %s got %d commands", d.AssetID, len(page.Content))
			}
		}
	})
}

// Devices that cease to match while the list is read take no others from it.
func TestFanOut_FilterThatChanges(t *testing.T) {
	t.Parallel()
	const count, leave = 250, 60
	devices, sent := make([]string, count), map[string]bool{}
	for i := range devices {
		devices[i] = resource.Of("acme", resource.Assets, resource.NewID())
	}
	stay := devices[leave:]
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			before, _, _ := strings.Cut(r.URL.Path, "/commands/")
			sent[path.Base(before)] = true
			_, _ = io.WriteString(w, "{}")
			return
		}
		number, _ := strconv.Atoi(r.FormValue("page"))
		size, _ := strconv.Atoi(r.FormValue("size"))
		from := min(number*size, len(devices))
		content := []map[string]string{}
		for _, name := range devices[from:min(from+size, len(devices))] {
			content = append(content, map[string]string{"pathName": name})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"content": content, "last": from+size >= len(devices)})
		if size > 1 {
			devices = stay
		}
	}))
	defer service.Close()
	l := newLaptop(t, servertest.New(t))
	keyFile := filepath.Join(l.dir, "key")
	if err := os.WriteFile(keyFile, []byte("mk_abc_def"), 0o600); err != nil {
		t.Fatal(err)
	}
	l.ok("devices", "lock", "--filter", "policyBehind=true", "--url", service.URL, "--key-file", keyFile)
	for i, name := range stay {
		if !sent[path.Base(name)] {
			t.Errorf("the device number %d that matches all the time got no command", leave+i)
		}
	}
}

// An interrupted run is found and finished also when the filter matches nothing any more.
func TestFanOut_GoesOnWhenNothingMatches(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	tenant, replica := env.NewTenant("acme"), env.Start()
	const count = 12
	devices := tenant.Devices(replica, servertest.FullyManaged(), count)
	l := newLaptop(t, env)
	keyFile := filepath.Join(l.dir, "key")
	key := tenant.Client(replica, access.DevicesRead|access.DevicesCommand).Key
	if err := os.WriteFile(keyFile, []byte(key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"devices", "lock", "--filter", "seenAfter=1h", "--url", replica.PublicURL(), "--key-file", keyFile}
	waited := l.wait
	l.wait = func(context.Context, time.Duration) bool { return false } // Ctrl-C at the first wait
	if code, _, stderr := l.run(args...); code != 1 || !strings.Contains(stderr, "(10 of 12") {
		t.Fatalf("an interrupted run ends with %d: %s", code, stderr)
	}
	l.wait = waited
	env.Advance(2 * time.Hour) // all devices were last seen before
	if code, out, stderr := l.run(args...); code != 0 || !strings.Contains(out, "12 devices: 12 accepted") ||
		!strings.Contains(stderr, "10 of 12 were done") {
		t.Errorf("the same command ends with %d: %s %s", code, out, stderr)
	}
	caller := tenant.Client(replica, access.DevicesRead)
	for _, d := range devices {
		var page struct{ Content []struct{ Type string } }
		caller.Get("/assets/"+d.AssetID+"/commands").Want(t, http.StatusOK).JSON(t, &page)
		if len(page.Content) != 1 {
			t.Errorf("device %s got %d commands, want 1", d.AssetID, len(page.Content))
		}
	}
	if code, out, stderr := l.run(args...); code != 0 || !strings.Contains(out, "0 devices") { // the run is finished
		t.Errorf("a new run without a match ends with %d: %s %s", code, out, stderr)
	}
}

// A filter has the type of its declaration, whatever its text looks like.
func TestFilter_TypesFollowTheDeclaration(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	tenant, replica := env.NewTenant("acme"), env.Start()
	l := newLaptop(t, env)
	keyFile := filepath.Join(l.dir, "key")
	if err := os.WriteFile(keyFile, []byte(tenant.Client(replica, access.DevicesRead).Key), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, named := range [][]string{{"--policy", "The Warehouse"}, {"--filter", "policy=The Warehouse"}} {
		code, out, said := l.run(append([]string{"devices", "list", "--url", replica.PublicURL(), "--key-file", keyFile}, named...)...)
		if code != 2 || !strings.Contains(said, "policy must be a policy's pathName") {
			t.Errorf("%v ends with %d: %s %s", named, code, out, said)
		}
	}
	for _, query := range []string{"search=true", "search=false", "search=123", "app=true", "policy=true", "tag=true&tag=7", "lost=true",
		"archived=false", "batteryBelow=20", "app=a.b&appBelow=9"} {
		t.Run(query, func(t *testing.T) {
			own := *l
			own.t = t
			out := own.ok("devices", "list", "--filter", query, "-o", "json", "--url", replica.PublicURL(), "--key-file", keyFile)
			if !strings.Contains(out, `"content"`) {
				t.Errorf("it prints %s", out)
			}
		})
	}
}
