package contract_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/test/spec"
)

// Every operation that destroys or disrupts, in the contract's table, is refused by the stop, and by the
// company's limit if that counts it; explanations say so.
func TestGuards_HarmfulOperations(t *testing.T) {
	t.Parallel()
	harmful := map[string]bool{} // whether the company's limit counts it
	for _, e := range spec.Endpoints {
		if e.Effect.Harms() {
			harmful[e.Tool] = e.Gate == "destructiveCommands"
		}
	}
	env := servertest.New(t)
	tenant, replica := env.NewTenant("acme"), env.Start()
	var found []string
	for _, o := range replica.Registry().All() {
		if o.Disruptive || o.Effect == operation.Destroying {
			found = append(found, o.Name)
			if counted := o.Needs.Has(access.DevicesCommandDestructive); counted != harmful[o.Name] ||
				counted != (o.Gate == access.DestructiveCommands) {
				t.Errorf("%s: takes the destructive permission %t, gate %q, listed as counted %t", o.Name, counted, o.Gate, harmful[o.Name])
			}
			if o.Budget == operation.Free || o.Gate == access.NoGate {
				t.Errorf("%s has the budget %v and the gate %q, want both", o.Name, o.Budget, o.Gate)
			}
		}
	}
	if slices.Sort(found); !slices.Equal(found, slices.Sorted(maps.Keys(harmful))) {
		t.Errorf("harmful operations %v, listed %v", found, slices.Sorted(maps.Keys(harmful)))
	}

	client := tenant.Client(replica, access.All)
	profiles := tenant.Devices(replica, servertest.WorkProfile(), 2)
	for _, d := range profiles {
		servertest.AwaitStatus(t, tenant, client, d.AssetID, "ACTIVE")
	}
	calls := exampleCalls(profiles[1].AssetID, tenant.Policy.ID, tenant.Policy.ID, "prp_"+strings.Repeat("a", 26))
	env.CLI(new(any), "company", "set", "acme", "--destructive-limit", "1/60m")
	client.Post("/assets/"+profiles[0].AssetID+"/commands/reset-screen-lock", nil).Want(t, 200)
	for tool, counted := range harmful {
		if e := explain(t, client, tool, calls[tool]); counted != (e.Answer.Status == 429) {
			t.Errorf("over the limit %s: %+v", tool, e.Answer)
		}
	}
	env.CLI(new(any), "company", "stop", "--company", "acme", "--reason", "a key has leaked")
	for tool := range harmful {
		if e := explain(t, client, tool, calls[tool]); e.Answer.Status != 403 || !strings.Contains(e.Answer.Message, "a key has leaked") {
			t.Errorf("stopped %s: %+v", tool, e.Answer)
		}
	}
}

// Every control of a company is listed here with a value that is looser than its default
// or than a tight one; each such change waits, except that of RequireReason. A new control fails
// the test until it is listed.
func TestGuards_LooseningSettings(t *testing.T) {
	t.Parallel()
	tight := access.Controls{ApplyApproval: access.ApproveAll, SecondPerson: true, ApproverAge: access.MaxApproverAge,
		DestructiveApproval: true,
		DestructiveLimit:    access.DestructiveLimit{Devices: 1, Window: access.MaxLimitWindow}, RequireReason: access.ReasonAll}
	names := map[string]access.ControlName{"ApplyApproval": access.ApplyApprovalControl, "SecondPerson": access.SecondPersonControl,
		"ApproverAge": access.ApproverAgeControl, "DestructiveApproval": access.DestructiveApprovalControl,
		"DestructiveLimit": access.DestructiveLimitControl,
		"RequireReason":    ""} // takes effect at once: it bounds nothing that a caller may do
	v := reflect.ValueOf(tight)
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if v.Field(i).IsZero() {
			t.Errorf("%s has no tight value in this test", name)
		}
		looser := tight
		reflect.ValueOf(&looser).Elem().Field(i).SetZero()
		control, listed := names[name]
		if !listed {
			t.Errorf("%s is not listed", name)
		}
		if control == "" {
			continue
		}
		from, to := access.Settings{Controls: tight}, access.Settings{Controls: looser}
		if !access.Loosens(control, from, to) {
			t.Errorf("%s: a looser value takes effect at once", name)
		}
		if access.Loosens(control, to, from) {
			t.Errorf("%s: a stricter value waits", name)
		}
	}
}
