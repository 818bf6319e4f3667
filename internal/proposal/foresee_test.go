package proposal_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/proposal"
	"github.com/musterhq/muster/test/expect"
)

// call is an operation with its arguments.
type call struct {
	name      string
	arguments map[string]any
}

// foresees says what a call would be answered, and run what it is answered.
func (r *fixture) foresees(p access.Principal, c call) (*operation.Forecast, fault.Code) {
	r.Helper()
	k, o, source := r.kernel(c)
	a, err := k.Assess(r.Context(), o, p, operation.Meta{}, source)
	r.ok(err)
	if a.Fault != nil {
		return a.Forecast, a.Fault.Code
	}
	return a.Forecast, ""
}

func (r *fixture) run(p access.Principal, c call) fault.Code {
	r.Helper()
	k, o, source := r.kernel(c)
	if out := k.Run(r.Context(), o, p, operation.Meta{}, source); out.Fault != nil {
		return out.Fault.Code
	}
	return ""
}

func (r *fixture) kernel(c call) (*operation.Kernel, *operation.Operation, operation.Source) {
	r.Helper()
	registry := &operation.Registry{}
	proposal.Define(registry, r.service)
	text, err := json.Marshal(c.arguments)
	r.ok(err)
	kernel := operation.NewKernel(operation.Config{Budgets: operation.Budgets{Uncounted: true}, Now: r.clock.Now})
	return kernel, registry.Find(c.name), operation.Flat(text)
}

type args = map[string]any

func change(policyID, setting, to string) call {
	return call{"update_policy_settings", args{"policyId": policyID, "changes": []args{{"setting": setting, "value": to}}}}
}

// changes blocks settings, with other arguments.
func changes(operation string, with args, settings ...string) call {
	var all []args
	for _, setting := range settings {
		all = append(all, args{"setting": setting, "value": "BLOCK"})
	}
	with["changes"] = all
	return call{operation, with}
}

func copyOf(policyID, name string) call {
	return call{"create_policy", args{"fromPolicyId": policyID, "displayName": name}}
}

func rollback(policyID string, revision int) call {
	return call{"rollback_policy", args{"policyId": policyID, "revision": revision}}
}

// What is foreseen of a proposal is what proposing is answered, and it makes none.
func TestForesee_Propose(t *testing.T) {
	t.Parallel()
	r := onSQLite(t)
	p, hidden := r.newPolicy("Warehouse", 2), r.newPolicy("Hidden", 1)
	p, err := r.save(p, "CAMERA")
	r.ok(err)
	key, limited := r.key("k").Principal, r.key("k").Principal
	limited.Policies = []string{p.ID}
	for _, c := range []struct {
		name    string
		call    call
		want    fault.Code // empty: it would be proposed
		known   bool       // there is a forecast
		devices int
		impact  proposal.Impact
	}{
		{"a change", change(p.ID, "SMS", "BLOCK"), "", true, 2, proposal.Normal},
		{"a change of nothing", change(p.ID, "CAMERA", "BLOCK"), fault.Refused, true, 0, ""},
		{"a change of high impact", change(p.ID, "FACTORY_RESET", "BLOCK"), "", true, 2, proposal.High},
		{"a change of a policy that the caller may not see", change(hidden.ID, "SMS", "BLOCK"), fault.NotFound, false, 0, ""},
		{"a change of two settings", changes("update_policy_settings", args{"policyId": p.ID}, "SMS", "BLUETOOTH"), "", true, 2,
			proposal.Normal},
		{"a change of a setting twice", changes("update_policy_settings", args{"policyId": p.ID}, "SMS", "SMS"),
			fault.InvalidArguments, false, 0, ""},
		{"a change without a setting", call{"update_policy_settings", args{"policyId": p.ID}}, fault.InvalidArguments, false, 0, ""},
		{"a copy", copyOf(p.ID, "Copy"), "", true, 0, proposal.Normal},
		{"a copy with the name of another", copyOf(p.ID, "Hidden"), fault.Refused, true, 0, ""},
		{"a copy with a blank name", copyOf(p.ID, "  "), fault.InvalidArguments, false, 0, ""},
		{"a copy with a name of 50 characters", copyOf(p.ID, strings.Repeat("n", 50)), "", true, 0, proposal.Normal},
		{"a copy with a name of 51 characters", copyOf(p.ID, strings.Repeat("n", 51)), fault.InvalidArguments, false, 0, ""},
		{"a copy with a name that cannot be seen", copyOf(p.ID, "a\u200bb"), fault.InvalidArguments, false, 0, ""},
		{"a copy by a caller who may not see it", copyOf(p.ID, "Third"), fault.Forbidden, true, 0, ""},
		{"a rollback", rollback(p.ID, 1), "", true, 2, proposal.High},
		{"a rollback to what it is", rollback(p.ID, 2), fault.Refused, true, 0, ""},
		{"a rollback to no revision", rollback(p.ID, 9), fault.NotFound, false, 0, ""},
	} {
		by := key
		if c.call.name != "create_policy" || c.want == fault.Forbidden {
			by = limited
		}
		before := r.proposals()
		got, code := r.foresees(by, c.call)
		expect.Equal(t, c.name, expect.Values{"code": {code, c.want}, "known": {got != nil, c.known}, "made": {r.proposals(), before}})
		if got != nil {
			nothingYet := len(got.Effects) > 0 && got.Effects[0] == "Nothing changes until the proposal is applied."
			expect.Equal(t, c.name, expect.Values{"devices": {got.Devices, c.devices}, "impact": {got.Impact, string(c.impact)},
				"irreversible":              {got.Irreversible, false},
				"says that nothing changes": {nothingYet, c.want == ""}})
		}
		expect.Equal(t, c.name, expect.Values{"code when proposed": {r.run(by, c.call), c.want}})
	}
}

// What is wrong with the arguments of a change is said of each argument.
func TestPropose_WhatIsWrong(t *testing.T) {
	t.Parallel()
	r := onSQLite(t)
	p := r.newPolicy("Warehouse", 0)
	for _, c := range []struct {
		name  string
		call  call
		field string
		says  string
	}{
		{"unknown setting", change(p.ID, "X", "BLOCK"), "changes[0].setting", ""},
		{"unknown value", change(p.ID, "CAMERA", "X"), "changes[0].value", "must be one of ALLOW, BLOCK for CAMERA"},
		{"twice", changes("update_policy_settings", args{"policyId": p.ID}, "SMS", "CAMERA", "SMS"), "changes",
			"must list each setting at most once: SMS is listed twice"},
	} {
		k, o, source := r.kernel(c.call)
		out := k.Run(t.Context(), o, r.key("k").Principal, operation.Meta{}, source)
		if out.Fault == nil || len(out.Fault.Fields) != 1 {
			t.Errorf("%s: %+v", c.name, out.Fault)
			continue
		}
		f := out.Fault.Fields[0]
		expect.Equal(t, c.name, expect.Values{"field": {f.Field, c.field}, "says": {strings.HasPrefix(f.Message, c.says), true}})
	}
}

// moving is a store with a device on its way to every policy.
type moving struct{ proposal.Store }

func (moving) MovesTo(context.Context, string) (int, error) { return 1, nil }

// A device on its way to a policy makes a proposal one that waits, and too many of these are refused as foreseen.
func TestForesee_TooManyWaitForAMove(t *testing.T) {
	each(t, func(t *testing.T, r *fixture) {
		r.approving(access.ApproveRisky)
		r.service.Store = moving{r.service.Store}
		p := r.newPolicy("Warehouse", 0)
		for range proposal.MaxWaiting {
			r.propose(p, "FACTORY_RESET", "BLOCK")
		}
		own, risky := r.key("k").Principal, change(p.ID, "FACTORY_RESET", "BLOCK")
		forecast, code := r.foresees(own, risky)
		_, other := r.foresees(own, change(p.ID, "CAMERA", "BLOCK"))
		expect.Equal(t, "one more", expect.Values{"code": {code, fault.RateLimited}, "known": {len(forecast.Effects) > 1, true},
			"code when proposed": {r.run(own, risky), fault.RateLimited}, "code of one that does not wait": {other, fault.Code("")}})
	})
}

// broken is a database that fails at what is not read first.
type broken struct {
	proposal.Store
	proposal.Policies
}

func (broken) MovesTo(context.Context, string) (int, error) { return 0, errAway() }

func (broken) PolicyNamed(context.Context, string, string, string) (string, error) {
	return "", errAway()
}

// Where the database fails, nothing is foreseen.
func TestForesee_DatabaseAway(t *testing.T) {
	t.Parallel()
	r := onSQLite(t)
	p := r.newPolicy("Warehouse", 0)
	made, err := r.service.ProposeCopy(t.Context(), r.key("k"), p.ID, "Copy", nil)
	r.ok(err)
	r.approving(access.ApproveRisky)
	r.service.Store, r.service.Policies = broken{Store: r.db}, broken{Policies: r.db}
	for name, c := range map[string]call{
		"applying a copy":    {"apply_policy_proposal", args{"proposalId": made.ID}},
		"proposing a copy":   copyOf(p.ID, "Other"),
		"proposing a change": change(p.ID, "CAMERA", "BLOCK"),
	} {
		got, code := r.foresees(r.key("k").Principal, c)
		expect.Equal(t, name, expect.Values{"code": {code, fault.Unavailable}, "effects": {len(got.Effects), 0}})
	}
}

// save blocks a setting, as a person does in the portal.
func (r *fixture) save(p policy.Policy, setting string) (policy.Policy, error) {
	return r.policies.Save(r.Context(), p.CompanyID, p.ID, p.Version, policy.Edit{Changes: set(setting, "BLOCK")}, operator())
}

// proposals is how many proposals the company has.
func (r *fixture) proposals() int {
	r.Helper()
	all, err := r.db.CompanyProposals(r.Context(), proposal.Query{CompanyID: r.company.ID, Limit: 100})
	r.ok(err)
	return len(all)
}

// What is foreseen of applying is what applying is answered.
func TestForesee_Apply(t *testing.T) {
	t.Parallel()
	r := onSQLite(t)
	p := r.newPolicy("Warehouse", 2)
	taken := "Taken"
	for _, c := range []struct {
		name    string
		propose call
		before  func(id string) // it is applied
		typed   string
		want    fault.Code // empty: it would be applied
		devices int
		good    bool // something is lost for good
	}{
		{"a change", change(p.ID, "SMS", "BLOCK"), nil, "", "", 2, false},
		{"a change of high impact without the name", change(p.ID, "FACTORY_RESET", "BLOCK"), nil, "", fault.ConfirmationRequired, 2, false},
		{"with another name", change(p.ID, "FACTORY_RESET", "BLOCK"), nil, "warehouse 2", fault.ConfirmationRequired, 2, false},
		{"with the name", change(p.ID, "FACTORY_RESET", "BLOCK"), nil, "Warehouse", "", 2, false},
		{"a change of a policy that was saved since", change(p.ID, "CAMERA", "BLOCK"), func(string) {
			_, err := r.save(r.policy(p.ID), "BLUETOOTH")
			r.ok(err)
		}, "", fault.StaleProposal, 2, false},
		{"a copy by which devices would lose something",
			changes("create_policy", args{"fromPolicyId": p.ID, "displayName": "Copy 2"}, "CONFIGURE_WIFI"), nil, "", "", 0, false},
		{"a change by which devices lose something", change(p.ID, "CONFIGURE_WIFI", "BLOCK"), nil, "Warehouse", "", 2, true},
		{"a copy", copyOf(p.ID, "Copy"), nil, "", "", 0, false},
		{"a copy whose name was taken since", copyOf(p.ID, taken), func(string) { r.newPolicy(taken, 0) }, "", fault.Refused, 0, false},
		{"one that was applied", change(p.ID, "DATA_ROAMING", "BLOCK"), func(id string) {
			_, err := r.service.Apply(r.Context(), r.key("k"), id, "")
			r.ok(err)
		}, "", fault.NotPending, 2, false},
	} {
		k, o, source := r.kernel(c.propose)
		out := k.Run(r.Context(), o, r.key("k").Principal, operation.Meta{}, source)
		if out.Fault != nil {
			t.Fatalf("%s: %v", c.name, out.Fault)
		}
		id := out.Result.(proposal.View).ProposalID
		if c.before != nil {
			c.before(id)
		}
		apply := call{"apply_policy_proposal", args{"proposalId": id, "confirmation": c.typed}}
		was := r.proposal(id).Status
		got, code := r.foresees(r.key("k").Principal, apply)
		expect.Equal(t, c.name, expect.Values{"code": {code, c.want}, "devices": {got.Devices, c.devices},
			"irreversible": {got.Irreversible, c.good}, "says what it does": {len(got.Effects) > 0, true},
			"status": {r.proposal(id).Status, was}})
		other, code := r.foresees(r.key("k2").Principal, apply)
		expect.Equal(t, c.name+", by another key", expect.Values{"code": {code, fault.NotFound}, "known": {other != nil, false}})
		expect.Equal(t, c.name, expect.Values{"code when applied": {r.run(r.key("k").Principal, apply), c.want}})
	}
}

// Applying what has to be approved is foreseen with the approval, as it stands.
func TestForesee_ApplyWithApproval(t *testing.T) {
	t.Parallel()
	r := onSQLite(t)
	p, ada := approvable(r)
	made := r.propose(p, "SMS", "BLOCK")
	apply := call{"apply_policy_proposal", args{"proposalId": made.ID}}
	for _, want := range []struct {
		state string
		code  fault.Code
		by    string
	}{{"WAITING", fault.ConfirmationRequired, ""}, {"APPROVED", "", ada.Name}} {
		got, code := r.foresees(r.key("k").Principal, apply)
		if got == nil || got.Approval == nil {
			t.Fatalf("%s is foreseen as %+v", want.state, got)
		}
		var by string
		if got.Approval.By != nil {
			by = *got.Approval.By
		}
		expect.Equal(t, want.state, expect.Values{"code": {code, want.code}, "state": {got.Approval.State, want.state},
			"required": {got.Approval.Required, true}, "by": {by, want.by}})
		if want.by == "" {
			r.approves(ada, made.ID)
		}
	}
	ended := r.propose(p, "CAMERA", "BLOCK")
	r.clock.Advance(proposal.ApprovalLifetime)
	got, code := r.foresees(r.key("k").Principal, call{"apply_policy_proposal", args{"proposalId": ended.ID}})
	expect.Equal(t, "one that has expired", expect.Values{"code": {code, fault.NotPending}, "approval": {got.Approval == nil, true}})
}

// Who may see a proposal of a policy: its maker by the interfaces for programs, and who may see
// the policy in the portal.
func TestRead_WhoMay(t *testing.T) {
	t.Parallel()
	r := onSQLite(t)
	p, other := r.newPolicy("Warehouse", 0), r.newPolicy("Office", 0)
	made := r.propose(p, "CAMERA", "BLOCK")
	limited := func(id, policyID string) access.Principal {
		of := r.key(id).Principal
		of.Policies = []string{policyID}
		return of
	}
	stranger := r.key("k").Principal
	stranger.CompanyID = r.newCompany("other", "enterprises/LC2").ID
	for _, c := range []struct {
		name       string
		p          access.Principal
		id         string
		read, look fault.Code
	}{
		{"its maker", r.key("k").Principal, made.ID, "", ""},
		{"its maker, within the limits", limited("k", p.ID), made.ID, "", ""},
		{"its maker, who may not see the policy any more", limited("k", other.ID), made.ID, fault.NotFound, fault.NotFound},
		{"another", r.key("k2").Principal, made.ID, fault.NotFound, ""},
		{"another, within the limits", limited("k2", p.ID), made.ID, fault.NotFound, ""},
		{"another, who may not see the policy", limited("k2", other.ID), made.ID, fault.NotFound, fault.NotFound},
		{"another company's", stranger, made.ID, fault.NotFound, fault.NotFound},
		{"no proposal", r.key("k").Principal, "prp_none", fault.NotFound, fault.NotFound},
		{"no id", r.key("k").Principal, "", fault.NotFound, fault.NotFound},
	} {
		_, read := r.service.Read(r.Context(), c.p, c.id)
		_, look := r.service.Look(r.Context(), c.p, c.id)
		expect.Equal(t, c.name, expect.Values{"read": {fault.CodeOf(read), c.read}, "look": {fault.CodeOf(look), c.look}})
	}
}
