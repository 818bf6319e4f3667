package contract_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/database/pgtest"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/test/expect"
	"github.com/musterhq/muster/test/spec"
)

// explained is an answer of explain_operation.
type explained struct {
	Allowed bool
	Answer  struct {
		Status  int
		Code    *string
		Message string
	}
	Devices              *int
	Effects              *[]string
	Irreversible         *bool
	Impact               *string
	RequiresConfirmation *bool
	Approval             *struct {
		Required bool
		State    string
		URL      *string
	}
	Budget      struct{ Remaining, ResetSeconds int }
	Destructive *struct{ Remaining, ResetSeconds int }
}

func explain(t testing.TB, c servertest.Client, tool string, arguments any) (e explained) {
	t.Helper()
	c.Post("/explain", map[string]any{"operation": tool, "arguments": arguments}).Want(t, 200).JSON(t, &e)
	return e
}

// exampleCalls are arguments of each tool that would be accepted, or refused late.
func exampleCalls(assetID, policyID, otherPolicyID, proposalID string) map[string]map[string]any {
	calls := map[string]map[string]any{}
	for _, e := range spec.All() {
		calls[e.Tool] = e.Arguments("assetId", assetID, "policyId", policyID, "otherPolicyId", otherPolicyID, "proposalId", proposalID,
			"logId", "none")
	}
	return calls
}

// An explanation changes no row but those of its own allowance and of the key's last
// use, sends nothing, and logs no argument.
func TestExplain_LeavesNoTrace(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		tenant, replica := env.NewTenant("acme"), env.Start()
		other := env.Policy(tenant.Company, "Other", tenant.Policy.Type)
		phone := tenant.Devices(replica, servertest.FullyManaged(), 1)[0]
		client := tenant.Client(replica, access.All)
		servertest.AwaitStatus(t, tenant, client, phone.AssetID, "ACTIVE")
		made := client.Post("/policies/"+tenant.Policy.ID+"/changes",
			map[string]any{"changes": []any{map[string]string{"setting": "CAMERA", "value": "BLOCK"}}}).
			Want(t, 201).Members(t)
		calls := exampleCalls(phone.AssetID, tenant.Policy.ID, other.ID, made["proposalId"].(string))
		replica.Stop() // no loop of another works beside the explanations that are compared
		replica = env.Start()
		client = client.As(replica)
		client.Get("/assets/count").Want(t, 200)
		env.Eventually("both policies are pushed", func() error {
			if pushed := pgtest.Dump(t, env.Database)["policy_pushes"]; len(pushed) < 2 {
				return fmt.Errorf("%v", pushed)
			}
			return nil
		})
		vendor := func() int {
			return len(env.Emulator.Calls(0, "devices.issueCommand")) + env.Calls("devices.patch") + env.Calls("enrollmentTokens.create")
		}
		before, sent := pgtest.Dump(t, env.Database), vendor()
		for _, tool := range slices.Sorted(maps.Keys(calls)) {
			if e := explain(t, client, tool, calls[tool]); e.Answer.Status >= 500 || e.Answer.Status == 400 {
				t.Errorf("%s: %+v", tool, e)
			}
		}
		if len(calls) != len(replica.Registry().All()) {
			t.Errorf("%d of %d operations are explained here", len(calls), len(replica.Registry().All()))
		}
		if now := vendor(); now != sent {
			t.Errorf("%d calls to the platform", now-sent)
		}
		after := pgtest.Dump(t, env.Database)
		// The allowance, the last use, and what a running service does by itself: it seals
		// the entries that there are, gives events their positions, and notes by what time rows are old.
		own := []string{"budgets", "api_keys", "replicas", "leases", "activity_heads", "events", "event_heads", "operator_acts"}
		before["activity"], after["activity"] = make([]string, len(before["activity"])), make([]string, len(after["activity"]))
		for table := range after {
			if !slices.Contains(own, table) && !slices.Equal(before[table], after[table]) {
				t.Errorf("%s changed:\n%v\n%v", table, before[table], after[table])
			}
		}
		if log := env.Log.Text(); bytes.Contains(log, []byte("seldom-spoken")) {
			t.Error("an argument is in the log")
		}
		if e := explain(t, client, "lock_device", calls["lock_device"]); e.Budget.Remaining != 9 { // the proposal
			t.Errorf("budget %+v", e.Budget)
		}
	})
}

// An id of another company is explained as one that does not exist, and a caller
// without the permission is not told of the target.
func TestExplain_SaysNothingOfForeignTargets(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	tenant, rival, replica := env.NewTenant("acme"), env.NewTenant("rival"), env.Start()
	theirs, ours := rival.Devices(replica, servertest.FullyManaged(), 1)[0], tenant.Devices(replica, servertest.FullyManaged(), 1)[0]
	client := tenant.Client(replica, access.All)
	servertest.AwaitStatus(t, tenant, client, ours.AssetID, "ACTIVE")
	body := func(c servertest.Client, tool, policyID, assetID string) string {
		calls := exampleCalls(assetID, policyID, policyID, "prp_"+strings.Repeat("a", 26))
		return string(c.Post("/explain", map[string]any{"operation": tool, "arguments": calls[tool]}).Want(t, 200).Body)
	}
	tools := slices.Sorted(maps.Keys(exampleCalls("", "", "", "")))
	for i, tool := range tools {
		if i == len(tools)/2 {
			client = tenant.Client(replica, access.All) // the first has no explanations left
		}
		foreign, missing := body(client, tool, rival.Policy.ID, theirs.AssetID),
			body(client, tool, strings.Repeat("b", 26), strings.Repeat("c", 26))
		if foreign != missing {
			t.Errorf("%s: a foreign id\n%s\na missing one\n%s", tool, foreign, missing)
		}
	}
	for _, right := range []access.Permission{access.Provisioning, access.PoliciesRead, access.DevicesRead} {
		poor := tenant.Client(replica, right)
		known, missing := body(poor, "wipe_device", "", ours.AssetID), body(poor, "wipe_device", "", "nothing")
		var e explained
		if err := json.Unmarshal([]byte(known), &e); err != nil {
			t.Fatal(err)
		}
		expect.Equal(t, "with "+right.String(),
			expect.Values{"answer about a known asset": {known, missing}, "status": {e.Answer.Status, 403},
				"shows devices": {e.Devices != nil, false}, "shows effects": {e.Effects != nil, false},
				"shows irreversible": {e.Irreversible != nil, false}, "shows requiresConfirmation": {e.RequiresConfirmation != nil, false}})
	}
}

// The allowance is the caller's own, over all replicas, and not the budget; a
// connection has one whatever its scopes.
func TestExplain_AllowanceOfItsOwn(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		tenant, first := env.NewTenant("acme"), env.Start()
		key := env.Key(tenant.Company, access.PoliciesRead)
		replicas := []*servertest.Replica{first, env.Start()}
		if strings.HasPrefix(env.Database, "sqlite:") {
			replicas[1] = first
		}
		ask := map[string]any{"operation": "wipe_device", "arguments": map[string]any{"assetId": "x"}}
		for i := range 60 {
			replicas[i%2].As(key).Post("/explain", ask).Want(t, 200)
		}
		refused := first.As(key).Post("/explain", ask).Want(t, 429)
		if wait, err := strconv.Atoi(refused.Header.Get("Retry-After")); err != nil || wait < 1 || wait > 60 {
			t.Errorf("Retry-After = %q", refused.Header.Get("Retry-After"))
		}
		first.As(key).Get("/policies").Want(t, 200)
		browser := env.Browser(tenant.Company, account.Admin)
		var e explained
		assistant := servertest.WithToken(t, first.PublicURL(), browser.Connect(first.PublicURL(), "mcp:provisioning").Access)
		assistant.Call("explain_operation", map[string]any{"operation": "lock_device", "arguments": map[string]any{"assetId": "x"}}).OK(t,
			&e)
		if e.Answer.Status != 403 || e.Devices != nil || e.Budget.Remaining != 10 {
			t.Errorf("a connection that may provision: %+v", e)
		}
	})
}
