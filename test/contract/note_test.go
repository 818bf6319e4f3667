package contract_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/apikey"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/test/spec"
)

const (
	metaReason = "muster/reason"
	metaTicket = "muster/ticket"
)

// noted returns the note of the newest command entry of an asset.
func noted(t *testing.T, env *servertest.Env, c company.Company, action activity.Action) access.Note {
	t.Helper()
	entries, err := env.Admin().Activity.Activity(t.Context(), activity.Filter{CompanyID: c.ID, Action: action}, activity.Cursor{}, 1)
	if err != nil || len(entries) != 1 {
		t.Fatalf("%s: %d entries, %v", action, len(entries), err)
	}
	return entries[0].Note
}

// What a caller says of a call is kept with it, the same on both surfaces, and changes no
// answer of the contract.
func TestNote_IsKeptWithCommandsAndProposals(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		replica := env.Start()
		tenant := env.NewTenant("acme")
		phone := tenant.Devices(replica, servertest.FullyManaged(), 1)[0]
		client := tenant.Client(replica, access.All)
		answer := client.Post("/assets/"+phone.AssetID+"/commands/lock", nil, "X-Muster-Reason", "  Lost at the fair ✓ ", "X-Muster-Ticket",
			"OPS-1").Want(t, http.StatusOK)
		if strings.Contains(string(answer.Body), "fair") {
			t.Errorf("the answer has the reason: %s", answer.Body)
		}
		if got := noted(t, env, tenant.Company, "command.lock"); got != (access.Note{Reason: "Lost at the fair ✓", Ticket: "OPS-1"}) {
			t.Errorf("over REST: %+v", got)
		}
		assistant := servertest.WithKey(t, replica.PublicURL(), client.Key).Saying(metaReason, "a tidy-up").Saying(metaTicket, "OPS-2")
		assistant.Call("update_policy_settings", map[string]any{"policyId": tenant.Policy.ID,
			"changes": []any{map[string]any{"setting": "CAMERA", "value": "BLOCK"}}}).OK(t, nil)
		if got := noted(t, env, tenant.Company, activity.ProposalMade); got != (access.Note{Reason: "a tidy-up", Ticket: "OPS-2"}) {
			t.Errorf("a proposal, over MCP: %+v", got)
		}
		history := client.Get("/assets/"+phone.AssetID+"/commands").Want(t, http.StatusOK)
		if strings.Contains(string(history.Body), "fair") {
			t.Errorf("the history of the API has the reason: %s", history.Body)
		}
	})
}

// A note is one line of at most so many characters, on both surfaces.
func TestNote_IsChecked(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	replica := env.Start()
	acme := env.Company("acme", servertest.Everything())
	spare := newSpare(t, env, acme)
	for name, c := range map[string]struct {
		reason, ticket string
		field          string // empty: it is taken
	}{
		"both":            {strings.Repeat("ä", 200), strings.Repeat("T", 100), ""},
		"blanks":          {"   ", "", ""},
		"long reason":     {strings.Repeat("ä", 201), "", "Reason"},
		"long ticket":     {"", strings.Repeat("T", 101), "Ticket"},
		"no UTF-8":        {"\xe9t\xe9", "", "Reason"},
		"a broken ticket": {"", "T\xc3", "Ticket"},
		"a control":       {"a\u0085b", "", "Reason"},
		"a later control": {"", "a\u009bb", "Ticket"},
	} {
		t.Run(name, func(t *testing.T) {
			answer := replica.As(env.Key(acme, access.All)).Post("/assets/"+spare+"/commands/reboot", nil, "X-Muster-Reason", c.reason,
				"X-Muster-Ticket", c.ticket)
			want := http.StatusConflict
			if c.field != "" {
				want = http.StatusBadRequest
			}
			if answer.Status != want || c.field != "" && !strings.Contains(string(answer.Body), "X-Muster-"+c.field) {
				t.Errorf("%s over REST: %d %s", name, answer.Status, answer.Body)
			}
			if !utf8.ValidString(c.reason + c.ticket) {
				return // JSON cannot carry it
			}
			e := servertest.WithKey(t, replica.PublicURL(), env.Key(acme, access.All)).Saying(metaReason, c.reason).Saying(metaTicket,
				c.ticket).
				Call("reboot_device", map[string]any{"assetId": spare}).Failed(t)
			if e.Status != want || c.field != "" && !strings.Contains(e.Message, "muster/"+strings.ToLower(c.field)) {
				t.Errorf("%s over MCP: %+v", name, e)
			}
		})
	}
	if e := servertest.WithKey(t, replica.PublicURL(), env.Key(acme, access.All)).Saying(metaReason, nil).Saying(metaTicket, nil).
		Call("reboot_device", map[string]any{"assetId": spare}).Failed(t); e.Status != http.StatusConflict {
		t.Errorf("null, which means absent: %+v", e)
	}
	if e := servertest.WithKey(t, replica.PublicURL(), env.Key(acme, access.All)).Saying(metaReason, 7).Call("reboot_device",
		map[string]any{"assetId": spare}).Failed(t); e.Code != "invalid_arguments" {
		t.Errorf("a number: %+v", e)
	}
}

// A company that requires reasons refuses calls without one, and asks models for it in
// the tools concerned; no other company's tools change.
func TestRequireReason(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	replica := env.Start()
	acme := env.Company("acme", servertest.Everything())
	spare := newSpare(t, env, acme)
	own := env.Policy(acme, "Own", policy.Agent)
	target := map[string]any{"assetId": spare}
	asks := func(key string) map[string]bool {
		asking := map[string]bool{}
		for _, tool := range servertest.WithKey(t, replica.PublicURL(), key).Tools() {
			var schema struct {
				Properties map[string]any
				Required   []string
			}
			if err := json.Unmarshal(tool.InputSchema, &schema); err != nil {
				t.Fatal(err)
			}
			if schema.Properties["reason"] != nil {
				asking[tool.Name] = schema.Required[len(schema.Required)-1] == "reason"
			}
		}
		return asking
	}
	require := func(rule access.ReasonRule) {
		settings := servertest.Everything()
		settings.Controls = access.DefaultControls()
		settings.Controls.RequireReason = rule
		setCompany(t, env, acme.ID, settings)
	}
	if got := asks(env.Key(acme, access.All)); len(got) != 0 {
		t.Errorf("with the defaults %v ask", got)
	}
	if e := servertest.WithKey(t, replica.PublicURL(), env.Key(acme, access.All)).Call("wipe_device",
		map[string]any{"assetId": spare, "reason": "x"}).Failed(t); e.Code != "invalid_arguments" {
		t.Errorf("with the defaults reason is no argument: %+v", e)
	}
	writes, destroys := 0, 0
	for _, e := range spec.Endpoints {
		if e.Effect != spec.Reading {
			writes++
		}
		if spec.CommandOf(e.Tool).Destructive() {
			destroys++
		}
	}
	for _, c := range []struct {
		rule   access.ReasonRule
		asking int
		tools  map[string]bool // whether it needs a reason
	}{
		{access.ReasonDestructive, destroys, map[string]bool{"wipe_device": true, "relinquish_ownership": true, "lock_device": false,
			"clear_app_data": false}},
		{access.ReasonAll, writes, map[string]bool{"wipe_device": true, "lock_device": true, "create_provisioning_qr_code": true,
			"update_asset": true}},
	} {
		t.Run(string(c.rule), func(t *testing.T) {
			require(c.rule)
			if got := asks(env.Key(acme, access.All)); len(got) != c.asking {
				t.Errorf("%s: %d tools ask: %v", c.rule, len(got), got)
			}
			for name, needs := range c.tools {
				o := replica.Registry().Find(name)
				path, arguments := inWorld(o, world{asset: spare, policy: own.ID})
				if name == "clear_app_data" {
					arguments["packageNames"] = []string{"com.example.app"}
				}
				body := payload(o, exampleBody(o))
				for reason, refused := range map[string]bool{"": needs, "it was lost": false} {
					key := env.Key(acme, access.All)
					answer := replica.As(key).Do(o.Method, path, body, "X-Muster-Reason", reason)
					if got := answer.Status == http.StatusBadRequest; got != refused ||
						refused && !strings.Contains(string(answer.Body), "X-Muster-Reason") {
						t.Errorf("%s, %s with %q over REST: %d %s", c.rule, name, reason, answer.Status, answer.Body)
					}
					if needs && reason != "" {
						arguments["reason"] = reason
					} else {
						delete(arguments, "reason")
					}
					if got := servertest.WithKey(t, replica.PublicURL(), env.Key(acme, access.All)).Call(name, arguments); got.IsError {
						if e := got.Failed(t); (e.Status == http.StatusBadRequest) != refused {
							t.Errorf("%s, %s with %q over MCP: %+v", c.rule, name, reason, e)
						}
					}
				}
			}
			e := servertest.WithKey(t, replica.PublicURL(), env.Key(acme, access.All)).Saying(metaReason, "said beside").Call("wipe_device",
				target).Failed(t)
			if e.Status != http.StatusConflict {
				t.Errorf("%s: a reason in _meta: %+v", c.rule, e)
			}
		})
	}
}

// A key is used from its networks alone, by the address that trusted proxies tell.
func TestKey_IsBoundToItsNetworks(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	replica := env.Start()
	acme := env.Company("acme", servertest.Everything())
	networks, err := apikey.ParseNetworks([]string{"192.0.2.0/24", "2001:db8::/32"})
	if err != nil {
		t.Fatal(err)
	}
	_, key, err := apikey.Keys{Store: env.Admin().Keys, Now: env.Now}.CreateForOperator(t.Context(), apikey.Request{
		CompanyID: acme.ID, Name: "bound", Permissions: access.DevicesRead, Networks: networks})
	if err != nil {
		t.Fatal(err)
	}
	for from, want := range map[string]int{"": 401, "192.0.2.7": 200, "198.51.100.1": 401, "2001:db8::1": 200, "::ffff:192.0.2.8": 200,
		"192.0.2.7, 198.51.100.1": 401, "nonsense": 401} {
		t.Run(from, func(t *testing.T) {
			header := []string{}
			assistant := servertest.WithKey(t, replica.PublicURL(), key)
			bearer := servertest.WithToken(t, replica.PublicURL(), key)
			if from != "" {
				header = []string{"X-Forwarded-For", from}
				assistant.Header["X-Forwarded-For"], bearer.Header["X-Forwarded-For"] = []string{from}, []string{from}
			}
			if got := replica.As(key).Do("GET", "/assets", nil, header...); got.Status != want {
				t.Errorf("REST from %q: %d, want %d", from, got.Status, want)
			}
			for _, a := range []servertest.Assistant{assistant, bearer} {
				if got := a.Call("count_assets", nil); got.Status != want {
					t.Errorf("MCP from %q: %d, want %d", from, got.Status, want)
				}
			}
		})
	}
}

// A key with a number of devices commands no more in 24 hours, over both surfaces and
// replicas together.
func TestKey_DevicesPerDay(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		replicas := []*servertest.Replica{env.Start(), env.Start()}
		tenant := env.NewTenant("acme")
		phones := tenant.Devices(replicas[0], servertest.FullyManaged(), 4)
		_, key, err := apikey.Keys{Store: env.Admin().Keys, Now: env.Now}.CreateForOperator(t.Context(), apikey.Request{
			CompanyID: tenant.Company.ID, Name: "bound", Permissions: access.All, DevicesPerDay: 2})
		if err != nil {
			t.Fatal(err)
		}
		statuses := make(chan int, len(phones))
		for i, phone := range phones {
			go func() {
				answer, err := replicas[i%2].As(key).Try("POST", "/assets/"+phone.AssetID+"/commands/reboot", nil)
				if err != nil {
					t.Error(err)
				}
				statuses <- answer.Status
			}()
		}
		got := map[int]int{}
		for range phones {
			got[<-statuses]++
		}
		if got[http.StatusOK] != 2 || got[http.StatusTooManyRequests] != 2 {
			t.Fatalf("four at a time: %v", got)
		}
		free, used := "", ""
		for _, phone := range phones {
			if len(replicas[0].As(key).History(phone.AssetID)) == 0 {
				free = phone.AssetID
			} else {
				used = phone.AssetID
			}
		}
		e := servertest.WithKey(t, replicas[1].PublicURL(), key).Call("lock_device", map[string]any{"assetId": free}).Failed(t)
		if e.Code != "rate_limited" || e.RetryAfter < 86_000 || e.RetryAfter > 86_400 || !strings.Contains(e.Message, "2 devices") {
			t.Errorf("a third device over MCP: %+v", e)
		}
		if answer := replicas[0].As(key).Post("/assets/"+free+"/commands/lock", nil); answer.Status != http.StatusTooManyRequests ||
			answer.Header.Get("Retry-After") == "" {
			t.Errorf("a third device over REST: %d %v", answer.Status, answer.Header)
		}
		replicas[1].As(key).Post("/assets/"+used+"/commands/lock", nil).Want(t, http.StatusOK)
		tenant.Client(replicas[0], access.All).Post("/assets/"+free+"/commands/lock", nil).Want(t, http.StatusOK)
		env.Advance(24*time.Hour + time.Minute)
		replicas[0].As(key).Post("/assets/"+free+"/commands/lock", nil).Want(t, http.StatusOK)
	})
}
