package proposal_test

import (
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/database/triggertest"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/proposal"
)

func TestPropose_AndApply(t *testing.T) {
	each(t, func(t *testing.T, r *fixture) {
		p := r.newPolicy("Warehouse", 2, set("SMS", "BLOCK")...)
		made, err := r.service.ProposeChanges(t.Context(), r.key("k"), p.PathName(), []policy.Change{
			{Setting: "SMS", Value: "block"}, {Setting: "WIFI_STATE", Value: "enabled"}, {Setting: "CAMERA", Value: "Block"}})
		r.ok(err)
		v := made.View()
		if !strings.HasPrefix(v.ProposalID, "prp_") || v.Title == "" {
			t.Errorf("proposed %q, %q", v.ProposalID, v.Title)
		}
		proposed := v
		proposed.Capability, proposed.Status, proposed.Impact = "update_policy_settings", "PENDING", "NORMAL"
		proposed.RequiresConfirmation, proposed.Result = false, nil
		proposed.Target = proposal.Target{Kind: "POLICY", ID: p.PathName(), Name: "Warehouse"}
		proposed.Fields = []proposal.Field{{Label: "Wi-Fi on or off", Value: "ENABLED", PreviousValue: "NOT_SET"},
			{Label: "Camera", Value: "BLOCK", PreviousValue: "NOT_SET"}}
		same(t, "proposed", v, proposed)
		if want := `In the policy "Warehouse", which 2 devices use, sets Wi-Fi on or off to ENABLED and Camera to BLOCK.`; v.Summary !=
			want {
			t.Errorf("summary %q, want %q", v.Summary, want)
		}
		if !v.ExpiresAt.Equal(r.clock.Now().Add(10 * time.Minute)) {
			t.Errorf("expires %v", v.ExpiresAt)
		}
		if now := r.policy(p.ID); now.Version != 1 || string(now.Document) != string(p.Document) || len(r.vendor.pushes) != 1 {
			t.Error("proposing changed something")
		}

		done, err := r.apply(made)
		r.ok(err)
		now := r.policy(p.ID)
		if done.Status != proposal.Succeeded || done.Version != 2 || now.Version != 2 || now.Push.Version != 2 {
			t.Errorf("applied %+v, policy %+v", done, now)
		}
		if value(t, now.Document, "CAMERA") != "BLOCK" || value(t, now.Document, "SMS") != "BLOCK" ||
			r.vendor.holds(p.ID) != string(now.Document) {
			t.Errorf("document %s", now.Document)
		}
		kept := now
		kept.Name, kept.Description, kept.Labels, kept.Group = p.Name, p.Description, p.Labels, p.Group
		same(t, "beside the settings", now, kept)
		newest := r.revisions(p.ID)[0]
		want := newest
		want.Revision, want.Origin, want.ProposalID = 2, policy.FromProposal, made.ID
		want.SavedBy, want.SavedAt = policy.Author{Kind: "API_KEY", ID: "k", Name: "key k"}, r.clock.Now()
		same(t, "the revision", newest, want)
		_, err = r.apply(made)
		r.code(fault.NotPending, err)
	})
}

func TestPropose_Refused(t *testing.T) {
	t.Parallel()
	r := onSQLite(t)
	p := r.newPolicy("Warehouse", 1, set("CAMERA", "BLOCK")...)
	other := r.newPolicy("Shop", 0)
	agent, err := r.policies.Create(t.Context(), policy.New{CompanyID: r.company.ID, CompanySlug: "acme", Name: "Kiosk",
		Type: policy.Agent}, operator())
	r.ok(err)
	gone := r.newPolicy("Gone", 0)
	r.ok(r.deletePolicy(gone.ID))
	change := func(ref, setting, to string) error {
		_, err := r.service.ProposeChanges(t.Context(), r.key("k"), ref, set(setting, to))
		return err
	}
	copied := func(ref, display string) error {
		_, err := r.service.ProposeCopy(t.Context(), r.key("k"), ref, display, nil)
		return err
	}
	back := func(ref string, revision int) error {
		_, err := r.service.ProposeRollback(t.Context(), r.key("k"), ref, revision)
		return err
	}
	for name, test := range map[string]struct {
		err  error
		want fault.Code
	}{
		"nothing changes": {change(p.ID, "CAMERA", "block"), fault.Refused},
		"no changes": {func() error { _, err := r.service.ProposeChanges(t.Context(), r.key("k"), p.ID, nil); return err }(),
			fault.Refused},
		"unknown setting":          {change(p.ID, "X", "block"), fault.InvalidArguments},
		"unknown policy":           {change("nowhere", "CAMERA", "ALLOW"), fault.NotFound},
		"asset's path name":        {change("enterprises/acme/assets/"+p.ID, "CAMERA", "ALLOW"), fault.NotFound},
		"another company's":        {change("enterprises/other/policies/"+p.ID, "CAMERA", "ALLOW"), fault.NotFound},
		"deleted policy":           {change(gone.ID, "CAMERA", "ALLOW"), fault.NotFound},
		"agent policy":             {change(agent.ID, "CAMERA", "ALLOW"), fault.Unsupported},
		"copy of nothing":          {copied("nowhere", "New"), fault.NotFound},
		"copy of deleted":          {copied(gone.ID, "New"), fault.NotFound},
		"copy of agent":            {copied(agent.ID, "New"), fault.Unsupported},
		"name taken":               {copied(p.ID, " sHOP "), fault.Refused},
		"own name":                 {copied(p.ID, "Warehouse"), fault.Refused},
		"deleted policy's name":    {copied(p.ID, "gone"), ""},
		"long name":                {copied(p.ID, strings.Repeat("x", 51)), fault.InvalidArguments},
		"rollback to now":          {back(p.ID, 1), fault.Refused},
		"rollback to nowhere":      {back(p.ID, 9), fault.NotFound},
		"rollback of agent":        {back(agent.ID, 1), fault.Unsupported},
		"rollback of deleted":      {back(gone.ID, 1), fault.NotFound},
		"copy equal to its source": {copied(other.ID, "Twin"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fault.CodeOf(test.err); got != test.want {
				t.Errorf("%s: got %q (%v), want %q", name, got, test.err, test.want)
			}
		})
	}
	if said := fault.From(back(p.ID, 9)).Detail; !strings.Contains(said, "no revision 9") {
		t.Errorf("a rollback to nowhere: %q", said)
	}
}

func TestPropose_UnconnectedCompany(t *testing.T) {
	each(t, func(t *testing.T, r *fixture) {
		r.company = r.newCompany("offline", "")
		p := r.newPolicy("Warehouse", 0)
		_, err := r.service.ProposeCopy(t.Context(), r.key("k"), p.ID, "New", nil)
		r.code(fault.Refused, err)
		made := r.propose(p, "CAMERA", "BLOCK")
		_, err = r.apply(made)
		r.ok(err)
		if now := r.policy(p.ID); now.Version != 2 || now.Push.Version != 0 || len(r.vendor.pushes) != 0 {
			t.Errorf("saved %+v, %d pushes", now, len(r.vendor.pushes))
		}
	})
}

// A copy that was proposed before the company gave up its enterprise is not made.
func TestApply_CopyAfterADisconnection(t *testing.T) {
	t.Parallel()
	r := onSQLite(t)
	p := r.newPolicy("Warehouse", 0)
	made, err := r.service.ProposeCopy(t.Context(), r.key("k"), p.ID, "Berlin", nil)
	r.ok(err)
	r.ok(r.db.BeginDisconnection(t.Context(), r.company.ID, r.company.Enterprise, true, r.clock.Now()))
	r.ok(r.db.FinishDisconnection(t.Context(), r.company.ID, r.company.Enterprise, r.clock.Now()))
	_, err = r.service.ForeseeApply(t.Context(), r.key("k").Principal, made.ID, "")
	r.code(fault.Refused, err)
	_, err = r.apply(made)
	r.code(fault.Refused, err)
	if got := r.proposal(made.ID).Status; got != proposal.Failed {
		t.Errorf("the proposal is %s", got)
	}
	_, err = r.db.Policy(t.Context(), r.company.ID, made.Next.PolicyID)
	r.code(fault.NotFound, err)
}

// A crash in a company that never had an enterprise left nothing sent, and nothing saved.
// After a disconnection it is not known what the platform had.
func TestReconciler_UnconnectedCompany(t *testing.T) {
	each(t, func(t *testing.T, r *fixture) {
		r.company = r.newCompany("offline", "")
		p := r.newPolicy("Warehouse", 0)
		for _, step := range []string{proposal.AfterClaim, proposal.AfterPush} {
			made := r.propose(p, "CAMERA", "BLOCK")
			r.dies(made, step)
			r.clock.Advance(time.Minute)
			r.ok(r.reconciler.Settle(t.Context()))
			now := r.proposal(made.ID)
			if now.Status != proposal.Failed || now.Failure != fault.Internal || now.Outcome == "" || r.policy(p.ID).Version != 1 {
				t.Errorf("%s: %s %s %q, version %d", step, now.Status, now.Failure, now.Outcome, r.policy(p.ID).Version)
			}
		}
		r.settle()

		r.company = r.newCompany("leaving", "enterprises/LC2")
		p = r.newPolicy("Shop", 0)
		made := r.propose(p, "CAMERA", "BLOCK")
		r.dies(made, proposal.AfterPush)
		r.ok(r.db.BeginDisconnection(t.Context(), r.company.ID, r.company.Enterprise, true, r.clock.Now()))
		r.ok(r.db.FinishDisconnection(t.Context(), r.company.ID, r.company.Enterprise, r.clock.Now()))
		r.clock.Advance(time.Minute)
		r.ok(r.reconciler.Settle(t.Context()))
		if now := r.proposal(made.ID); now.Status != proposal.Unconfirmed || r.policy(p.ID).Version != 1 {
			t.Errorf("after a disconnection: %s, version %d", now.Status, r.policy(p.ID).Version)
		}
		r.settle()
	})
}

func TestCopy(t *testing.T) {
	each(t, func(t *testing.T, r *fixture) {
		p := r.newPolicy("Warehouse", 60, set("FACTORY_RESET", "ALLOW")...)
		made, err := r.service.ProposeCopy(t.Context(), r.key("k"), p.ID, "  Berlin ", set("FACTORY_RESET", "BLOCK"))
		r.ok(err)
		v := made.View()
		proposed := v
		proposed.Capability, proposed.Impact, proposed.Target.ID, proposed.Target.Name = "create_policy", "NORMAL", p.PathName(), "Berlin"
		if same(t, "proposed", v, proposed); len(v.Fields) != 1 {
			t.Errorf("fields %+v", v.Fields)
		}
		if want := `Creates the policy "Berlin" as a copy of "Warehouse" and in the copy sets Factory reset from Settings to BLOCK; ` +
			`0 devices use it until devices are moved to it.`; v.Summary != want {
			t.Errorf("summary %q", v.Summary)
		}
		done, err := r.service.Apply(t.Context(), r.key("k"), made.ID, "")
		r.ok(err)
		created := r.policy(done.Next.PolicyID)
		want := created
		want.Name, want.Version, want.Type, want.DeviceCount, want.Push.Version = "Berlin", 1, policy.Platform, 0, 1
		if same(t, "the copy", created, want); created.ID == p.ID {
			t.Error("the copy is the policy itself")
		}
		if sent := r.vendor.pushes[len(r.vendor.pushes)-1]; sent.ID != created.ID || sent.Version != 1 {
			t.Errorf("sent %+v", sent)
		}
		d, err := policy.CompareDocuments(policy.Platform, p.Document, created.Document)
		r.ok(err)
		if len(d.Moves) != 1 || d.Moves[0].To != "BLOCK" || len(d.Others) != 0 {
			t.Errorf("copied as %+v", d)
		}
		if all := r.revisions(created.ID); len(all) != 1 || all[0].Origin != policy.FromCreate || all[0].ProposalID != made.ID {
			t.Errorf("revisions %+v", all)
		}
		if now := r.policy(p.ID); now.Version != 1 {
			t.Error("the source was saved")
		}
	})
}

// A name taken after proposing refuses the apply, and one that is being given
// cannot be taken.
func TestCopy_Names(t *testing.T) {
	each(t, func(t *testing.T, r *fixture) {
		p := r.newPolicy("Warehouse", 0)
		first, err := r.service.ProposeCopy(t.Context(), r.key("k"), p.ID, "Berlin", nil)
		r.ok(err)
		if want := `Creates the policy "Berlin" as a copy of "Warehouse"; 0 devices use it until devices are moved to it.`; first.Summary !=
			want {
			t.Errorf("summary %q", first.Summary)
		}
		second, err := r.service.ProposeCopy(t.Context(), r.key("k"), p.ID, "BERLIN", nil)
		r.ok(err)
		create := func(display string) error {
			_, err := r.policies.Create(t.Context(), policy.New{CompanyID: r.company.ID, Name: display, Type: policy.Agent}, operator())
			return err
		}
		rename := func(display string) error {
			_, err := r.policies.Save(t.Context(), r.company.ID, p.ID, 1, policy.Edit{Name: &display}, operator())
			return err
		}
		r.vendor.before = func(policy.Policy) { // while the first is being applied
			r.code(fault.Refused, create(" berlin"))
			r.code(fault.Refused, rename("berlin"))
			_, err := r.apply(second)
			r.code(fault.Refused, err)
		}
		_, err = r.apply(first)
		r.ok(err)
		r.vendor.before = nil
		r.code(fault.Refused, create("berlin"))
		_, err = r.service.ProposeCopy(t.Context(), r.key("k"), p.ID, "berlin", nil)
		r.code(fault.Refused, err)
		if got := r.proposal(second.ID); got.Status != proposal.Failed {
			t.Errorf("the second is %s", got.Status)
		}
	})
}

func TestRollback(t *testing.T) {
	each(t, func(t *testing.T, r *fixture) {
		p := r.newPolicy("Warehouse", 1, set("CAMERA", "BLOCK")...)
		newName, description := "Store", "new words"
		_, err := r.policies.Save(t.Context(), r.company.ID, p.ID, 1, policy.Edit{Name: &newName, Description: &description,
			Document: []byte(strings.Replace(string(p.Document), "{", `{"applications":[{"packageName":"com.example.app"}],`, 1)),
			Changes:  set("CAMERA", "ALLOW")}, operator())
		r.ok(err)
		made, err := r.service.ProposeRollback(t.Context(), r.key("k"), p.ID, 1)
		r.ok(err)
		v := made.View()
		proposed := v
		proposed.Capability, proposed.Impact, proposed.RequiresConfirmation, proposed.Target.Name = "rollback_policy", "HIGH", true, "Store"
		proposed.Fields = []proposal.Field{{Label: "Name", Value: "Warehouse", PreviousValue: "Store"},
			{Label: "Camera", Value: "BLOCK", PreviousValue: "ALLOW"}}
		same(t, "proposed", v, proposed)
		if want :=
			`Returns the policy "Store", which 1 device uses, to revision 1: sets Camera to BLOCK; changes its name to "Warehouse"; also changes what no setting names: apps.`; v.Summary != want {
			t.Errorf("summary %q", v.Summary)
		}
		for _, typed := range []string{"", " ", "Warehouse", "Stor", "St ore"} {
			_, err := r.service.Apply(t.Context(), r.key("k"), made.ID, typed)
			r.code(fault.ConfirmationRequired, err)
		}
		if r.proposal(made.ID).Status != proposal.Pending {
			t.Fatal("a wrong confirmation ended the proposal")
		}
		_, err = r.service.Apply(t.Context(), r.key("k"), made.ID, "  sTORE ")
		r.ok(err)
		now := r.policy(p.ID)
		want := now
		want.Version, want.Name, want.Description, want.Labels, want.Document = 3, "Warehouse", description, p.Labels, p.Document
		same(t, "the policy after its return", now, want)
		if newest := r.revisions(p.ID)[0]; newest.Origin != policy.FromRollback || newest.Description != description {
			t.Errorf("revision %+v", newest)
		}
	})
}

// A rollback may need a name that another policy has taken since.
func TestRollback_ToATakenName(t *testing.T) {
	t.Parallel()
	r := onSQLite(t)
	p := r.newPolicy("Warehouse", 0)
	newName := "Store"
	_, err := r.policies.Save(t.Context(), r.company.ID, p.ID, 1, policy.Edit{Name: &newName}, operator())
	r.ok(err)
	made, err := r.service.ProposeRollback(t.Context(), r.key("k"), p.ID, 1)
	r.ok(err)
	if want := `Returns the policy "Store", which 0 devices use, to revision 1: changes its name to "Warehouse".`; made.Summary != want {
		t.Errorf("summary %q, want %q", made.Summary, want)
	}
	r.newPolicy("WAREHOUSE", 0)
	_, err = r.apply(made)
	r.code(fault.Refused, err)
	_, err = r.service.ProposeRollback(t.Context(), r.key("k"), p.ID, 1)
	r.code(fault.Refused, err)
}

// A rollback gives no policy a name that is refused since.
func TestRollback_ToARefusedName(t *testing.T) {
	t.Parallel()
	r := onSQLite(t)
	p := r.newPolicy("Warehouse", 0)
	_, err := r.save(p, "CAMERA")
	r.ok(err)
	r.ok(triggertest.Add(t.Context(), r.url, "UPDATE policy_revisions SET name = 'Ware\u200bhouse' WHERE revision = 1"))
	_, err = r.service.ProposeRollback(t.Context(), r.key("k"), p.ID, 1)
	r.code(fault.Refused, err)
	if said := fault.From(err).Detail; !strings.Contains(said, "which is refused now") {
		t.Errorf("refused with %q", said)
	}
}

// The document that results must be one that the vendor knows.
func TestPropose_UnknownDocuments(t *testing.T) {
	t.Parallel()
	r := onSQLite(t)
	p := r.newPolicy("Warehouse", 0)
	p.Document = []byte(`{"locationMode":"LOCATION_OF_NEXT_YEAR"}`)
	_, err := r.db.SavePolicy(t.Context(), p, 1, policy.Revision{SavedAt: r.clock.Now()})
	r.ok(err)
	_, err = r.service.ProposeChanges(t.Context(), r.key("k"), p.ID, set("CAMERA", "BLOCK"))
	r.code(fault.Refused, err)
	_, err = r.service.ProposeChanges(t.Context(), r.key("k"), p.ID, set("LOCATION_MODE", "ENFORCED"))
	r.ok(err)
}

func TestSummary_ImpactRule(t *testing.T) {
	t.Parallel()
	high := map[string]bool{"UNTRUSTED_APPS_POLICY": true, "VENDOR_PROTECT": true, "FACTORY_RESET": true,
		"DEVELOPER_SETTINGS": true, "USB_DATA_ACCESS": true, "ENCRYPTION_POLICY": true}
	for _, s := range policy.Catalog() {
		if policy.HighImpact(s.Label) != high[s.ID] {
			t.Errorf("%s is taken for one of other impact", s.Label)
		}
		for _, devices := range []int{0, 1, 49, 50, 51} {
			want := proposal.Normal
			if devices >= 50 || devices > 0 && high[s.ID] {
				want = proposal.High
			}
			if got := proposal.ImpactOf(proposal.UpdateSettings, devices, high[s.ID]); got != want {
				t.Errorf("%s with %d devices: %s", s.ID, devices, got)
			}
			if got := proposal.ImpactOf(proposal.CreatePolicy, devices, high[s.ID]); got != proposal.Normal {
				t.Errorf("a copy with %s and %d devices: %s", s.ID, devices, got)
			}
		}
	}
	for devices, want := range map[int]proposal.Impact{0: proposal.Normal, 1: proposal.High, 50: proposal.High} {
		if got := proposal.ImpactOf(proposal.RollBack, devices, false); got != want {
			t.Errorf("a rollback with %d devices: %s", devices, got)
		}
	}
}

// Who was limited to some policies since cannot apply a copy, which they would not see, and is told so beforehand. A change of
// a policy that they see they can.
func TestApply_CopyOfOneWhoIsLimitedSince(t *testing.T) {
	t.Parallel()
	r := onSQLite(t)
	p, call := r.newPolicy("Warehouse", 1), r.key("k")
	made, err := r.service.ProposeCopy(t.Context(), call, p.ID, "Berlin", nil)
	r.ok(err)
	call.Principal.Policies = []string{p.ID}
	_, err = r.service.ForeseeApply(t.Context(), call.Principal, made.ID, "")
	r.code(fault.Forbidden, err)
	_, err = r.service.Apply(t.Context(), call, made.ID, "")
	r.code(fault.Forbidden, err)
	call.Principal.Policies = nil
	_, err = r.service.Apply(t.Context(), call, made.ID, "")
	r.ok(err)
	call.Principal.Policies = []string{p.ID}
	change, err := r.service.ProposeChanges(t.Context(), call, p.ID, set("CAMERA", "BLOCK"))
	r.ok(err)
	_, err = r.service.ForeseeApply(t.Context(), call.Principal, change.ID, "")
	r.ok(err)
	_, err = r.service.Apply(t.Context(), call, change.ID, "")
	r.ok(err)
}

// Only the owner reads and applies: the same key, or the same connection and
// the same person behind it. Everyone else learns nothing (contract 5.6).
func TestApply_Ownership(t *testing.T) {
	t.Parallel()
	r := onSQLite(t)
	p := r.newPolicy("Warehouse", 1)
	connection := r.key("c")
	ada := r.person("Ada", account.Manager).Principal.ID
	connection.Principal.Kind, connection.Principal.UserID = access.Connection, ada
	byKey := r.propose(p, "CAMERA", "BLOCK")
	byConnection, err := r.service.ProposeChanges(t.Context(), connection, p.ID, set("CAMERA", "BLOCK"))
	r.ok(err)

	otherUser, sameID, user, limited, stranger := connection, r.key("c"), r.key("k"), r.key("k"), r.key("k")
	otherUser.Principal.UserID = "bob"
	user.Principal.Kind, user.Principal.UserID = access.User, ada
	limited.Principal.Policies = []string{"another"}
	stranger.Principal.CompanyID, stranger.Principal.CompanySlug = r.newCompany("other", "enterprises/LC2").ID, "other"
	for name, test := range map[string]struct {
		by   access.Principal
		of   proposal.Proposal
		want fault.Code
	}{
		"the key":                       {r.key("k").Principal, byKey, ""},
		"the connection":                {connection.Principal, byConnection, ""},
		"another key":                   {r.key("l").Principal, byKey, fault.NotFound},
		"another user's connection":     {otherUser.Principal, byConnection, fault.NotFound},
		"a key with the same id":        {sameID.Principal, byConnection, fault.NotFound},
		"a user with the same id":       {user.Principal, byKey, fault.NotFound},
		"the key, limited since":        {limited.Principal, byKey, fault.NotFound},
		"the key's id, another company": {stranger.Principal, byKey, fault.NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := r.service.Read(t.Context(), test.by, test.of.ID)
			if got := fault.CodeOf(err); got != test.want {
				t.Errorf("%s reads: %v", name, err)
			}
			if test.want == "" {
				return
			}
			call := r.key("k")
			call.Principal = test.by
			if _, err := r.service.Apply(t.Context(), call, test.of.ID, ""); fault.CodeOf(err) != test.want {
				t.Errorf("%s applies: %v", name, err)
			}
		})
	}
	for _, id := range []string{"", "prp_", "prp_nowhere", byKey.ID[4:], byKey.ID + "x", "prp_../" + byKey.ID} {
		_, err := r.service.Read(t.Context(), r.key("k").Principal, id)
		r.code(fault.NotFound, err)
	}
	looked, err := r.service.Look(t.Context(), user.Principal, byKey.ID)
	r.ok(err)
	again, err := r.again(user, looked.ID)
	r.ok(err)
	if again.ID == byKey.ID || again.Owner.Kind != access.User || len(again.Fields) != 1 || again.Fields[0] != byKey.Fields[0] {
		t.Errorf("proposed again as %+v", again)
	}
	_, err = r.service.Apply(t.Context(), user, again.ID, "")
	r.ok(err)
}

func TestExpiry(t *testing.T) {
	each(t, func(t *testing.T, r *fixture) {
		p := r.newPolicy("Warehouse", 0)
		last, late := r.propose(p, "CAMERA", "BLOCK"), r.propose(p, "CAMERA", "BLOCK")
		r.clock.Advance(10*time.Minute - time.Millisecond)
		if got := r.proposal(last.ID).Status; got != proposal.Pending {
			t.Fatalf("%s a moment before its time is over", got)
		}
		_, err := r.apply(last)
		r.ok(err)
		r.clock.Advance(time.Millisecond)
		if got := r.proposal(late.ID).Status; got != proposal.Expired {
			t.Fatalf("%s after its time", got)
		}
		_, err = r.apply(late)
		r.code(fault.NotPending, err)
		if failed, err := r.db.FailProposal(t.Context(), late.ID, fault.Refused, "x"); failed || err != nil {
			t.Errorf("an expired proposal failed: %v", err)
		}
	})
}
