package contract_test

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/emulator"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/proposal"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/service"
	"github.com/musterhq/muster/test/expect"
	"github.com/musterhq/muster/test/needs"
)

func members(m any) string {
	o, _ := m.(map[string]any)
	return strings.Join(slices.Sorted(maps.Keys(o)), " ")
}

const proposalMembers = "capability expiresAt fields impact proposalId requiresConfirmation status summary target title"

// Propose, read, apply, read back, copy and roll back, as contract 2.4 to 2.6
// and 4.3 have it, by either door; devices get what was applied, and the asset
// shows which version and what the device could not do.
func TestPolicies_ProposeApplyAndRollBack(t *testing.T) {
	t.Parallel()
	needs.Zbar().Of(t)
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		tenant, replica := env.NewTenant("acme"), env.Start()
		for _, d := range callers() {
			t.Run(d.name, func(t *testing.T) { changes(t, &policyFixture{Tenant: tenant, t: t, r: replica, caller: d}) })
		}
	})
}

func changes(t *testing.T, p *policyFixture) {
	key, of := p.all(), p.policy()
	enrolled := p.Enroll(p.Company, emulator.Enrollment{Count: 1,
		EnrollmentToken: p.Client(p.r, access.All).QRCode(of, args{"personalUsage": "ALLOWED"})})
	before := p.ok(key, "get_policy_settings", args{"policyId": of.PathName()})
	if got := members(before); got != "deviceCount displayName editable policyId settings version" {
		t.Errorf("settings have %s", got)
	}
	expect.Equal(t, "settings", expect.Values{"deviceCount": {before["deviceCount"], 1.0}, "version": {before["version"], 1.0},
		"editable": {before["editable"], true}, "policyId": {before["policyId"], of.PathName()},
		"number of settings": {len(before["settings"].([]any)), len(policy.Catalog())}})
	if got := members(before["settings"].([]any)[0]); got != "allowedValues group highImpact id label value" {
		t.Errorf("a setting has %s", got)
	}

	// NETWORK_RESET works on fully managed devices alone; the device says so.
	started := p.Now()
	made := p.ok(key, "update_policy_settings", args{"policyId": of.PathName(),
		"changes": append(change("NETWORK_RESET", "block"), change("CAMERA", "Block")...)})
	if got := members(made); got != proposalMembers {
		t.Errorf("a proposal has %s", got)
	}
	expect.Equal(t, "the proposal", expect.Values{"capability": {made["capability"], "update_policy_settings"},
		"status": {made["status"], "PENDING"},
		"impact": {made["impact"], "NORMAL"}, "requiresConfirmation": {made["requiresConfirmation"], false},
		"prefix of proposalId":   {strings.HasPrefix(made["proposalId"].(string), "prp_"), true},
		"summary names 1 device": {strings.Contains(made["summary"].(string), "1 device"), true}})
	target, first := made["target"].(map[string]any), made["fields"].([]any)[0].(map[string]any)
	if members(target) != "id kind name" || target["kind"] != "POLICY" || target["id"] != of.PathName() || target["name"] != of.Name {
		t.Errorf("target %v", target)
	}
	if members(first) != "label previousValue value" || first["label"] != "Network settings reset" || first["value"] != "BLOCK" ||
		first["previousValue"] != "NOT_SET" {
		t.Errorf("field %v", first)
	}
	expires, err := time.Parse(time.RFC3339, made["expiresAt"].(string))
	if err != nil || expires.Sub(started) < 9*time.Minute || expires.Sub(p.Now()) > 10*time.Minute {
		t.Errorf("expires %v, %v", made["expiresAt"], err)
	}
	if p.current(of.ID).Version != 1 {
		t.Error("proposing changed the policy")
	}
	reading := p.ok(key, "get_policy_proposal", args{"proposalId": made["proposalId"]})
	if fmt.Sprint(reading) != fmt.Sprint(made) {
		t.Errorf("read %v\nmade %v", reading, made)
	}

	done := p.ok(key, "apply_policy_proposal", args{"proposalId": made["proposalId"]})
	if got := members(done); got !=
		"capability expiresAt fields impact proposalId requiresConfirmation result status summary target title" {
		t.Errorf("an applied proposal has %s", got)
	}
	result := done["result"].(map[string]any)
	expect.Equal(t, "the applied proposal", expect.Values{"members": {members(result), "displayName message policyId portalUrl version"},
		"version": {result["version"], 2.0}, "displayName": {result["displayName"], of.Name},
		"policyId":  {result["policyId"], of.PathName()},
		"portalUrl": {result["portalUrl"], p.r.PublicURL() + "/policies/" + of.ID}, "status": {done["status"], "SUCCEEDED"},
		"fields": {done["fields"], made["fields"]}})
	if after := p.ok(key, "get_policy_proposal", args{"proposalId": made["proposalId"]}); after["status"] != "SUCCEEDED" ||
		after["result"] != nil {
		t.Errorf("read after applying: %v", after)
	}
	p.pushed(of.ID)
	p.reports(enrolled[0].AssetID, of)

	p.copies(key, of)
	p.rollsBack(key, of)
}

// reports waits until the asset shows the applied version, and the setting that
// the device does not comply with, with the reason.
func (p *policyFixture) reports(assetID string, of policy.Policy) {
	p.t.Helper()
	client := p.Client(p.r, access.All)
	client.Post("/assets/"+assetID+"/commands/status-report", nil).Want(p.t, 200)
	p.Eventually("the asset shows what the device applied", func() error {
		var asset struct {
			ManagedDevice struct {
				PolicyID             string
				PolicyVersionApplied int
				StatusReport         struct {
					PolicyCompliant      bool
					NonComplianceDetails []struct{ SettingName, NonComplianceReason string }
				}
			}
		}
		client.Get("/assets/"+assetID).Want(p.t, 200).JSON(p.t, &asset)
		m := asset.ManagedDevice
		if m.PolicyID != of.PathName() || m.PolicyVersionApplied != 2 || m.StatusReport.PolicyCompliant {
			return fmt.Errorf("policy of the device: %+v", m)
		}
		if d := m.StatusReport.NonComplianceDetails; len(d) != 1 || d[0].SettingName != "networkResetDisabled" ||
			d[0].NonComplianceReason != "MANAGEMENT_MODE" {
			return fmt.Errorf("details: %+v", d)
		}
		return nil
	})
}

func (p *policyFixture) copies(key string, of policy.Policy) {
	p.t.Helper()
	wanted := "Copy by " + p.caller.name
	made := p.ok(key, "create_policy", args{"fromPolicyId": of.PathName(), "displayName": wanted, "changes": change("SMS", "BLOCK")})
	target := made["target"].(map[string]any)
	expect.Equal(p.t, "the proposal of a copy", expect.Values{"capability": {made["capability"], "create_policy"},
		"impact": {made["impact"], "NORMAL"},
		"target": {target["id"], of.PathName()}, "name": {target["name"], wanted}, "number of fields": {len(made["fields"].([]any)), 1}})
	done := p.ok(key, "apply_policy_proposal", args{"proposalId": made["proposalId"]})["result"].(map[string]any)
	copied := done["policyId"].(string)
	if copied == of.PathName() || done["version"] != 1.0 || done["displayName"] != wanted {
		p.t.Errorf("created %v", done)
	}
	p.pushed(copied[strings.LastIndexByte(copied, '/')+1:])
	settings := p.ok(key, "get_policy_settings", args{"policyId": copied})
	values := map[string]any{}
	for _, s := range settings["settings"].([]any) {
		values[s.(map[string]any)["id"].(string)] = s.(map[string]any)["value"]
	}
	if settings["deviceCount"] != 0.0 || values["SMS"] != "BLOCK" || values["CAMERA"] != "BLOCK" || values["NETWORK_RESET"] != "BLOCK" {
		p.t.Errorf("the copy has %v", values)
	}
	revisions := p.ok(key, "list_policy_revisions", args{"policyId": copied})["revisions"].([]any)
	if r := revisions[0].(map[string]any); len(revisions) != 1 || r["origin"] != "CREATE" || r["proposalId"] != made["proposalId"] {
		p.t.Errorf("its revisions %v", revisions)
	}
}

func (p *policyFixture) rollsBack(key string, of policy.Policy) {
	p.t.Helper()
	made := p.ok(key, "rollback_policy", args{"policyId": of.PathName(), "revision": 1})
	if made["capability"] != "rollback_policy" || made["impact"] != "HIGH" || made["requiresConfirmation"] != true ||
		len(made["fields"].([]any)) != 2 {
		p.t.Errorf("proposed %v", made)
	}
	p.ok(key, "apply_policy_proposal", args{"proposalId": made["proposalId"], "confirmation": of.Name})
	list := p.ok(key, "list_policy_revisions", args{"policyId": of.PathName()})
	revisions := list["revisions"].([]any)
	if members(list) != "policyId revisions" || len(revisions) != 3 {
		p.t.Fatalf("revisions %v", list)
	}
	for i, want := range []struct {
		origin, kind string
		members      string
	}{
		{"ROLLBACK", "API_KEY", "displayName origin proposalId revision savedAt savedBy version"},
		{"PROPOSAL", "API_KEY", "displayName origin proposalId revision savedAt savedBy version"},
		{"CREATE", "SYSTEM", "displayName origin revision savedAt savedBy version"},
	} {
		r := revisions[i].(map[string]any)
		by := r["savedBy"].(map[string]any)
		expect.Equal(p.t, fmt.Sprint("revision ", 3-i),
			expect.Values{"members": {members(r), want.members}, "savedBy": {members(by), "id kind name"},
				"origin": {r["origin"], want.origin}, "kind": {by["kind"], want.kind},
				"revision": {r["revision"], float64(3 - i)}, "version": {r["version"], float64(3 - i)}})
	}
	if newest := p.ok(key, "list_policy_revisions", args{"policyId": of.PathName(), "limit": 1})["revisions"].([]any); len(newest) != 1 {
		p.t.Errorf("%d revisions with limit 1", len(newest))
	}
	p.pushed(of.ID)
}

// Whatever step of applying the process dies at: after a restart the proposal
// is SUCCEEDED, FAILED or UNCONFIRMED, which is true, and the platform agrees.
func TestApply_CrashAtEveryStep(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		var at atomic.Value
		at.Store("")
		tenant := env.NewTenant("acme")
		first := env.Start(func(_ *config.Service, o *service.Options) {
			o.Crash = func(step string) {
				if at.CompareAndSwap(step, "") {
					runtime.Goexit() // nothing after this point runs
				}
			}
		})
		p := &policyFixture{Tenant: tenant, t: t, r: first, caller: callers()[0]}
		key := p.all()
		steps := []struct {
			name, want string
			version    int
		}{
			{proposal.BeforeClaim, "PENDING", 1},
			{proposal.AfterClaim, "FAILED", 1},
			{proposal.AfterPush, "SUCCEEDED", 2},
			{proposal.AfterOutcome, "SUCCEEDED", 2},
		}
		ids, policies := make([]string, len(steps)), make([]policy.Policy, len(steps))
		for i, s := range steps {
			ids[i], policies[i] = p.propose(key)
			at.Store(s.name)
			if answer, err := first.As(p.all()).Try("GET", "/policies", nil); err != nil || answer.Status != 200 {
				t.Fatal(err)
			}
			if answer, err := first.As(key).Try("POST", "/policy-proposals/"+ids[i]+"/apply", args{}); err == nil {
				t.Errorf("%s: the request was answered %d %s", s.name, answer.Status, answer.Body)
			}
		}
		first.Stop()
		env.Advance(time.Minute)
		p.r = env.Start()
		for i, s := range steps {
			p.Eventually("the proposal interrupted "+s.name+" ends", func() error {
				if got := p.status(key, ids[i]); got != s.want {
					return fmt.Errorf("it is %v, want %s", got, s.want)
				}
				if got := p.current(policies[i].ID).Version; got != s.version {
					return errors.New("the version is " + fmt.Sprint(got))
				}
				return nil
			})
			p.pushed(policies[i].ID)
		}
	})
}

// A policy that the platform refuses stays as it was there; what is wanted,
// what is there and why are visible, and the next version is sent.
func TestPolicies_RefusedSavesCanBeSentAgain(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	tenant, replica := env.NewTenant("acme"), env.Start()
	p := &policyFixture{Tenant: tenant, t: t, r: replica, caller: callers()[0]}
	of := p.policy()
	env.Fault(emulator.Fault{Method: "policies.patch", Match: of.ID, Status: 400, Reason: "INVALID_ARGUMENT", Times: 1})
	p.save(of.ID, policy.Change{Setting: "CAMERA", Value: "BLOCK"})
	p.Eventually("the refusal is visible", func() error {
		if now := p.current(of.ID); now.Version != 2 || now.Push.Version != 1 || now.Push.Error == "" {
			return fmt.Errorf("%+v", now.Push)
		}
		return nil
	})
	if err := replica.Platform().PushPolicy(t.Context(), tenant.Company.ID, of.ID); err != nil {
		t.Errorf("sent again: %v", err)
	}
	p.pushed(of.ID)
	if now := p.current(of.ID); now.Push.Error != "" || now.Push.Version != 2 {
		t.Errorf("push %+v", now.Push)
	}
}
