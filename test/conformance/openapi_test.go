package conformance_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/servertest"
)

// The service keeps its own OpenAPI document: schemathesis runs all its phases
// and checks on both engines, with a key for everything, one that only reads,
// and none. What it finds is explained in testdata/explained.json, or a failure.
// It takes as many seconds as it is given, 100 for each engine.
func TestREST_Schemathesis(t *testing.T) {
	t.Parallel()
	needPrograms(t)
	explained := explanations(t)
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		tenant := env.NewTenant("acme")
		service := env.Start()
		devices := tenant.Devices(service, servertest.FullyManaged(), 2)
		base := unhurried(t, env, service.PublicURL())
		for _, c := range []struct {
			name, seconds string
			may           access.Permission
		}{{"everything", "60", access.All}, {"reading", "20", access.DevicesRead | access.PoliciesRead}, {"nothing", "20", 0}} {
			t.Run(c.name, func(t *testing.T) {
				key := "none"
				if c.may != 0 {
					key = tenant.Key(tenant.Company, c.may)
				}
				for _, f := range schemathesis(t, base, key, c.seconds, devices[0].AssetID, devices[1].AssetID, tenant.Policy.ID) {
					if !f.among(explained) {
						t.Errorf("%s: %s: %s\nanswer: %d %s", f.operation, f.check, f.message, f.status, f.answer)
					}
				}
			})
		}
	})
}

// unhurried is an address that lets a minute of the service's time pass before
// each request, so that no budget is ever spent, and distinguishes Idempotency-Keys
// apart, of which schemathesis uses the same for different requests.
func unhurried(t *testing.T, env *servertest.Env, service string) string {
	t.Helper()
	target, err := url.Parse(service)
	if err != nil {
		t.Fatal(err)
	}
	good := regexp.MustCompile(`^[!-~]{1,255}$`)
	var requests atomic.Int64
	proxy := httptest.NewServer(whole(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		env.Advance(time.Minute)
		r.SetURL(target)
		r.Out.Host = r.In.Host
		n := strconv.FormatInt(requests.Add(1), 10)
		if key := r.In.Header.Values("Idempotency-Key"); len(key) == 1 && good.MatchString(key[0]) {
			r.Out.Header.Set("Idempotency-Key", key[0][:min(len(key[0]), 255-len(n))]+n)
		}
	}}))
	t.Cleanup(proxy.Close)
	return proxy.URL
}

// finding is one failed check of one call.
type finding struct {
	operation, check, message string
	status                    int
	answer                    string
}

// explanation says why findings are none.
type explanation struct {
	Check   string `json:"check"`
	Message string `json:"message"` // a part of it; empty: any
	Answer  string `json:"answer"`  // a regular expression on the status and the body
	Why     string `json:"why"`

	answer *regexp.Regexp
}

func explanations(t *testing.T) []explanation {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "explained.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all []explanation
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	for i, e := range all {
		if e.Why == "" {
			t.Errorf("%s is listed without a reason", e.Check)
		}
		all[i].answer = regexp.MustCompile(e.Answer)
	}
	return all
}

func (f finding) among(all []explanation) bool {
	for _, e := range all {
		if e.Check == f.check && strings.Contains(f.message, e.Message) && e.answer.MatchString(fmt.Sprintf("%d %s", f.status, f.answer)) {
			return true
		}
	}
	return false
}

// schemathesis runs it and returns what it found.
func schemathesis(t *testing.T, base, key, seconds, asset, lost, policy string) []finding {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "schemathesis.toml")
	report := filepath.Join(dir, "events.ndjson")
	// A device that was wiped takes no more commands: that one has its own.
	text := fmt.Sprintf("[parameters]\n\"path.assetId\" = %q\n\"path.policyId\" = %q\n\n[[operations]]\ninclude-path = "+
		"\"/assets/{assetId}/commands/wipe\"\nparameters = { \"path.assetId\" = %q }\n",
		asset, policy, lost)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out := program(t, "PYTHONDONTWRITEBYTECODE=1", filepath.Join(*python, "bin", "schemathesis"), "--config-file", config, "run",
		base+"/api/v1/openapi.json",
		"--url", base+"/api/v1", "--header", "X-API-Key: "+key, "--checks", "all", "--max-time", seconds, "--seed", "1",
		"--continue-on-failure",
		"--generation-database", "none", "--report", "ndjson", "--report-ndjson-path", report, "--warnings", "off")
	events, err := os.ReadFile(report)
	if err != nil || code > 1 {
		t.Fatalf("exit %d, %v:\n%s", code, err, out)
	}
	return findings(t, events)
}

// findings reads the failed checks out of the events of a run.
func findings(t *testing.T, events []byte) []finding {
	t.Helper()
	var all []finding
	calls := 0
	lines := bufio.NewScanner(bytes.NewReader(events))
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var event struct {
			ScenarioFinished struct {
				Recorder struct {
					Label  string
					Checks map[string][]struct {
						Name, Status string
						FailureInfo  struct {
							Failure struct{ Message string }
						} `json:"failure_info"`
					}
					Interactions map[string]struct {
						Response struct {
							StatusCode int `json:"status_code"`
							Content    struct {
								Body []byte `json:"$base64"`
							}
						}
					}
				}
			}
			NonFatalError, FatalError json.RawMessage
		}
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			t.Fatalf("%v: %.300s", err, lines.Bytes())
		}
		if event.NonFatalError != nil || event.FatalError != nil {
			t.Errorf("schemathesis itself failed: %.2000s", lines.Bytes())
		}
		recorder := event.ScenarioFinished.Recorder
		calls += len(recorder.Interactions)
		for id, checks := range recorder.Checks {
			response := recorder.Interactions[id].Response
			for _, c := range checks {
				if c.Status == "failure" {
					all = append(all, finding{recorder.Label, c.Name, c.FailureInfo.Failure.Message, response.StatusCode,
						string(response.Content.Body)})
				}
			}
		}
	}
	if calls < 29 { // one for each operation
		t.Errorf("schemathesis made only %d calls", calls)
	}
	t.Logf("%d calls, %d findings", calls, len(all))
	return all
}
