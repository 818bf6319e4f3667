package proposal_test

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/apikey"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/approval/approvaltest"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/database/triggertest"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/proposal"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/signature"
)

// approver is a user with a passkey.
type approver struct {
	account.User
	*approvaltest.Passkey
}

func (p *approver) person() signature.Person { return signature.Person{ID: p.User.ID, Name: p.Name} }

// approver makes a user of the fixture's company, older than approverAge.
func (r *fixture) approver(role account.Role) *approver {
	r.Helper()
	rights, _ := role.Rights()
	p := &approver{User: account.User{ID: resource.NewID(), CompanyID: r.company.ID, Name: "Ada", Role: role, Rights: rights,
		Email: resource.NewID() + "@acme.test", CreatedAt: r.clock.Now().Add(-100 * time.Hour)}}
	r.ok(r.db.CreateUser(r.Context(), p.User))
	r.passkey(p, p.CreatedAt)
	return p
}

func (r *fixture) passkey(p *approver, at time.Time) {
	r.Helper()
	p.Passkey = approvaltest.NewPasskey()
	r.ok(r.db.AddPasskey(r.Context(), account.Passkey{ID: p.Passkey.ID, UserID: p.User.ID, Name: "k",
		Credential: p.Credential(), CreatedAt: at}))
}

// approving makes the company ask for approvals.
func (r *fixture) approving(rule access.ApprovalRule) {
	r.Helper()
	r.controls(func(c *access.Controls) { c.ApplyApproval, c.ApproverAge = rule, 24*time.Hour })
	r.service.Verifier = approvaltest.Verifier()
}

// controls makes the company's stricter.
func (r *fixture) controls(edit func(*access.Controls)) {
	r.Helper()
	_, err := r.db.ChangeControls(r.Context(), r.company.ID, account.User{ID: "op", Name: "op"}, func(to *company.Company) {
		edit(&to.Settings.Controls)
	})
	r.ok(err)
	c, err := r.db.CompanyByID(r.Context(), r.company.ID)
	r.ok(err)
	r.company.Settings = c.Settings
}

// sign is the signature of a proposal as it now is, or of what edit makes of it.
func (r *fixture) sign(p *approver, id string, want signature.Decision, edit func(*signature.Change)) signature.Signed {
	r.Helper()
	l, err := r.db.ListedProposal(r.Context(), r.company.ID, id)
	r.ok(err)
	head := signature.Head{Approver: p.person(), Decision: want, At: signature.Time(r.clock.Now())}
	if want == signature.Approve {
		head.Confirmation = l.Subject().Name
	}
	text, err := l.Subject().Canonical(head, nil)
	r.ok(err)
	var c signature.Change
	r.ok(json.Unmarshal(text, &c))
	if edit != nil {
		edit(&c)
	}
	document, err := signature.Canonical(c)
	r.ok(err)
	return p.Sign(document)
}

// decides is what the page does with a signature.
func (r *fixture) decides(p *approver, id string, s signature.Signed) error {
	r.Helper()
	return r.db.Decide(r.Context(), approval.Decision{CompanyID: r.company.ID, Kind: approval.ChangeKind, ID: id, UserID: p.User.ID,
		PasskeyID: p.Passkey.ID,
		Signed:    s, Verifier: approvaltest.Verifier()})
}

func (r *fixture) approves(p *approver, id string) {
	r.Helper()
	r.ok(r.decides(p, id, r.sign(p, id, signature.Approve, nil)))
}

// waits wants a proposal that is PENDING and waits for its approval.
func (r *fixture) waits(id string) {
	r.Helper()
	if got := r.proposal(id); got.Status != proposal.Pending || got.Approval.State != "" || !got.AwaitsApproval() {
		r.Errorf("it is %s, %+v", got.Status, got.Approval)
	}
}

// approvable is a fixture that asks for every approval, with a policy of one device and
// one who may approve.
func approvable(r *fixture) (policy.Policy, *approver) {
	r.Helper()
	r.approving(access.ApproveAll)
	return r.newPolicy("Warehouse", 1), r.approver(account.Manager)
}

// TestDecide_OnlyWhatIsShown: a signature of anything else than the proposal approves
// nothing.
func TestDecide_OnlyWhatIsShown(t *testing.T) {
	each(t, func(t *testing.T, r *fixture) {
		p, ada := approvable(r)
		made, other := r.propose(p, "FACTORY_RESET", "BLOCK"), r.propose(p, "FACTORY_RESET", "BLOCK")
		two, err := r.service.ProposeChanges(t.Context(), r.key("k"), p.ID,
			[]policy.Change{{Setting: "CAMERA", Value: "BLOCK"}, {Setting: "SMS", Value: "BLOCK"}})
		r.ok(err)
		for name, edit := range map[string]func(*signature.Change){
			"version":        func(c *signature.Change) { c.BaseVersion++ },
			"policy":         func(c *signature.Change) { c.Policy.ID = resource.NewID() },
			"policy's name":  func(c *signature.Change) { c.Policy.Name = "Other" },
			"result":         func(c *signature.Change) { c.Result = resource.NewID() },
			"company":        func(c *signature.Change) { c.Company = "other" },
			"caller":         func(c *signature.Change) { c.Caller.ID = "k2" },
			"kind of caller": func(c *signature.Change) { c.Caller.Kind = string(access.Connection) },
			"prefix":         func(c *signature.Change) { c.Caller.Prefix = "mk_other" },
			"order":          func(c *signature.Change) { slices.Reverse(c.Changes) },
			"value":          func(c *signature.Change) { c.Changes[0].To = "ALLOW" },
			"old value":      func(c *signature.Change) { c.Changes[0].From = "BLOCK" },
			"a change less":  func(c *signature.Change) { c.Changes = c.Changes[1:] },
			"document":       func(c *signature.Change) { c.DocumentSHA256 = hex.EncodeToString(make([]byte, 32)) },
			"impact":         func(c *signature.Change) { c.Impact = "LOW" },
			"warnings":       func(c *signature.Change) { c.Warnings = []string{"none"} },
			"proposal":       func(c *signature.Change) { c.Subject = other.ID },
			"expiry":         func(c *signature.Change) { c.Expires = signature.Time(r.clock.Now().Add(time.Hour)) },
			"domain":         func(c *signature.Change) { c.Domain = signature.DestructiveCommand },
			"kind":           func(c *signature.Change) { c.Kind = "rollback" },
			"decision":       func(c *signature.Change) { c.Decision = "MAYBE" },
			"typed name":     func(c *signature.Change) { c.Confirmation = "Other" },
			"approver":       func(c *signature.Change) { c.Approver.ID = resource.NewID() },
		} {
			if err := r.decides(ada, two.ID, r.sign(ada, two.ID, signature.Approve, edit)); fault.CodeOf(err) != fault.Refused {
				t.Errorf("another %s: %v", name, err)
			}
		}
		r.code(fault.Refused, r.decides(ada, made.ID, r.sign(ada, other.ID, signature.Approve, nil)))
		bob := r.approver(account.Manager)
		forged := r.sign(bob, made.ID, signature.Approve, func(c *signature.Change) { c.Approver = ada.person() })
		r.code(fault.Refused, r.decides(ada, made.ID, forged))
		unsigned := r.sign(ada, made.ID, signature.Approve, nil)
		unsigned.Signature = r.sign(ada, other.ID, signature.Approve, nil).Signature
		r.code(fault.Refused, r.decides(ada, made.ID, unsigned))
		for _, id := range []string{made.ID, other.ID, two.ID} {
			r.waits(id)
			_, err := r.service.Apply(t.Context(), r.key("k"), id, "Warehouse")
			r.code(fault.ConfirmationRequired, err)
		}
		r.approves(ada, made.ID)
		r.code(fault.NotPending, r.decides(ada, made.ID, r.sign(ada, made.ID, signature.Approve, nil)))
		_, err = r.service.Apply(t.Context(), r.key("k2"), made.ID, "Warehouse")
		r.code(fault.NotFound, err)
		_, err = r.service.Apply(t.Context(), r.key("k"), made.ID, "") // the name is typed by the caller as well
		r.code(fault.ConfirmationRequired, err)
		_, err = r.apply(made)
		r.ok(err)
		_, err = r.apply(made)
		r.code(fault.NotPending, err)
		_, err = r.apply(other)
		r.code(fault.StaleProposal, err)
	})
}

// TestStands_OnlyWhatWasApproved: whatever differs from what a person approved, and the
// service accepted, is not approved.
func TestStands_OnlyWhatWasApproved(t *testing.T) {
	t.Parallel()
	r := onSQLite(t)
	p, ada := approvable(r)
	bob := r.approver(account.Manager)
	made, err := r.service.ProposeChanges(t.Context(), r.key("k"), p.ID,
		[]policy.Change{{Setting: "CAMERA", Value: "BLOCK"}, {Setting: "CONFIGURE_WIFI", Value: "BLOCK"}})
	r.ok(err)
	r.approves(ada, made.ID)
	kept, err := r.db.SignedDocument(t.Context(), r.company.ID, made.ID)
	r.ok(err)
	stands := func(alter func(*proposal.Listed, *approval.Standing)) error {
		l, err := r.db.ListedProposal(t.Context(), r.company.ID, made.ID)
		r.ok(err)
		s := approval.Standing{Signed: kept, Controls: r.company.Settings.Controls, Credential: ada.Credential(), Now: r.clock.Now()}
		s.Approver, err = r.db.Decider(t.Context(), r.company.ID, ada.User.ID)
		r.ok(err)
		alter(&l, &s)
		s.Subject = l.Subject()
		return approvaltest.Verifier().Stands(s)
	}
	r.ok(stands(func(*proposal.Listed, *approval.Standing) {}))
	r.ok(stands(func(l *proposal.Listed, _ *approval.Standing) { l.Devices += 5 }))
	for name, alter := range map[string]func(*proposal.Listed, *approval.Standing){
		"version":    func(l *proposal.Listed, _ *approval.Standing) { l.BaseVersion++ },
		"policy":     func(l *proposal.Listed, _ *approval.Standing) { l.PolicyID = resource.NewID() },
		"name":       func(l *proposal.Listed, _ *approval.Standing) { l.TargetName = "Other" },
		"result":     func(l *proposal.Listed, _ *approval.Standing) { l.Next.PolicyID = resource.NewID() },
		"company":    func(l *proposal.Listed, _ *approval.Standing) { l.CompanySlug = "other" },
		"caller":     func(l *proposal.Listed, _ *approval.Standing) { l.Owner.ID = "k2" },
		"order":      func(l *proposal.Listed, _ *approval.Standing) { slices.Reverse(l.Fields) },
		"value":      func(l *proposal.Listed, _ *approval.Standing) { l.Fields[0].Value = "ALLOW" },
		"old value":  func(l *proposal.Listed, _ *approval.Standing) { l.Fields[0].PreviousValue = "BLOCK" },
		"document":   func(l *proposal.Listed, _ *approval.Standing) { l.Next.Document = []byte(`{"a":1}`) },
		"impact":     func(l *proposal.Listed, _ *approval.Standing) { l.Impact = proposal.High },
		"warnings":   func(l *proposal.Listed, _ *approval.Standing) { l.Warnings = nil },
		"expiry":     func(l *proposal.Listed, _ *approval.Standing) { l.ExpiresAt = l.ExpiresAt.Add(time.Second) },
		"capability": func(l *proposal.Listed, _ *approval.Standing) { l.Capability = proposal.RollBack },
		"proposal":   func(l *proposal.Listed, _ *approval.Standing) { l.ID = resource.NewProposalID() },
		"person":     func(_ *proposal.Listed, s *approval.Standing) { s.Approver.UserID = bob.User.ID },
		"no person":  func(_ *proposal.Listed, s *approval.Standing) { s.Approver = access.Approver{} },
		"passkey":    func(_ *proposal.Listed, s *approval.Standing) { s.Credential = bob.Credential() },
		"decision": func(_ *proposal.Listed, s *approval.Standing) {
			s.Signed, err = r.sign(ada, made.ID, signature.Decline, nil).Accept(approvaltest.Witness(0), nil, r.clock.Now())
			r.ok(err)
		},
		"signature": func(_ *proposal.Listed, s *approval.Standing) {
			s.Signed.Signature = slices.Clone(s.Signed.Signature)
			s.Signed.Signature[10] ^= 1
		},
		"flags": func(_ *proposal.Listed, s *approval.Standing) {
			s.Signed.AuthenticatorData = slices.Clone(s.Signed.AuthenticatorData)
			s.Signed.AuthenticatorData[32] = 1
		},
		"no signature":        func(_ *proposal.Listed, s *approval.Standing) { s.Signed = signature.Signed{} },
		"no countersignature": func(_ *proposal.Listed, s *approval.Standing) { s.Signed.Countersignature = nil },
		"another service": func(_ *proposal.Listed, s *approval.Standing) {
			s.Signed, err = s.Signed.Accept(approvaltest.Witness(1), nil, r.clock.Now())
			r.ok(err)
		},
		"rights":   func(_ *proposal.Listed, s *approval.Standing) { s.Approver.Permissions = access.PoliciesRead },
		"policies": func(_ *proposal.Listed, s *approval.Standing) { s.Approver.Policies = []string{} },
	} {
		t.Run(name, func(t *testing.T) {
			if err := stands(alter); err == nil {
				t.Error("it still counts")
			}
		})
	}
}

// TestApply_ApprovedByAReplicaWithANewerKeyFile: an approval that a replica cannot verify, because it has not read the
// rotated key file yet, stays. It is void once the operator has declared the key lost.
func TestApply_ApprovedByAReplicaWithANewerKeyFile(t *testing.T) {
	each(t, func(t *testing.T, r *fixture) {
		p, ada := approvable(r)
		newer := approvaltest.Verifier()
		newer.Service = approvaltest.Witness(1)
		approves := func() proposal.Proposal {
			made := r.propose(p, "CAMERA", "BLOCK")
			r.ok(r.db.Decide(t.Context(), approval.Decision{CompanyID: r.company.ID, Kind: approval.ChangeKind, ID: made.ID,
				UserID: ada.User.ID, PasskeyID: ada.Passkey.ID, Signed: r.sign(ada, made.ID, signature.Approve, nil), Verifier: newer}))
			return made
		}
		made, lost := approves(), approves()
		_, err := r.apply(made)
		r.code(fault.Unavailable, err)
		r.code(fault.Unavailable, r.decides(ada, made.ID, r.sign(ada, made.ID, signature.Decline, nil)))
		if read, err := r.service.Read(t.Context(), r.key("k").Principal, made.ID); err != nil || read.Approval.State != "" {
			t.Errorf("what cannot be verified is read as %+v, %v", read.Approval, err)
		}
		if got := r.proposal(made.ID); got.Status != proposal.Pending || got.Approval.State != proposal.Approved {
			t.Fatalf("it is %s, %+v", got.Status, got.Approval)
		}
		for _, key := range []string{"old", "new"} {
			_, err = r.db.AdmitKeys(t.Context(), []string{key}, true)
			r.ok(err)
		}
		_, err = r.apply(lost)
		r.code(fault.ConfirmationRequired, err)
		r.waits(lost.ID)
		r.service.Verifier = newer
		_, err = r.apply(made)
		r.ok(err)
	})
}

// TestApply_ForgedApproval: a row of the database that says that a person approved does not
// stand for what they sign, and neither does a signature that the service did not accept.
func TestApply_ForgedApproval(t *testing.T) {
	t.Parallel()
	r := onSQLite(t)
	p, ada := approvable(r)
	made := r.propose(p, "CAMERA", "BLOCK")
	for name, forge := range map[string]string{
		"without a document": `UPDATE proposals SET approval = 'APPROVED', approved_by = 'Ada', approved_at = 1, signed_id = 'x'`,
		"a document that the service did not accept": `UPDATE proposals SET approval = 'APPROVED', approved_by = 'Ada', approved_at = 1,
			signed_id = (SELECT id FROM signed_documents WHERE subject = proposals.id)`,
	} {
		file, err := r.sign(ada, made.ID, signature.Approve, nil).Export()
		r.ok(err)
		r.ok(triggertest.Add(t.Context(), r.url, `DELETE FROM signed_documents`,
			fmt.Sprintf(`INSERT INTO signed_documents (id, company_id, subject, signed, at) VALUES ('y', '%s', '%s', '%s', 1)`,
				r.company.ID, made.ID, file), forge))
		if read, err := r.service.Read(t.Context(), r.key("k").Principal, made.ID); err != nil || read.Approval.State != "" {
			t.Errorf("%s: read as %+v, %v", name, read.Approval, err)
		}
		if _, err := r.apply(made); fault.CodeOf(err) != fault.ConfirmationRequired {
			t.Errorf("%s: %v", name, err)
		}
		r.waits(made.ID)
	}
}

// TestApply_ApproverMustStillBeAllowed changes the person, the company and the devices
// between approving and applying.
func TestApply_ApproverMustStillBeAllowed(t *testing.T) {
	each(t, func(t *testing.T, r *fixture) {
		p, _ := approvable(r)
		change := func(ada *approver, edit func(*account.User)) {
			_, err := r.db.UpdateUser(t.Context(), r.company.ID, ada.User.ID, func(u *account.User) error { edit(u); return nil })
			r.ok(err)
		}
		check := func(name string, between func(*approver)) {
			t.Helper()
			ada := r.approver(account.Manager)
			made := r.propose(p, "CAMERA", "BLOCK")
			r.approves(ada, made.ID)
			between(ada)
			if _, err := r.apply(made); fault.CodeOf(err) != fault.ConfirmationRequired {
				t.Errorf("%s: %v", name, err)
			}
			r.waits(made.ID)
		}
		for name, between := range map[string]func(*approver){
			"disabled":     func(ada *approver) { change(ada, func(u *account.User) { u.Disabled = true }) },
			"lost right":   func(ada *approver) { change(ada, func(u *account.User) { u.Rights &^= account.EditPolicies }) },
			"other policy": func(ada *approver) { change(ada, func(u *account.User) { u.Policies = []string{resource.NewID()} }) },
			"no passkey":   func(ada *approver) { r.ok(r.db.RemovePasskey(t.Context(), ada.User.ID, ada.Passkey.ID)) },
			"deleted": func(ada *approver) {
				_, err := r.db.DeleteUser(t.Context(), r.company.ID, ada.User.ID)
				r.ok(err)
			},
		} {
			check(name, between)
		}
		check("older approvers", func(*approver) { r.controls(func(c *access.Controls) { c.ApproverAge = 300 * time.Hour }) })
	})
}

// TestDecide_WhoApproves: who is too young, or asked for it, does not.
func TestDecide_WhoApproves(t *testing.T) {
	t.Parallel()
	r := onSQLite(t)
	p, ada := approvable(r)
	made := r.propose(p, "CAMERA", "BLOCK")
	young := r.approver(account.Manager)
	r.ok(r.db.RemovePasskey(t.Context(), young.User.ID, young.Passkey.ID))
	r.passkey(young, r.clock.Now())
	viewer := r.approver(account.Viewer)
	r.code(fault.Refused, r.decides(young, made.ID, r.sign(young, made.ID, signature.Approve, nil)))
	r.code(fault.Refused, r.decides(viewer, made.ID, r.sign(viewer, made.ID, signature.Approve, nil)))
	r.clock.Advance(25 * time.Hour)
	r.code(fault.NotPending, r.decides(ada, made.ID, r.sign(ada, made.ID, signature.Approve, nil)))

	r.controls(func(c *access.Controls) { c.SecondPerson = true })
	call := r.key("c")
	call.Principal.Kind, call.Principal.UserID = access.Connection, ada.User.ID
	own, err := r.service.ProposeChanges(t.Context(), call, p.ID, set("CAMERA", "BLOCK"))
	r.ok(err)
	r.code(fault.Refused, r.decides(ada, own.ID, r.sign(ada, own.ID, signature.Approve, nil)))
	r.approves(young, own.ID) // a day older now
	if _, err := r.service.Apply(t.Context(), call, own.ID, ""); err != nil {
		t.Error(err)
	}
}

// TestApply_WhoAskedIsNew: with a second person, an approval does not count while account
// or rights of the user behind the request are new.
func TestApply_WhoAskedIsNew(t *testing.T) {
	each(t, func(t *testing.T, r *fixture) {
		p, ada := approvable(r)
		r.controls(func(c *access.Controls) { c.SecondPerson = true })
		puppet := account.User{ID: resource.NewID(), CompanyID: r.company.ID, Name: "Puppet", Email: "puppet@acme.test",
			Role: account.Manager, CreatedAt: r.clock.Now()}
		r.ok(r.db.CreateUser(t.Context(), puppet))
		made, _ := apikey.New(r.company.ID, "K", puppet.ID, access.All, r.clock.Now(), time.Time{})
		r.ok(r.db.CreateKey(t.Context(), made))
		call := r.key(made.ID)
		proposed := func() proposal.Proposal {
			p, err := r.service.ProposeChanges(t.Context(), call, p.ID, set("CAMERA", "BLOCK"))
			r.ok(err)
			return p
		}
		own := proposed()
		r.code(fault.Refused, r.decides(ada, own.ID, r.sign(ada, own.ID, signature.Approve, nil)))
		r.clock.Advance(25 * time.Hour)
		own = proposed()
		r.approves(ada, own.ID)
		_, err := r.db.UpdateUser(t.Context(), r.company.ID, puppet.ID, func(u *account.User) error {
			u.Rights = account.ViewDevices
			return nil
		})
		r.ok(err)
		if _, err := r.service.Apply(t.Context(), call, own.ID, ""); fault.CodeOf(err) != fault.ConfirmationRequired {
			t.Errorf("the user behind the key got a right: %v", err)
		}
		_, err = r.db.DeleteUser(t.Context(), r.company.ID, puppet.ID)
		r.ok(err)
		r.approves(ada, own.ID)
		if _, err := r.service.Apply(t.Context(), call, own.ID, ""); err != nil {
			t.Errorf("the operator deleted the user: %v", err)
		}
	})
}

// TestApply_DevicesWithinTheImpact: devices come and go within the impact; one that
// makes it HIGH voids the approval.
func TestApply_DevicesWithinTheImpact(t *testing.T) {
	each(t, func(t *testing.T, r *fixture) {
		r.approving(access.ApproveRisky)
		p, ada := r.newPolicy("Warehouse", 0), r.approver(account.Manager)
		rising := r.propose(p, "FACTORY_RESET", "BLOCK") // NORMAL without devices
		if rising.NeedsApproval() || rising.ExpiresAt.Sub(rising.CreatedAt) != proposal.ApprovalLifetime {
			t.Errorf("made %+v", rising)
		}
		first := r.enroll(p)
		_, err := r.apply(rising)
		r.code(fault.ConfirmationRequired, err)
		r.approves(ada, rising.ID)
		r.enroll(p)
		r.observe(p, first, true)
		if _, err := r.apply(rising); err != nil {
			t.Errorf("within the impact: %v", err)
		}
		r.controls(func(c *access.Controls) { c.ApplyApproval = access.ApproveAll })
		q := r.newPolicy("Office", 0)
		made := r.propose(q, "FACTORY_RESET", "BLOCK")
		r.approves(ada, made.ID) // as NORMAL
		r.enroll(q)
		_, err = r.apply(made)
		r.code(fault.ConfirmationRequired, err)
		r.waits(made.ID)
	})
}

// TestApply_PeopleAndTheDefaultNeedNone: nothing of this binds a person in the portal,
// or a company that does not ask for it.
func TestApply_PeopleAndTheDefaultNeedNone(t *testing.T) {
	t.Parallel()
	r := onSQLite(t)
	p := r.newPolicy("Warehouse", 1)
	made := r.propose(p, "CONFIGURE_WIFI", "BLOCK")
	if made.NeedsApproval() || made.ExpiresAt.Sub(made.CreatedAt) != proposal.Lifetime {
		t.Errorf("by default %+v", made)
	}
	_, err := r.apply(made)
	r.ok(err)
	r.approving(access.ApproveAll)
	ada := r.approver(account.Manager)
	own := operation.Call{Principal: ada.Principal(r.company.Slug, r.company.Settings)}
	hers, err := r.service.ProposeChanges(t.Context(), own, p.ID, set("CAMERA", "BLOCK"))
	r.ok(err)
	if hers.ExpiresAt.Sub(hers.CreatedAt) != proposal.Lifetime {
		t.Errorf("a person's %+v", hers)
	}
	if _, err := r.service.Apply(t.Context(), own, hers.ID, ""); err != nil {
		t.Error(err)
	}
	r.code(fault.NotPending, r.decides(ada, hers.ID, r.sign(ada, hers.ID, signature.Approve, nil)))
}

// TestApply_DeclinedIsFinal: a declined proposal is FAILED, by whatever is tried.
func TestApply_DeclinedIsFinal(t *testing.T) {
	each(t, func(t *testing.T, r *fixture) {
		p, ada := approvable(r)
		made := r.propose(p, "CAMERA", "BLOCK")
		before := r.sign(ada, made.ID, signature.Approve, nil)
		r.ok(r.decides(ada, made.ID, r.sign(ada, made.ID, signature.Decline, nil)))
		r.code(fault.NotPending, r.decides(ada, made.ID, before))
		_, err := r.apply(made)
		r.code(fault.NotPending, err)
		if said := fault.From(err).Detail; !strings.Contains(said, "ask that person") {
			t.Errorf("the refusal does not say what to do: %q", said)
		}
		if got := r.proposal(made.ID); got.Status != proposal.Failed || got.Outcome != proposal.DeclinedBy("Ada", "") ||
			got.Approval.State != proposal.Declined {
			t.Errorf("declined %+v", got)
		}
	})
}

// TestApply_ApprovedOnceOverReplicas: many calls on two replicas race with a person who
// approves and one who declines. At most one decides, and at most one call applies.
func TestApply_ApprovedOnceOverReplicas(t *testing.T) {
	each(t, func(t *testing.T, r *fixture) {
		p, ada := approvable(r)
		bob := r.approver(account.Manager)
		second, _ := r.replica(r.open())
		second.Verifier = approvaltest.Verifier()
		for range 5 {
			made := r.propose(r.policy(p.ID), "CAMERA",
				map[string]string{"BLOCK": "ALLOW", "ALLOW": "BLOCK", "NOT_SET": "BLOCK"}[value(t, r.policy(p.ID).Document, "CAMERA")])
			yes, no := r.sign(ada, made.ID, signature.Approve, nil), r.sign(bob, made.ID, signature.Decline, nil)
			var group sync.WaitGroup
			var mu sync.Mutex
			decided, applied := 0, 0
			count := func(n *int, err error) {
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					*n++
				} else if c := fault.CodeOf(err); c != fault.NotPending && c != fault.ConfirmationRequired {
					t.Error(err)
				}
			}
			group.Go(func() { count(&decided, r.decides(ada, made.ID, yes)) })
			group.Go(func() { count(&decided, r.decides(bob, made.ID, no)) })
			for i := range 8 {
				service := []*proposal.Service{r.service, second}[i%2]
				group.Go(func() {
					for range 20 {
						_, err := service.Apply(t.Context(), r.key("k"), made.ID, "")
						if count(&applied, err); fault.CodeOf(err) != fault.ConfirmationRequired {
							return
						}
					}
				})
			}
			group.Wait()
			now := r.proposal(made.ID)
			if now.Approval.State == proposal.Approved && now.Status == proposal.Pending {
				_, err := r.apply(made)
				count(&applied, err)
				now = r.proposal(made.ID)
			}
			if want := map[proposal.Status]int{proposal.Succeeded: 1, proposal.Failed: 0}[now.Status]; decided != 1 || applied != want ||
				!now.Status.Final() {
				t.Errorf("%d decided, %d applied: %s, %+v", decided, applied, now.Status, now.Approval)
			}
		}
	})
}

// TestNeedsApproval is the rule of the setting, whole.
func TestNeedsApproval(t *testing.T) {
	t.Parallel()
	for _, rule := range append(access.ApprovalRules(), "") {
		for _, kind := range []access.Kind{access.APIKey, access.Connection, access.User, access.System} {
			for _, impact := range []proposal.Impact{proposal.Normal, proposal.High} {
				for _, warnings := range [][]string{nil, {"x"}} {
					bound := kind == access.APIKey || kind == access.Connection
					want := bound && (rule == access.ApproveAll || rule == access.ApproveRisky &&
						(impact == proposal.High || warnings != nil))
					if got := proposal.NeedsApproval(rule, kind, impact, warnings); got != want {
						t.Errorf("%s %s %s %v: %v", rule, kind, impact, warnings, got)
					}
				}
			}
		}
	}
}

// TestPropose_AtMostTwentyWait: one more than twenty is refused until the earliest of them
// expires; what is decided, outdated, of another caller or of a person does not count.
func TestPropose_AtMostTwentyWait(t *testing.T) {
	each(t, func(t *testing.T, r *fixture) {
		p, ada := approvable(r)
		one := func(caller, setting string) error {
			_, err := r.service.ProposeChanges(t.Context(), r.key(caller), p.ID, set(setting, "BLOCK"))
			return err
		}
		first := r.propose(p, "CAMERA", "BLOCK")
		r.clock.Advance(time.Hour)
		for range proposal.MaxWaiting - 1 {
			r.propose(p, "CAMERA", "BLOCK")
		}
		refused := fault.From(one("k", "CAMERA"))
		if refused == nil || refused.Code != fault.RateLimited || refused.RetryAfter != first.ExpiresAt.Sub(r.clock.Now()) {
			t.Fatalf("one more: %+v", refused)
		}
		r.code(fault.InvalidArguments, one("k", "NO_SUCH_SETTING")) // looked at first
		r.ok(one("another", "CAMERA"))
		own := operation.Call{Principal: ada.Principal(r.company.Slug, r.company.Settings)}
		_, err := r.service.ProposeChanges(t.Context(), own, p.ID, set("CAMERA", "BLOCK"))
		r.ok(err)
		r.approves(ada, first.ID)
		r.ok(one("k", "CAMERA"))
		r.code(fault.RateLimited, one("k", "CAMERA"))
		_, err = r.apply(first) // all others are outdated now
		r.ok(err)
		r.ok(one("k", "SMS"))
	})
}

// TestPropose_TwentyAtOnce: callers that race on two replicas get no more than twenty.
func TestPropose_TwentyAtOnce(t *testing.T) {
	each(t, func(t *testing.T, r *fixture) {
		p, _ := approvable(r)
		second, _ := r.replica(r.open())
		held, _ := apikey.New(r.company.ID, "k", "operator", access.PoliciesWrite, r.clock.Now(), time.Time{})
		held.ID = "k"
		r.ok(r.db.CreateKey(t.Context(), held))
		for range proposal.MaxWaiting - 3 {
			r.propose(p, "CAMERA", "BLOCK")
		}
		var group sync.WaitGroup
		var made atomic.Int32
		for i := range 12 {
			service := []*proposal.Service{r.service, second}[i%2]
			group.Go(func() {
				if _, err := service.ProposeChanges(t.Context(), r.key("k"), p.ID, set("CAMERA", "BLOCK")); err == nil {
					made.Add(1)
				} else if fault.CodeOf(err) != fault.RateLimited {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if made.Load() != 3 {
			t.Errorf("%d were made, want 3", made.Load())
		}
	})
}

// TestRule_SwitchedOff: proposals of callers live for ten minutes from when they were made,
// and not for the day that a person had.
func TestRule_SwitchedOff(t *testing.T) {
	each(t, func(t *testing.T, r *fixture) {
		p, _ := approvable(r)
		old := r.propose(p, "CAMERA", "BLOCK")
		r.clock.Advance(proposal.Lifetime - time.Minute)
		young := r.propose(p, "SMS", "BLOCK")
		_, err := r.db.UpdateCompany(t.Context(), r.company.ID, func(c *company.Company) error {
			c.Settings.Controls.ApplyApproval = access.ApproveNone
			return nil
		})
		r.ok(err)
		for _, made := range []proposal.Proposal{old, young} {
			if got := r.proposal(made.ID); got.Status != proposal.Pending || got.ExpiresAt.Sub(got.CreatedAt) != proposal.Lifetime {
				t.Errorf("%+v", got)
			}
		}
		r.clock.Advance(time.Minute)
		if got := r.proposal(old.ID).Status; got != proposal.Expired {
			t.Errorf("after ten minutes it is %s", got)
		}
		_, err = r.apply(young)
		r.ok(err)
	})
}
