package e2e_test

import (
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/service/ops"
)

// A database may hold policy names from before the rules of names. The doctor
// names each with its policy, and the log says at start that there are some.
func TestPolicyNames_OldOnesAreReported(t *testing.T) {
	t.Parallel()
	const check, warning = "policy names", "policy names that look alike or hide characters: run muster doctor"
	env := servertest.New(t)
	acme := env.Company("acme", servertest.Everything())
	env.Policy(acme, "Warehouse", policy.Platform)
	vault := env.Policy(acme, "Vault", policy.Platform)
	env.Advance(time.Second) // the older of two names that look alike is not reported
	lookalike := env.Policy(acme, "Other", policy.Platform)
	diagnose := func() (found []ops.Finding) {
		for _, f := range ops.Diagnose(t.Context(), env.Config(), env.Now) {
			if f.Check == check {
				found = append(found, f)
			}
		}
		return found
	}
	if found := diagnose(); len(found) != 1 || found[0].Status != ops.Fine {
		t.Errorf("before: %+v", found)
	}
	env.Start().Stop()
	if strings.Contains(string(env.Log.Text()), warning) {
		t.Errorf("the log warns of names that are well")
	}

	raw := rawDatabase(t, env)
	alter(t, raw, `UPDATE policies SET name = ?, name_key = ? WHERE id = ?`, "Vault\u200b", "vault\u200b", lookalike.ID)
	details := ""
	for _, f := range diagnose() {
		if f.Status != ops.Warning || f.Remedy == "" {
			t.Errorf("%+v, want a warning with a remedy", f)
		}
		details += f.Detail + "\n"
	}
	for _, want := range []string{"company acme", lookalike.ID, vault.ID, `\u200b`, "looks like"} {
		if !strings.Contains(details, want) {
			t.Errorf("the doctor does not tell %q: %s", want, details)
		}
	}
	if strings.Contains(details, "\u200b") {
		t.Errorf("the doctor prints a hidden character: %q", details)
	}
	env.Start().Stop()
	if log := string(env.Log.Text()); strings.Count(log, warning) != 1 ||
		!strings.Contains(log, `"`+warning+`" part=service count=1`+"\n") {
		t.Errorf("the log has the warning %d times, want once and for one policy: %s", strings.Count(log, warning), log)
	}
}
