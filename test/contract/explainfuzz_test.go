package contract_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/database/pgtest"
	"github.com/musterhq/muster/internal/servertest"
)

// Whatever is asked to be explained: the answer is an explanation in its one shape or a
// refusal of the question, no call is made, and nothing is written of it.
func FuzzExplain(f *testing.F) {
	env := servertest.New(f)
	tenant, replica := env.NewTenant("acme"), env.Start()
	client := tenant.Client(replica, access.All)
	env.CLI(new(any), "company", "set", "acme", "--apply-approval", "all", "--destructive-approval", "on")
	made := client.Post("/policies/"+tenant.Policy.ID+"/changes", args{"changes": change("CAMERA", "BLOCK")}).Want(f, 201).Members(f)
	for tool, arguments := range exampleCalls("nothing", tenant.Policy.ID, "nothing", made["proposalId"].(string)) {
		text, err := json.Marshal(arguments)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(tool, string(text))
	}
	for _, hostile := range []string{``, `null`, `[]`, `"x"`, `{`, `{"assetId":null}`, `{"assetId":{"assetId":"x"}}`,
		`{"assetId":"a","assetId":"b"}`, `{"AssetId":"a"}`,
		`{"assetId":"\u0000"}`, `{"assetId":"enterprises/acme/assets/../../x"}`, `{"assetId":1e400}`, `{}},"arguments":{}`,
		"{\"assetId\":\"\xff\"}"} {
		f.Add("wipe_device", hostile)
		f.Add("explain_operation", `{"operation":"wipe_device","arguments":`+hostile+`}`)
	}
	f.Add("update_policy_settings", `{"policyId":"p","changes":[{"setting":"CAMERA","value":"BLOCK","Value":"ALLOW"},null,[]]}`)
	f.Add("list_assets", `{"size":-1,"page":99999999999999999999,"status":["ACTIVE"]}`)
	f.Add("no_tool", `{}`)
	f.Add("wipe_device\x00", `{}`)
	written := func(tb testing.TB) (all []string) {
		now := pgtest.Dump(tb, env.Database)
		for _, table := range []string{"commands", "proposals", "authorizations", "policies", "assets", "destructive_uses", "claims"} {
			all = append(all, now[table]...)
		}
		return all
	}
	before := written(f)
	f.Fuzz(func(t *testing.T, tool, arguments string) {
		env.Advance(time.Minute) // the allowance of explanations
		name, err := json.Marshal(tool)
		if err != nil {
			t.Fatal(err)
		}
		asks := client
		asks.TB = t
		answer := asks.Post("/explain", `{"operation":`+string(name)+`,"arguments":`+arguments+`}`)
		switch answer.Status {
		case 200:
			explainedWell(t, answer)
		case 400:
			if members := answer.Members(t); members["detail"] == "" || members["type"] != "about:blank" {
				t.Errorf("refused with %v", members)
			}
		default:
			t.Errorf("%d %s", answer.Status, answer.Body)
		}
		if now := written(t); !slices.Equal(now, before) {
			t.Errorf("written: %q, before %q", now, before)
		}
	})
}

// explainedWell checks the shape of an explanation, and that its parts fit each other.
func explainedWell(t *testing.T, answer servertest.Answer) {
	t.Helper()
	const all = "allowed answer approval budget destructive devices effects impact irreversible requiresConfirmation"
	if got := members(answer.Members(t)); got != all {
		t.Errorf("members %s", got)
	}
	var result explained
	answer.JSON(t, &result)
	refused := result.Answer.Code != nil
	if result.Allowed == refused || result.Allowed != (result.Answer.Status < 300) || result.Answer.Status >= 500 ||
		result.Answer.Message == "" {
		t.Errorf("%+v", result)
	}
	describesTarget := result.Devices != nil || result.Effects != nil || result.Irreversible != nil || result.Impact != nil ||
		result.RequiresConfirmation != nil || result.Approval != nil
	if result.Answer.Status == 404 && describesTarget || result.Allowed && result.Effects == nil {
		t.Errorf("the target is described wrongly: %s", answer.Body)
	}
	if result.Budget.Remaining < 9 { // one proposal was made
		t.Errorf("the budget was spent: %+v", result.Budget)
	}
}
