package proposal_test

import (
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/proposal"
	"github.com/musterhq/muster/internal/signature"
)

// read reads the proposal as its owner.
func (r *fixture) read(p proposal.Proposal) proposal.Proposal {
	r.Helper()
	found, err := r.service.Read(r.Context(), r.key("k").Principal, p.ID)
	r.ok(err)
	return found
}

func (r *fixture) wantImpact(what string, p proposal.Proposal, want proposal.Impact, devices string) {
	r.Helper()
	v := p.View()
	if v.Impact != want || v.RequiresConfirmation != (want == proposal.High) || !strings.Contains(v.Summary, devices) {
		r.Errorf("%s: impact %s, requiresConfirmation %v, summary %q; want %s and %q", what, v.Impact, v.RequiresConfirmation,
			v.Summary, want, devices)
	}
}

func TestApply_ImpactIsThatOfTheDevicesNow(t *testing.T) {
	each(t, func(t *testing.T, r *fixture) {
		p := r.newPolicy("Warehouse", 0)
		made := r.propose(p, "FACTORY_RESET", "ALLOW")
		r.wantImpact("without devices", made, proposal.Normal, "0 devices use")
		device := r.enroll(p)
		_, err := r.service.Apply(t.Context(), r.key("k"), made.ID, "")
		r.code(fault.ConfirmationRequired, err)
		want := fault.Review{Impact: "HIGH", RequiresConfirmation: true,
			Summary: `In the policy "Warehouse", which 1 device uses, sets Factory reset from Settings to ALLOW.`}
		if got := fault.From(err).Review; got == nil || *got != want {
			t.Errorf("the error carries %+v, want %+v", got, want)
		}
		r.wantImpact("with a device", r.read(made), proposal.High, "1 device uses")
		r.observe(p, device, true)
		r.wantImpact("after the device left", r.read(made), proposal.High, "0 devices use")
		_, err = r.service.Apply(t.Context(), r.key("k"), made.ID, "Warehouse 2")
		r.code(fault.ConfirmationRequired, err)
		done, err := r.apply(made)
		r.ok(err)
		r.enroll(p)
		r.enroll(p)
		if done.Status != proposal.Succeeded {
			t.Errorf("status %s", done.Status)
		}
		r.wantImpact("after it was applied", r.read(made), proposal.High, "0 devices use")
	})
}

func TestApply_AMatchingConfirmationSucceedsAlthoughTheImpactRose(t *testing.T) {
	each(t, func(t *testing.T, r *fixture) {
		p := r.newPolicy("Warehouse", 0)
		made := r.propose(p, "FACTORY_RESET", "ALLOW")
		r.enroll(p)
		done, err := r.service.Apply(t.Context(), r.key("k"), made.ID, " warehouse ")
		r.ok(err)
		r.wantImpact("applied", done, proposal.High, "1 device uses")
	})
}

// Devices may be moved after the proposal was read and before it is claimed.
func TestApply_DecidesInTheClaim(t *testing.T) {
	each(t, func(t *testing.T, r *fixture) {
		p := r.newPolicy("Warehouse", 0)
		made := r.propose(p, "FACTORY_RESET", "ALLOW")
		r.service.Crash = func(step string) {
			if step == proposal.BeforeClaim {
				r.enroll(p)
			}
		}
		_, err := r.service.Apply(t.Context(), r.key("k"), made.ID, "")
		r.service.Crash = nil
		r.code(fault.ConfirmationRequired, err)
		if got := r.policy(p.ID).Version; got != 1 {
			t.Errorf("version %d, want 1", got)
		}
		if got := r.read(made); got.Status != proposal.Pending {
			t.Errorf("status %s, want PENDING", got.Status)
		}
	})
}

// The object has an approval while one is required, and the decision of a proposal that has ended.
func TestView_ApprovalOfWhatHasEnded(t *testing.T) {
	t.Parallel()
	r := onSQLite(t)
	p, ada := approvable(r)
	states := func(made ...proposal.Proposal) (all string) {
		for _, one := range made {
			k, o, source := r.kernel(call{"get_policy_proposal", args{"proposalId": one.ID}})
			v := k.Run(t.Context(), o, r.key("k").Principal, operation.Meta{}, source).Result.(proposal.View)
			if all += " " + string(v.Status); v.Approval != nil {
				all += "/" + string(v.Approval.State)
				if v.Approval.Reason != nil {
					all += "(" + *v.Approval.Reason + ")"
				}
			}
		}
		return all
	}
	waits, approved, declined := r.propose(p, "CAMERA", "BLOCK"), r.propose(p, "SMS", "BLOCK"), r.propose(p, "BLUETOOTH", "BLOCK")
	r.approves(ada, approved.ID)
	r.ok(r.decides(ada, declined.ID, r.sign(ada, declined.ID, signature.Decline,
		func(c *signature.Change) { c.Reason = "not before the holidays" })))
	if got, want := states(waits, approved, declined),
		" PENDING/WAITING PENDING/APPROVED FAILED/DECLINED(not before the holidays)"; got != want {
		t.Errorf("got%s, want%s", got, want)
	}
	r.clock.Advance(proposal.ApprovalLifetime)
	if got, want := states(waits, approved, declined), " EXPIRED EXPIRED/APPROVED FAILED/DECLINED(not before the holidays)"; got != want {
		t.Errorf("got%s, want%s", got, want)
	}
}

// An approval is not shown once the policy was saved since: it does not count any more.
func TestView_ApprovalOfWhatIsOutdated(t *testing.T) {
	t.Parallel()
	r := onSQLite(t)
	p, ada := approvable(r)
	made := r.propose(p, "CAMERA", "BLOCK")
	r.approves(ada, made.ID)
	if got := r.read(made).Approval.State; got != proposal.Approved {
		t.Errorf("the approval is %q", got)
	}
	_, err := r.save(p, "SMS")
	r.ok(err)
	if got := r.read(made).Approval.State; got != "" {
		t.Errorf("of an outdated proposal the approval is %q", got)
	}
	applied := r.propose(r.policy(p.ID), "CAMERA", "BLOCK")
	r.approves(ada, applied.ID)
	_, err = r.apply(applied)
	r.ok(err)
	if got := r.read(applied).Approval.State; got != proposal.Approved {
		t.Errorf("of a proposal that was applied the approval is %q", got)
	}
}

func TestImpact_TheFiftiethDeviceRaisesIt(t *testing.T) {
	t.Parallel()
	r := onSQLite(t)
	p := r.newPolicy("Warehouse", 49)
	made := r.propose(p, "CAMERA", "BLOCK")
	r.wantImpact("with 49 devices", r.read(made), proposal.Normal, "49 devices use")
	r.enroll(p)
	r.wantImpact("with 50 devices", r.read(made), proposal.High, "50 devices use")
	_, err := r.service.Apply(t.Context(), r.key("k"), made.ID, "")
	r.code(fault.ConfirmationRequired, err)
}

// What a change does to devices is said as soon as there are any.
func TestSummary_WarnsOnceThereAreDevices(t *testing.T) {
	t.Parallel()
	r := onSQLite(t)
	p := r.newPolicy("Warehouse", 0)
	made := r.propose(p, "CONFIGURE_WIFI", "BLOCK")
	if got := r.read(made).Summary; strings.Contains(got, "forget every Wi-Fi") || strings.ContainsAny(got, "\x01\x02") {
		t.Errorf("without devices: %q", got)
	}
	r.enroll(p)
	if got := r.read(made).Summary; !strings.Contains(got, "forget every Wi-Fi") || strings.ContainsAny(got, "\x01\x02") {
		t.Errorf("with a device: %q", got)
	}
}

func TestPropose_ANameThatLooksTakenIsRefused(t *testing.T) {
	each(t, func(t *testing.T, r *fixture) {
		p := r.newPolicy("Warehouse K", 0)
		for _, like := range []string{"warehouse  k", "W\u0430rehouse K", "\uff37arehouse K", "Warehouse \u212a", "Warehouse \u039a"} {
			_, err := r.service.ProposeCopy(t.Context(), r.key("k"), p.ID, like, nil)
			r.code(fault.Refused, err)
		}
		for _, bad := range []string{"Warehouse K\u200b", "Vault\u202e", "\u2800", "a\u00a0b", "\ue000", "\U000e0041",
			"a\ufe0f", "a\u0378"} {
			_, err := r.service.ProposeCopy(t.Context(), r.key("k"), p.ID, bad, nil)
			r.code(fault.InvalidArguments, err)
		}
		one, err := r.service.ProposeCopy(t.Context(), r.key("k"), p.ID, "Vault", nil)
		r.ok(err)
		two, err := r.service.ProposeCopy(t.Context(), r.key("l"), p.ID, "V\u0430ult", nil)
		r.ok(err)
		_, err = r.apply(one)
		r.ok(err)
		_, err = r.service.Apply(t.Context(), r.key("l"), two.ID, "")
		r.code(fault.Refused, err)
		made, err := r.service.ProposeCopy(t.Context(), r.key("k"), p.ID, " Cafe\u0301 ", nil)
		r.ok(err)
		done, err := r.apply(made)
		r.ok(err)
		if got := r.policy(done.Next.PolicyID).Name; got != "Caf\u00e9" {
			t.Errorf("the name is kept as %+q", got)
		}
	})
}
