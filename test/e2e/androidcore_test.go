package e2e_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agent/simulated"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/test/needs"
	"github.com/musterhq/muster/test/spec"
)

// androidCore is the app's core on a JVM, compiled once for all tests.
var androidCore = sync.OnceValues(func() (string, error) {
	out, err := os.MkdirTemp("", "muster-android-core-")
	if err != nil {
		return "", err
	}
	core, err := filepath.Glob("../../android/core/src/dev/muster/agent/core/*.java")
	if err != nil {
		return "", err
	}
	jvm, err := filepath.Glob("../../android/jvm/src/dev/muster/agent/jvm/*.java")
	if err != nil {
		return "", err
	}
	args := append([]string{"-encoding", "UTF-8", "--release", "8", "-Xlint:-options", "-proc:none", "-d", out}, append(core, jvm...)...)
	if output, err := exec.Command("javac", args...).CombinedOutput(); err != nil {
		return "", errors.Join(err, errors.New(string(output)))
	}
	return out, nil
})

// javaPhone is a simulated device on which the app's core runs, each time in a
// process of its own.
type javaPhone struct {
	t              *testing.T
	classes, state string
	flags          []string // of the JVM
	assetID        string
	deviceID       string
}

// newJavaPhone skips the test where there is no JDK.
func newJavaPhone(t *testing.T) *javaPhone {
	t.Helper()
	needs.JDK().Of(t)
	classes, err := androidCore()
	if err != nil {
		t.Fatalf("cannot compile the Android app's core: %v", err)
	}
	return &javaPhone{t: t, classes: classes, state: t.TempDir()}
}

// command is one of the program, with system properties before the arguments.
func (p *javaPhone) command(properties []string, args ...string) *exec.Cmd {
	all := append([]string{"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Xmx64m", "-cp", p.classes}, properties...)
	all = append(append(append(all, p.flags...), "dev.muster.agent.jvm.Main"), args...)
	return exec.CommandContext(p.t.Context(), "java", append(all, "--state", p.state)...)
}

func (p *javaPhone) try(args ...string) (string, error) {
	out, err := p.command(nil, args...).CombinedOutput()
	return string(out), err
}

func (p *javaPhone) must(args ...string) string {
	p.t.Helper()
	out, err := p.try(args...)
	if err != nil {
		p.t.Fatalf("the app's core, %v: %v\n%s", args, err, out)
	}
	return out
}

// dies runs the agent, whose process ends before the step.
func (p *javaPhone) dies(step string) {
	p.t.Helper()
	out, err := p.command([]string{"-Dmuster.crash=" + step}, "run", "--once").CombinedOutput()
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 3 {
		p.t.Fatalf("the app's core did not come to %q: %v\n%s", step, err, out)
	}
}

func (p *javaPhone) device() (s simulated.State) {
	p.t.Helper()
	readJSON(p.t, filepath.Join(p.state, "device.json"), &s)
	return s
}

// enroll enrolls the device by a fresh code, by way of the address if there is
// one, with the command key that the code names for it.
func (p *javaPhone) enroll(tenant *servertest.Tenant, client servertest.Client, by string) {
	p.t.Helper()
	text := client.QRCode(tenant.Policy, map[string]any{})
	code, err := protocol.ParseCode(text)
	if err != nil {
		p.t.Fatal(err)
	}
	if by == "" {
		by = code.Server
	}
	if out, err := p.try("enroll", "--server", by, "--token", code.Token, "--command-key", code.CommandKey); err == nil {
		p.t.Fatalf("with the key of another algorithm it enrolled: %s", out)
	}
	// The token is spent, and the same key redeems it again: as after a lost answer.
	out := p.must("enroll", "--server", by, "--token", code.Token, "--command-key", code.CommandKeyES256)
	id := enrolledAs(out)
	p.must("run", "--once")
	d, err := tenant.DB().AgentDevice(p.t.Context(), id)
	if err != nil {
		p.t.Fatal(err)
	}
	if d.CommandAlgorithm != protocol.ES256 || d.Key.Algorithm != protocol.ES256 {
		p.t.Errorf("the device's keys are %s and %s, want ES256", d.Key.Algorithm, d.CommandAlgorithm)
	}
	p.assetID, p.deviceID = d.AssetID, id
}

// The Android app's core, on a JVM, against the real service: it enrolls, holds
// its policy, and carries out every command with the same end as the Go agent.
func TestAndroidCore(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		p := newJavaPhone(t)
		tenant, replica := env.NewAgentSite("acme", "CAMERA=BLOCK", "WIFI_STATE=USER_CHOICE"), env.Start()
		client := tenant.Client(replica, access.All)
		other := env.AgentPolicy(tenant.Company, "Other", "SMS=BLOCK").PathName()
		p.enroll(tenant, client, "")
		if got := p.device().Settings["CAMERA"]; got != "BLOCK" {
			t.Errorf("CAMERA is %q", got)
		}
		if out := p.must("status"); !strings.Contains(out, "version 1") || !strings.Contains(out, "Open:    0 commands") {
			t.Errorf("status printed %q", out)
		}
		p.must("rotate")
		for _, c := range agentCommands(other) {
			if c.path == "shutdown" { // a device owner cannot, and says so
				client.Post("/assets/"+p.assetID+"/commands/shutdown", nil).Want(t, 409)
				continue
			}
			if c.path == "relinquish-ownership" { // the device before was wiped
				p = newJavaPhone(t)
				p.enroll(tenant, client, "")
			}
			client = tenant.Client(replica, access.All) // a key may not order more than ten in a minute
			client.Post("/assets/"+p.assetID+"/commands/"+c.path, c.body).Want(t, 200)
			p.must("run", "--once")
			if c.path == "wipe" {
				tenant.FallSilent() // what proves it
			}
			if last := client.History(p.assetID)[0]; last.Status != c.ends {
				t.Errorf("%s ended %s, want %s", c.path, last.Status, c.ends)
			}
			if !c.effect(p.device()) {
				t.Errorf("%s: the device is %+v", c.path, p.device())
			}
			if !c.gone {
				continue
			}
			servertest.AwaitStatus(t, tenant, client, p.assetID, "DELETED")
			if out, err := p.try("status"); err == nil {
				t.Errorf("after %s the agent still has an identity: %s", c.path, out)
			}
		}
	})
}

// The process dies before each of its steps: each command takes effect, and once.
func TestAndroidCore_DiesAtEveryStep(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		p := newJavaPhone(t)
		tenant, replica := env.NewAgentSite("acme", "CAMERA=BLOCK"), env.Start()
		client := tenant.Client(replica, access.All)
		p.enroll(tenant, client, "")
		for _, step := range agentSteps()[1:] {
			boot := p.device().Boot
			client.Post("/assets/"+p.assetID+"/commands/reboot", nil).Want(t, 200)
			p.dies(step)
			env.Advance(2 * time.Minute) // what was offered is offered again
			p.must("run", "--once")
			tenant.Settled(client, p.assetID, "SUCCESS")
			if got := p.device().Boot; got != boot+1 {
				t.Errorf("died before %q: the device restarted %d times", step, got-boot)
			}
		}
		client.Post("/assets/"+p.assetID+"/commands/relinquish-ownership", nil).Want(t, 200)
		p.dies("before confirm")
		p.dies("before started")
		p.must("run", "--once")
		servertest.AwaitStatus(t, tenant, client, p.assetID, "DELETED")
		if s := p.device(); !s.Released || len(s.Settings) != 0 {
			t.Errorf("the device is %+v", s)
		}
	})
}

// A clock that is a year off, either way, answers that are lost, that come twice
// and that are old: the device goes on.
func TestAndroidCore_BadNetworkAndClock(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		p := newJavaPhone(t)
		tenant, replica := env.NewAgentSite("acme", "CAMERA=BLOCK"), env.Start()
		client := tenant.Client(replica, access.All)
		_, server := servertest.AgentToken(t, client.QRCode(tenant.Policy, map[string]any{}))
		way := &badWay{to: server}
		front := httptest.NewServer(way)
		t.Cleanup(front.Close)
		p.enroll(tenant, client, front.URL)
		message := func(what string, run func()) {
			t.Helper()
			shown := len(p.device().Shown)
			client.Post("/assets/"+p.assetID+"/commands/message", spec.CommandOf("message").Request()).Want(t, 200)
			run()
			if got := len(p.device().Shown) - shown; got != 1 {
				t.Errorf("%s: %d messages were shown, want 1", what, got)
			}
		}
		for _, wrong := range []string{"31536000000", "-31536000000"} {
			message("a clock off by "+wrong, func() {
				if out, err := p.command([]string{"-Dmuster.clock=" + wrong}, "run", "--once").CombinedOutput(); err != nil {
					t.Errorf("with a clock off by %s: %v\n%s", wrong, err, out)
				}
			})
		}
		message("a lost answer", func() {
			way.set(func(n int) bool { return n == 0 }, false)
			if out, err := p.try("run", "--once"); err == nil {
				t.Errorf("the answer was lost, and it said %q", out)
			}
			way.set(nil, false)
			env.Advance(2 * time.Minute)
			p.must("run", "--once")
		})
		message("requests that arrive twice", func() {
			way.set(nil, true)
			p.must("run", "--once")
			way.set(nil, false)
		})
		way.keep("/checkin")
		p.must("run", "--once")
		other := env.AgentPolicy(tenant.Company, "Other", "SMS=BLOCK").PathName()
		client.Post("/assets/"+p.assetID+"/commands/change-policy", map[string]string{"policyId": other}).Want(t, 200)
		_, _ = p.try("run", "--once") // is answered with what was good before
		if p.device().Settings["SMS"] != "" {
			t.Error("the change of policy arrived by an old answer")
		}
		way.forget()
		p.must("run", "--once")
		if s := p.device(); s.Settings["SMS"] != "BLOCK" || s.Settings["CAMERA"] != "" {
			t.Errorf("after the change of policy the device is %+v", s.Settings)
		}
		way.set(func(int) bool { return true }, false)
		if out, err := p.try("rotate"); err == nil {
			t.Errorf("the answer to the rotation was lost, and it said %q", out)
		}
		way.set(nil, false)
		message("after a rotation whose answer was lost", func() { p.must("run", "--once") })
		p.must("unenroll")
		servertest.AwaitStatus(t, tenant, client, p.assetID, "DELETED")
	})
}

// badWay is between a device and its service.
type badWay struct {
	to string

	mu    sync.Mutex
	lose  func(n int) bool // which answers are lost, counted from when it was set
	n     int
	twice bool
	path  string // whose next answer is kept and given again and again
	kept  []byte
}

func (w *badWay) set(lose func(n int) bool, twice bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lose, w.twice, w.n = lose, twice, 0
}

func (w *badWay) keep(path string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.path, w.kept = path, nil
}

func (w *badWay) forget() { w.keep("") }

// ServeHTTP implements http.Handler.
func (w *badWay) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	status, header, answer := w.carry(r, body)
	if w.twice {
		_, _, _ = w.carry(r, body)
	}
	w.n++
	if w.lose != nil && w.lose(w.n-1) {
		rw.WriteHeader(http.StatusBadGateway) // a broken connection would have the JVM repeat the request by itself
		return
	}
	if w.path != "" && strings.HasSuffix(r.URL.Path, w.path) && status == http.StatusOK {
		if w.kept == nil {
			w.kept = answer
		}
		answer = w.kept
	}
	rw.Header().Set("Content-Type", header.Get("Content-Type"))
	rw.WriteHeader(status)
	_, _ = rw.Write(answer)
}

func (w *badWay) carry(r *http.Request, body []byte) (int, http.Header, []byte) {
	request, err := http.NewRequestWithContext(r.Context(), r.Method, w.to+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	request.Header = r.Header.Clone()
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil || !json.Valid(answer) {
		panic(http.ErrAbortHandler)
	}
	return response.StatusCode, response.Header, answer
}

// coreTool runs a program of android/test/core beside the app's core.
func (p *javaPhone) coreTool(name string, args ...string) string {
	p.t.Helper()
	out := p.t.TempDir()
	compile := exec.CommandContext(p.t.Context(), "javac", "-encoding", "UTF-8", "-proc:none", "-cp", p.classes, "-sourcepath",
		"../../android/test/core", "-d", out,
		"../../android/test/core/dev/muster/agent/core/"+name+".java")
	if output, err := compile.CombinedOutput(); err != nil {
		p.t.Fatalf("%v: %v\n%s", compile.Args, err, output)
	}
	run := exec.CommandContext(p.t.Context(), "java",
		append([]string{"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", out + string(os.PathListSeparator) + p.classes,
			"dev.muster.agent.core." + name}, args...)...)
	output, err := run.Output()
	if err != nil {
		p.t.Fatalf("%s: %v", name, errors.Join(err, stderrOf(err)))
	}
	return string(output)
}

func stderrOf(err error) error {
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return errors.New(string(exit.Stderr))
	}
	return nil
}

// The app's core signs, reads and writes what the Go agent and the service do.
func TestAndroidCore_Vectors(t *testing.T) {
	t.Parallel()
	newJavaPhone(t).coreTool("Vectors", "../../android/test/vectors.json")
}

// Every command from every state of the journal comes to the same in the app's core
// as in the Go agent, which wrote the table.
func TestAndroidCore_CommandMatrix(t *testing.T) {
	t.Parallel()
	want, err := os.ReadFile("../../android/test/commands.tsv")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]bool{}
	for line := range strings.Lines(string(want)) {
		rows[line] = !strings.HasPrefix(line, "#")
	}
	devices, err := os.MkdirTemp("/dev/shm", "muster-test-") // ten thousand writes are forced to the disk
	if err != nil {
		devices = t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(devices) })
	compared := 0
	for line := range strings.Lines(newJavaPhone(t).coreTool("Commands", devices, "../../android/test/vectors.json")) {
		if !rows[line] {
			t.Errorf("the app's core has another row:\n%s", line)
		}
		rows[line] = false
		compared++
	}
	for line, missing := range rows {
		if missing {
			t.Errorf("the app's core lacks the row\n%s", line)
		}
	}
	if compared < 500 {
		t.Errorf("%d rows were compared", compared)
	}
}
