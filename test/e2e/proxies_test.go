package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/service"
	"github.com/musterhq/muster/test/needs"
	"github.com/musterhq/muster/test/poll"
	"github.com/musterhq/muster/test/port"
)

// proxyExample is a file of the documentation, and how the test runs it.
type proxyExample struct {
	need    needs.Need
	file    string
	listens string // what the file says about its address and certificates
	instead string // what it says in the test; %d is the port
	around  string // the file that the program starts with; %s is the example's path; empty: the example itself
	flags   []string
	checks  bool          // the proxy looks at /readyz; it takes a while to use a replica again
	drain   time.Duration // longer than two of its checks, or than it keeps a connection
}

func proxyExamples() map[string]proxyExample {
	return map[string]proxyExample{
		"nginx": {needs.Nginx(), "nginx.conf",
			"	listen 443 ssl;\n	server_name muster.example.com;\n	ssl_certificate " +
				"/etc/ssl/muster/fullchain.pem;\n	ssl_certificate_key /etc/ssl/muster/key.pem;\n",
			"	listen 127.0.0.1:%d;\n",
			"daemon off; pid nginx.pid; error_log error.log; worker_processes 1; user root;\nevents { worker_connections 512; }\nhttp { " +
				"access_log off; client_body_temp_path b; proxy_temp_path p; fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s; " +
				"include %s; }\n",
			[]string{"-p", ".", "-e", "error.log", "-c"}, false, 3 * time.Second},
		"HAProxy": {needs.HAProxy(), "haproxy.cfg", "bind :443 ssl crt /etc/haproxy/muster.pem", "bind 127.0.0.1:%d", "",
			[]string{"-db", "-f"}, true, 4 * time.Second},
		"Caddy": {needs.Caddy(), "Caddyfile", "muster.example.com {", "http://127.0.0.1:%d {",
			"{\n	admin off\n	auto_https off\n}\nimport %s\n",
			[]string{"run", "--adapter", "caddyfile", "--config"}, true, 4 * time.Second},
	}
}

// Behind each documented proxy, replicas are restarted one after the other, and every
// request of clients that send nothing twice is answered, and every command has its event.
func TestProxies_RollingRestartLosesNoRequest(t *testing.T) {
	t.Parallel()
	for name, example := range proxyExamples() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program := example.need.Of(t)
			env, ports := servertest.NewPostgres(t), reservePorts(t, 3)
			example.roll(t, env, program, ports, func(i, _ int) func() {
				return env.Start(func(c *config.Service, _ *service.Options) {
					c.Listen, c.PublicURL = fmt.Sprintf("127.0.0.1:%d", ports[i]), fmt.Sprintf("http://127.0.0.1:%d", ports[2])
					c.DrainDelay, c.ReadsPerMinute = example.drain, 1<<40
				}).Stop
			})
		})
	}
}

// roll starts two replicas behind the proxy, and restarts them by turns under load. start
// is told which replica it starts, and for the how many-th time any is; it returns what ends it.
func (x proxyExample) roll(t *testing.T, env *servertest.Env, program string, ports []int, start func(i, n int) (stop func())) {
	t.Helper()
	acme := env.NewTenant("acme")
	stops := []func(){start(0, 0), start(1, 1)}
	x.run(t, program, ports)
	for _, path := range []string{"/metrics", "/%6detrics", "/metrics?a"} {
		if status, text := servertest.Fetch(t, fmt.Sprintf("http://127.0.0.1:%d%s", ports[2], path)); status != http.StatusNotFound {
			t.Errorf("the proxy answers %s with %d: %.100s", path, status, text)
		}
	}
	load := &proxyLoad{address: fmt.Sprintf("http://127.0.0.1:%d", ports[2])}
	load.start(t, env, acme.Company)
	ordering, stop := context.WithCancel(t.Context())
	defer stop()
	endEvents := startEvents(ordering, t, acme, load.address, fmt.Sprintf("http://127.0.0.1:%d", ports[0]))
	for n, i := range []int{0, 1, 0} {
		stops[i]()
		before := load.answered.Load() // the proxy has to find out that the replica is gone
		env.Eventually("the other replica answers", func() error {
			if n := load.answered.Load() - before; n < 50 {
				return fmt.Errorf("%d times", n)
			}
			return nil
		})
		stops[i] = start(i, n+2)
		if x.checks {
			env.Eventually("the proxy uses the replica again", func() error { return serves(t, ports[i]) })
		}
	}
	stop()
	endEvents()
	load.end()
	if load.answered.Load() < 100 || len(load.lost) > 0 {
		t.Errorf("%d requests were answered, %d were not: %s", load.answered.Load(), len(load.lost),
			strings.Join(load.lost[:min(5, len(load.lost))], "; "))
	}
	t.Logf("%d requests", load.answered.Load())
}

// run starts the proxy with the documentation's file and waits until it answers.
func (x proxyExample) run(t *testing.T, program string, ports []int) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "proxy", x.file))
	if err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{
		x.listens:        fmt.Sprintf(x.instead, ports[2]),
		"10.0.0.11:8080": fmt.Sprintf("127.0.0.1:%d", ports[0]),
		"10.0.0.12:8080": fmt.Sprintf("127.0.0.1:%d", ports[1]),
	} {
		if bytes.Count(text, []byte(from)) != 1 {
			t.Fatalf("%s does not have %q once", x.file, from)
		}
		text = bytes.Replace(text, []byte(from), []byte(to), 1)
	}
	dir := t.TempDir()
	main := filepath.Join(dir, x.file)
	files := map[string][]byte{main: text}
	if x.around != "" {
		files[main] = []byte(fmt.Sprintf(x.around, filepath.Join(dir, "example")))
		files[filepath.Join(dir, "example")] = text
	}
	for name, body := range files {
		if err := os.WriteFile(name, body, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	proxy := exec.Command(program, append(x.flags, main)...)
	proxy.Dir, proxy.Stdout, proxy.Stderr = dir, &out, &out
	proxy.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	if err := proxy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = proxy.Process.Signal(os.Interrupt)
		_ = proxy.Wait()
		if t.Failed() {
			log, _ := os.ReadFile(filepath.Join(dir, "error.log")) // nginx's
			t.Logf("%s: %s%s", program, out.String(), log)
		}
	})
	poll.Until(t, "the proxy answers", func() error {
		answer, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/readyz", ports[2]))
		if err == nil && answer.StatusCode != http.StatusOK {
			err = errors.New(answer.Status)
		}
		return err
	})
}

func reservePorts(t *testing.T, n int) (ports []int) {
	t.Helper()
	for range n {
		ports = append(ports, port.Reserve(t))
	}
	return ports
}

var served = regexp.MustCompile(
	`(?m)^muster_http_request_duration_seconds_count\{[^}]*operation="list_assets"[^}]*status="200"[^}]*\} [1-9]`)

// serves returns an error while a replica has not answered any client.
func serves(t *testing.T, port int) error {
	if _, text := servertest.Fetch(t, fmt.Sprintf("http://127.0.0.1:%d/metrics", port)); !served.MatchString(text) {
		return errors.New("it has answered no request")
	}
	return nil
}

// proxyLoad sends requests, each on a connection of its own and once.
type proxyLoad struct {
	address  string
	answered atomic.Int64
	stop     context.CancelFunc
	running  sync.WaitGroup

	mu   sync.Mutex
	lost []string
}

// loadCallers send at once.
const loadCallers = 4

// start has callers send requests of REST, MCP and the portal by turns.
func (l *proxyLoad) start(t *testing.T, env *servertest.Env, c company.Company) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	l.stop = stop
	t.Cleanup(l.end)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 30 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for range loadCallers {
		key, person := env.Key(c, access.All), env.Browser(c, account.Admin)
		person.SignIn(l.address)
		kinds := []func() *http.Request{
			func() *http.Request {
				return l.request("POST", "/api/v1/explain", `{"operation":"list_assets","arguments":{}}`, "X-Api-Key", key)
			},
			func() *http.Request { return l.request("GET", "/api/v1/assets?size=5", "", "X-Api-Key", key) },
			func() *http.Request {
				return l.request("POST", "/mcp",
					`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_assets","arguments":{}}}`,
					"X-Api-Key", key, "Mcp-Protocol-Version", servertest.LegacyProtocol, "Accept", "application/json, text/event-stream")
			},
			func() *http.Request { return l.request("GET", "/api/v1/assets?size=5", "", "X-Api-Key", key) },
			func() *http.Request {
				r := l.request("GET", "/devices", "")
				for _, cookie := range person.Cookies(l.address) {
					r.AddCookie(cookie)
				}
				return r
			},
		}
		l.running.Go(func() {
			pace := time.NewTicker(20 * time.Millisecond)
			defer pace.Stop()
			for n := 0; ctx.Err() == nil; n++ {
				<-pace.C
				r := kinds[n%len(kinds)]()
				if why := l.send(client, r); why != "" {
					l.mu.Lock()
					l.lost = append(l.lost, fmt.Sprintf("%s %s at %s: %s", r.Method, r.URL.Path, env.Now().Format(time.TimeOnly), why))
					l.mu.Unlock()
				}
			}
		})
	}
}

// request makes a request; headers are names and values in turn.
func (l *proxyLoad) request(method, path, body string, headers ...string) *http.Request {
	r, err := http.NewRequest(method, l.address+path, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

// send returns why a request was not answered by Muster.
func (l *proxyLoad) send(client *http.Client, r *http.Request) string {
	answer, err := client.Do(r)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	limited := answer.StatusCode == http.StatusTooManyRequests && strings.HasSuffix(r.URL.Path, "/explain") // it has an allowance
	if err != nil || answer.StatusCode != http.StatusOK && !limited || bytes.Contains(text, []byte(`"isError":true`)) {
		return fmt.Sprintf("%s %.200s %v", answer.Status, text, err)
	}
	l.answered.Add(1)
	return ""
}

func (l *proxyLoad) end() {
	l.stop()
	l.running.Wait()
}
