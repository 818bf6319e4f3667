package e2e_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/simulated"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/database/firsttest"
	"github.com/musterhq/muster/internal/database/pgtest"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/service"
	"github.com/musterhq/muster/internal/surface/web"
)

// The start of the service upgrades a database that the first version made:
// every question has the same answer, the chain of the activity log verifies,
// all credentials go on working, and devices stay enrolled.
func TestServe_UpgradesTheFirstVersionsDatabases(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"sqlite", "postgres"} {
		for title, agents := range map[string]bool{"platform": false, "agents": true} {
			t.Run(engine+"/"+title, func(t *testing.T) {
				t.Parallel()
				env := servertest.New(t)
				env.Database = emptyDatabase(t, engine)
				old := firsttest.Load(t, env.Database, agents)
				keys := env.Config().KeyFile
				old.Keys(t, keys)
				env.Advance(old.Now.Add(time.Minute).Sub(env.Now()))
				replica := env.Start(func(c *config.Service, _ *service.Options) {
					c.KeyFile, c.PlatformEndpoint = keys, "http://127.0.0.1:1" // out of reach, as for the answers of before
				})
				sameAnswers(t, env, replica, old)
				var chain struct {
					Sound   bool
					Checked int
				}
				env.CLI(&chain, "activity", "verify", "--company", "acme", "--key-file", keys)
				if !chain.Sound || chain.Checked < 10 {
					t.Errorf("the chain of the activity log is %+v", chain)
				}
				sameCredentials(t, replica, old)
				for _, a := range old.Agents {
					checksIn(t, env, replica, old, a)
				}
				if want := map[bool]int{true: 2}[agents]; len(old.Agents) != want {
					t.Errorf("%d agents, want %d", len(old.Agents), want)
				}
			})
		}
	}
}

// emptyDatabase is one without tables.
func emptyDatabase(t *testing.T, engine string) string {
	t.Helper()
	if engine == "postgres" {
		return pgtest.DSN(t)
	}
	return "sqlite:" + filepath.Join(t.TempDir(), "muster.db")
}

func sameAnswers(t *testing.T, env *servertest.Env, replica *servertest.Replica, old firsttest.Fixture) {
	t.Helper()
	client := replica.As(old.Key)
	for _, q := range old.Reads {
		var now any
		client.Get(q.Path).Want(t, http.StatusOK).JSON(t, &now)
		for _, line := range lost(q.Path, q.Answer, now) {
			t.Error(line)
		}
	}
	for _, q := range old.Commands {
		var now any
		env.CLI(&now, strings.Fields(strings.Replace(q.Command, "--limit 8", "--limit 9", 1))...)
		for _, line := range lost(q.Command, q.Answer, withoutNotice(now, q.Answer)) {
			t.Error(line)
		}
	}
}

// withoutNotice is a list as long as the one before, without the entry of the activity log
// that announces what will be deleted.
func withoutNotice(now, before any) any {
	entries, listed := now.([]any)
	then, _ := before.([]any)
	if !listed {
		return now
	}
	entries = slices.DeleteFunc(entries, func(entry any) bool {
		e, _ := entry.(map[string]any)
		return e["action"] == "company.retention_announced"
	})
	return entries[:min(len(entries), len(then))]
}

// lost lists what an answer said before and does not say now. It may say more.
func lost(where string, before, now any) (lines []string) {
	if strings.HasSuffix(where, ".lastUsedAt") {
		return nil // kept a few seconds late, and these questions use it again
	}
	switch b := before.(type) {
	case map[string]any:
		n, ok := now.(map[string]any)
		if !ok {
			return []string{fmt.Sprintf("%s was %v, is %v", where, before, now)}
		}
		for member, value := range b {
			inner, ok := n[member]
			if !ok {
				lines = append(lines, fmt.Sprintf("%s.%s is missing, was %v", where, member, value))
				continue
			}
			lines = append(lines, lost(where+"."+member, value, inner)...)
		}
		return lines
	case []any:
		n, ok := now.([]any)
		if !ok || len(n) != len(b) {
			return []string{fmt.Sprintf("%s was %v, is %v", where, before, now)}
		}
		for i := range b {
			lines = append(lines, lost(fmt.Sprintf("%s[%d]", where, i), b[i], n[i])...)
		}
		return lines
	}
	if !reflect.DeepEqual(before, now) {
		return []string{fmt.Sprintf("%s was %v, is %v", where, before, now)}
	}
	return nil
}

// sameCredentials shows that what people and AI clients hold still opens the
// service: password, session, access and refresh token.
func sameCredentials(t *testing.T, replica *servertest.Replica, old firsttest.Fixture) {
	t.Helper()
	base := replica.PublicURL()
	browser := replica.SignedOut(t)
	browser.HTTP.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	browser.Header = http.Header{"Cookie": {old.Session}}
	browser.Get("/devices").Want(t, http.StatusOK)
	browser.Header = nil
	browser.Post(web.SignInPath, "email", "admin@acme.test", "password", "correct horse battery").Want(t, http.StatusSeeOther)
	var count struct{ TotalElements int }
	servertest.WithToken(t, base, old.Tokens.Access).Call("list_assets", map[string]any{}).OK(t, &count)
	if count.TotalElements < 3 {
		t.Errorf("the AI client sees %d assets", count.TotalElements)
	}
	browser.Post("/oauth/token", "grant_type", "refresh_token", "client_id", old.Client, "refresh_token", old.Tokens.Refresh).
		Want(t, http.StatusOK)
}

// checksIn lets an agent that enrolled with the first version go on with the
// identity that it has: it carries out the command that waited.
func checksIn(t *testing.T, env *servertest.Env, replica *servertest.Replica, old firsttest.Fixture, a firsttest.Agent) {
	t.Helper()
	var identity struct{ DeviceID string }
	if err := json.Unmarshal(a.Identity, &identity); err != nil {
		t.Fatal(err)
	}
	known, err := env.DB().AgentDevice(t.Context(), identity.DeviceID)
	if err != nil {
		t.Fatal(err)
	}
	client := replica.As(old.Key)
	if newest := client.History(known.AssetID)[0]; newest.Status != "IN_PROGRESS" {
		t.Fatalf("no command waits: %+v", newest)
	}
	var asset struct{ Specifications map[string]string }
	client.Get("/assets/"+known.AssetID).Want(t, http.StatusOK).JSON(t, &asset)
	there, err := url.Parse(replica.PublicURL())
	if err != nil {
		t.Fatal(err)
	}
	var host atomic.Pointer[string]
	host.Store(&there.Host)
	device := simulated.New(simulated.Default(asset.Specifications["serialNumber"]), env.Now)
	running, err := agent.New(agent.Options{Dir: a.Dir(t), Version: "test", Device: device, Now: env.Now,
		Log:    slog.New(slog.DiscardHandler),
		Client: &http.Client{Transport: servertest.Reach(&host)}})
	if err != nil {
		t.Fatal(err)
	}
	defer running.Close()
	if _, err := running.Once(t.Context()); err != nil {
		t.Fatalf("the agent's check-in: %v", err)
	}
	if newest := client.History(known.AssetID)[0]; newest.Status != "SUCCESS" {
		t.Errorf("after the check-in the command is %+v", newest)
	}
}
