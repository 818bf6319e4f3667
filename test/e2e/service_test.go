package e2e_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/rollout"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/service"
)

func TestService_ProbesAndMetrics(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		replica := env.Start()
		acme := env.Company("acme", servertest.Everything())
		client := replica.As(env.Key(acme, access.DevicesRead|access.DevicesCommand))
		client.Get("/assets").Want(t, 200)
		client.Post("/assets/none/commands/lock", nil).Want(t, 404)
		for path, says := range map[string]string{
			"/healthz": `"status":"ok"`, "/readyz": `"status":"ready"`,
			"/metrics": `muster_http_request_duration_seconds_count{operation="list_assets",status="200"} 1`,
		} {
			t.Run(path, func(t *testing.T) {
				status, body := servertest.Fetch(t, replica.PublicURL()+path)
				if status != 200 || !strings.Contains(body, says) {
					t.Errorf("%s answers %d %s; want %s", path, status, body, says)
				}
			})
		}
	})
}

// An alert on the increase of a counter sees its first value only if the series
// was there before, at 0.
func TestMetrics_CountersBeginAtZero(t *testing.T) {
	t.Parallel()
	_, text := servertest.Fetch(t, servertest.New(t).Start().PublicURL()+"/metrics")
	for _, series := range []string{
		`muster_commands_total{outcome="unknown",type="LOCK"} 0`,
		`muster_commands_total{outcome="unconfirmed",type="RELINQUISH_OWNERSHIP"} 0`,
		`muster_commands_total{outcome="success",type="SYNC_POLICY"} 0`,
		`muster_budget_refusals_total{operation="wipe_device"} 0`,
		`muster_notifications_total{kind="COMMAND",outcome="failed"} 0`,
		`muster_vendor_failures_total{class="denied"} 0`,
		`muster_policies_behind{state="failing"} 0`,
		`muster_activity_chains_broken 0`,
		`muster_agent_rollouts_paused 0`,
		`muster_ready 1`,
	} {
		if !strings.Contains(text, "\n"+series+"\n") {
			t.Errorf("/metrics of a new process has no %s", series)
		}
	}
}

// A rollout that paused because devices were lost is told by a metric, one that the operator
// paused is not.
func TestMetrics_RolloutPausedItself(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		db, ok := env.DB(), func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		begin := func(version string, code int64) rollout.Rollout {
			t.Helper()
			ok(db.AddRelease(t.Context(), rollout.Release{Version: version, Package: "linux-arm64", Code: code, SHA256: version}, nil))
			r, err := db.BeginRollout(t.Context(), version, 100)
			ok(err)
			return r
		}
		move := func(was rollout.Rollout, to rollout.State, reason string) rollout.Rollout {
			t.Helper()
			is := was
			is.State, is.Reason = to, reason
			moved, err := db.MoveRollout(t.Context(), was, is)
			if ok(err); !moved {
				t.Fatalf("the rollout is not as it was: %+v", was)
			}
			return is
		}
		done := move(begin("2.0", 2), rollout.Done, "")
		begin("3.0", 3)
		move(done, rollout.Paused, "3 of 9 devices that began have no contact")
		paused, err := db.PauseRollouts(t.Context())
		if ok(err); paused != 1 {
			t.Fatalf("the operator pauses %d rollouts, want 1", paused)
		}
		replica := env.Start()
		env.Eventually("the metric", func() error {
			_, text := servertest.Fetch(t, replica.PublicURL()+"/metrics")
			if !strings.Contains(text, "\nmuster_agent_rollouts_paused 1\n") {
				return errors.New("/metrics does not say that one rollout paused by itself")
			}
			return nil
		})
	})
}

func TestMetrics_OwnAddress(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	const address = "127.0.0.1:0"
	replica := env.Start(func(c *config.Service, _ *service.Options) { c.MetricsListen = address })
	if _, body := servertest.Fetch(t, replica.PublicURL()+"/metrics"); strings.Contains(body, "go_goroutines") {
		t.Error("the main address serves metrics although they have their own")
	}
	if status, body := servertest.Fetch(t, replica.MetricsURL()+"/metrics"); status != 200 || !strings.Contains(body, "go_goroutines") {
		t.Errorf("the metrics' address answers %d %s", status, body)
	}
	if status, _ := servertest.Fetch(t, replica.MetricsURL()+"/api/v1/assets"); status != 404 {
		t.Errorf("the metrics' address serves the API: %d", status)
	}
}

// Profiles are on the metrics' address alone, and only with the setting.
func TestProfiles_MetricsAddressAlone(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	for _, on := range []bool{false, true} {
		replica := env.Start(func(c *config.Service, _ *service.Options) { c.MetricsListen, c.Pprof = "127.0.0.1:0", on })
		want := 404
		if on {
			want = 200
		}
		for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap?debug=1", "/debug/pprof/goroutine",
			"/debug/pprof/profile?seconds=1", "/debug/pprof/trace?seconds=0.1"} {
			if status, _ := servertest.Fetch(t, replica.MetricsURL()+path); status != want {
				t.Errorf("setting %t: the metrics' address answers %s with %d, want %d", on, path, status, want)
			}
			if status, _ := servertest.Fetch(t, replica.PublicURL()+path); status != 404 {
				t.Errorf("setting %t: the main address answers %s with %d, want 404", on, path, status)
			}
		}
		if status, body := servertest.Fetch(t, replica.MetricsURL()+"/debug/pprof/cmdline"); status != 404 {
			t.Errorf("setting %t: the command line, which may hold secrets, is served: %d %q", on, status, body)
		}
	}
}

// Administration works while the service runs, and takes effect at once on
// every replica (contract 5.9).
func TestKeys_TakeEffectOnEveryReplica(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		replicas := []*servertest.Replica{env.Start(), env.Start()}
		acme := env.Company("acme", servertest.Everything())
		key, text := env.KeyRow(acme, access.DevicesRead)
		for i, r := range replicas {
			if got := r.As(text).Get("/assets/count"); got.Status != 200 {
				t.Errorf("replica %d refuses a new key: %d %s", i, got.Status, got.Body)
			}
		}
		if _, err := env.Admin().Keys.RevokeKey(t.Context(), acme.ID, key.ID, env.Now()); err != nil {
			t.Fatal(err)
		}
		env.Advance(time.Second) // the longest time that the contract allows
		for i, r := range replicas {
			if got := r.As(text).Get("/assets/count"); got.Status != 401 {
				t.Errorf("replica %d takes a revoked key: %d %s", i, got.Status, got.Body)
			}
		}
	})
}

// Contract 8: the budget is exact under concurrency and over replicas.
func TestBudget_TenOfAHundredPass(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		replicas := []*servertest.Replica{env.Start(), env.Start()}
		acme := env.Company("acme", servertest.Everything())
		key := env.Key(acme, access.DevicesRead|access.DevicesCommand)
		env.Policy(acme, "Any", policy.Platform)
		count := map[int]int{}
		var mu sync.Mutex
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				answer, err := replicas[i%2].As(key).Try("POST", "/assets/unknown/commands/lock", nil)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				count[answer.Status]++
			})
		}
		all.Wait()
		if count[404] != 10 || count[429] != 90 {
			t.Errorf("statuses %v; want ten that passed (404) and ninety that were refused (429)", count)
		}
	})
}

// SIGTERM's path: requests under way are finished, and the process ends well.
func TestDrain_FinishesRequests(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	replica := env.Start()
	acme := env.Company("acme", servertest.Everything())
	client := replica.As(env.Key(acme, access.DevicesRead|access.DevicesCommand))
	body, sent := io.Pipe()
	request, err := http.NewRequestWithContext(t.Context(), "POST", replica.PublicURL()+"/api/v1/assets/none/commands/lost-mode", body)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-API-Key", client.Key)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Expect", "100-continue") // the handler reads: the request is under way
	answered := make(chan string, 1)
	go func() {
		response, err := (&http.Client{Transport: &http.Transport{ExpectContinueTimeout: time.Minute}}).Do(request)
		if err != nil {
			answered <- err.Error()
			return
		}
		defer response.Body.Close()
		answered <- fmt.Sprint(response.StatusCode)
	}()
	if _, err := sent.Write([]byte(`{"message":`)); err != nil { // returns when the client was told to go on
		t.Fatal(err)
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		replica.Stop()
	}()
	env.Eventually("the replica drains", func() error {
		if !bytes.Contains(env.Log.Text(), []byte("draining")) {
			return fmt.Errorf("it does not say so")
		}
		return nil
	})
	if _, err := sent.Write([]byte(`"hello"}`)); err != nil {
		t.Fatal(err)
	}
	_ = sent.Close()
	if got := <-answered; got != "404" {
		t.Errorf("the request under way was answered %s, want 404", got)
	}
	<-stopped
}

// Told to stop, a replica is not ready at once but goes on serving, so that a
// proxy that checks readiness turns away before connections are refused, and
// closes connections after their answer, so that no request meets a closed one.
func TestDrain_ServesWhileProxiesTurnAway(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	replica := env.Start(func(c *config.Service, _ *service.Options) { c.DrainDelay = 2 * time.Second })
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		replica.Stop()
	}()
	served, kept := 0, &http.Client{Transport: &http.Transport{}}
	defer kept.CloseIdleConnections()
	env.Eventually("the replica stops", func() error {
		fresh := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		ready, err := fresh.Get(replica.PublicURL() + "/readyz")
		if err != nil {
			return nil // it takes no connections any more
		}
		_ = ready.Body.Close()
		answer, err := kept.Get(replica.PublicURL() + "/api/v1/openapi.json")
		if err == nil {
			_ = answer.Body.Close()
			if ready.StatusCode == 503 && answer.StatusCode == 200 {
				served++
				if !answer.Close {
					t.Error("a connection stays open for a request that would be lost")
				}
			}
		}
		return fmt.Errorf("it serves")
	})
	<-stopped
	if served == 0 {
		t.Error("no request was answered while the replica was not ready")
	}
}

// Programs look for documents at addresses that are not ours: they are told so,
// not sent to a page to sign in.
func TestService_UnknownAddresses(t *testing.T) {
	t.Parallel()
	replica := servertest.New(t).Start()
	for _, path := range []string{"/.well-known/nothing", "/nothing/at/all", "/favicon.ico"} {
		if status, body := servertest.Fetch(t, replica.PublicURL()+path); status != 404 || !strings.Contains(body, "Page not found") {
			t.Errorf("%s answers %d %.100s", path, status, body)
		}
	}
}
