package database_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/apikey"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/approval/approvaltest"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/signature"
)

func (f *fixture) setControls(change func(*access.Controls)) {
	f.Helper()
	_, err := f.db.UpdateCompany(f.Context(), f.company.ID, func(c *company.Company) error {
		change(&c.Settings.Controls)
		return nil
	})
	f.ok(err)
}

// destructiveApproval has persons authorize destructive commands, at any age.
func (f *fixture) destructiveApproval() {
	f.setControls(func(c *access.Controls) { c.DestructiveApproval, c.ApproverAge = true, 0 })
}

// asking is an intent of a key with what a person would authorize of it.
func (f *fixture) asking(a asset.Asset, kind command.Type, digest string) command.Command {
	f.Helper()
	c := f.intent(a, kind)
	c.Ask = askOf(c, digest)
	return c
}

func askOf(c command.Command, digest string) *approval.Ask {
	return &approval.Ask{Difference: approval.NoMove, Verifier: approvaltest.Verifier(),
		Call: approval.Call{CompanyID: c.CompanyID, AssetID: c.AssetID, Epoch: c.Epoch,
			Command: string(c.Type), Digest: digest, Caller: approval.Caller{Actor: c.Actor}}}
}

// refusal begins a command that is refused for want of an authorization.
func (f *fixture) refusal(db *database.DB, c command.Command) approval.Refusal {
	f.Helper()
	_, begun, err := db.Begin(f.Context(), c, nil)
	r, ok := errors.AsType[*approval.Refusal](err)
	if !ok || begun {
		f.Fatalf("%s: begun %t, %v: want a refusal", c.Type, begun, err)
	}
	if _, err := f.db.Command(f.Context(), c.ID); fault.CodeOf(err) != fault.NotFound {
		f.Fatalf("the refused command is there: %v", err)
	}
	return *r
}

// key is the passkey of a person.
func (f *fixture) key(u account.User) account.Passkey {
	f.Helper()
	all, err := f.db.Passkeys(f.Context(), u.ID)
	f.ok(err)
	return all[0]
}

// keysOf are the passkeys of persons, by their ids.
var keysOf sync.Map

// sign signs a document with a person's passkey.
func (f *fixture) sign(by account.User, document []byte) signature.Signed {
	f.Helper()
	key, _ := keysOf.Load(f.key(by).ID)
	return key.(*approvaltest.Passkey).Sign(document)
}

// document is what a person decides about an authorization that they see.
func (f *fixture) document(id string, by account.User, d signature.Decision, edit func(*approval.Authorization, *approval.Seen)) []byte {
	f.Helper()
	a, seen, err := f.db.SeenAuthorization(f.Context(), f.company.ID, id)
	f.ok(err)
	if edit != nil {
		edit(&a, &seen)
	}
	of := a.Subject(seen)
	document, err := of.Canonical(signature.Head{Approver: signature.Person{ID: by.ID, Name: by.Name}, Decision: d,
		At:           signature.Time(f.clock.Now()),
		Confirmation: of.Name}, nil)
	f.ok(err)
	return document
}

// decision is a person's about an authorization.
func (f *fixture) decision(id string, by account.User, signed signature.Signed) approval.Decision {
	f.Helper()
	return approval.Decision{CompanyID: f.company.ID, Kind: approval.CallKind, ID: id, UserID: by.ID,
		PasskeyID: f.key(by).ID, Signed: signed,
		Verifier: approvaltest.Verifier()}
}

// decide has a person decide about what they see.
func (f *fixture) decide(id string, by account.User, d signature.Decision) error {
	f.Helper()
	return f.db.Decide(f.Context(), f.decision(id, by, f.sign(by, f.document(id, by, d, nil))))
}

func (f *fixture) approve(id string, by account.User) {
	f.Helper()
	f.ok(f.decide(id, by, signature.Approve))
}

func (f *fixture) authorization(id string) approval.Authorization {
	f.Helper()
	a, err := f.db.Authorization(f.Context(), f.company.ID, id)
	f.ok(err)
	return a
}

// A command that a person authorized begins once, within ten minutes, on either
// replica; the same call asks for the same authorization until then.
func TestBegin_UsesAnAuthorizationOnce(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.destructiveApproval()
		phone, ada, other := f.fleet(1)[0], f.person("Ada", true), f.open(f.T)
		wipe := func() command.Command { return f.asking(phone, command.WipeCompanyData, "d1") }
		first := f.refusal(f.db, wipe())
		if first.Verdict != approval.Asks || first.ID == "" {
			t.Fatalf("first refusal = %+v", first)
		}
		for want, all := range map[int][][]string{1: {nil, {phone.Device.PolicyID}}, 0: {{}, {"other"}}} {
			for _, ids := range all {
				if n, err := f.db.WaitingAuthorizations(f.Context(), f.company.ID, ids); err != nil || n != want {
					t.Errorf("waiting for devices with %v: %d, %v, want %d", ids, n, err, want)
				}
			}
		}
		if again := f.refusal(other, wipe()); again.ID != first.ID || again.Verdict != approval.Waits {
			t.Errorf("the same call again = %+v, want %s", again, first.ID)
		}
		f.approve(first.ID, ada)
		if err := f.decide(first.ID, ada, signature.Decline); fault.CodeOf(err) != fault.Refused {
			t.Errorf("decided twice: %v", err)
		}
		equal(f, "declines in the log, which came too late", f.recorded(activity.AuthorizationDeclined), 1)
		used := wipe()
		if _, begun, err := other.Begin(f.Context(), used, nil); err != nil || !begun {
			t.Fatalf("authorized: begun %t, %v", begun, err)
		}
		a := f.authorization(first.ID)
		want := a
		want.State, want.CommandID, want.UsedAt, want.DecidedBy, want.PasskeyID = approval.Used, used.ID, f.clock.Now(),
			ada.ID, f.key(ada).ID
		equal(f, "used authorization", a, want)
		second := f.refusal(f.db, wipe())
		if second.ID == first.ID || second.Verdict != approval.Asks {
			t.Errorf("after its use = %+v", second)
		}
		f.approve(second.ID, ada)
		f.clock.Advance(approval.UseWithin)
		if late := f.refusal(f.db, wipe()); late.ID == second.ID {
			t.Errorf("after ten minutes = %+v", late)
		}
		entries, err := f.db.Activity(f.Context(), activity.Filter{CompanyID: f.company.ID, Area: "authorization"}, activity.Cursor{}, 20)
		f.ok(err)
		if len(entries) != 6 { // three asked, two approved, one refused as decided
			t.Errorf("%d entries: %+v", len(entries), entries)
		}
	})
}

// What a person authorized does not count once they may not authorize it any more: the
// same call waits for another person.
func TestBegin_AuthorizationOfAPersonWhoMayNoMore(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.destructiveApproval()
		update := func(u account.User, change func(*account.User)) {
			_, err := f.db.UpdateUser(f.Context(), f.company.ID, u.ID, func(u *account.User) error { change(u); return nil })
			f.ok(err)
		}
		for i, end := range []func(account.User){
			func(u account.User) { update(u, func(u *account.User) { u.Disabled = true }) },
			func(u account.User) { update(u, func(u *account.User) { u.Rights &^= account.DestroyDevices }) },
			func(u account.User) { f.ok(f.db.RemovePasskey(f.Context(), u.ID, f.key(u).ID)) },
			func(account.User) { f.setControls(func(c *access.Controls) { c.ApproverAge = time.Hour }) },
		} {
			phone := f.enroll(fmt.Sprint("p", i), f.newPolicy(fmt.Sprint("P", i)).ID)
			by, call := f.person(fmt.Sprint("user", i), true), f.asking(phone, command.WipeCompanyData, fmt.Sprint("d", i))
			first := f.refusal(f.db, call)
			f.approve(first.ID, by)
			end(by)
			if again := f.refusal(f.db, f.asking(phone, command.WipeCompanyData, call.Ask.Digest)); again.ID != first.ID ||
				again.Verdict != approval.Waits {
				t.Errorf("way %d: %+v", i, again)
			}
			if a := f.authorization(first.ID); a.State != approval.Waiting || a.DecidedBy != "" {
				t.Errorf("way %d: it is %s", i, a.State)
			}
		}
	})
}

// An authorization is for one device, enrollment, command, arguments, caller and company.
func TestBegin_AuthorizationIsBound(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.destructiveApproval()
		devices, ada := f.fleet(2), f.person("Ada", true)
		first := f.refusal(f.db, f.asking(devices[0], command.WipeCompanyData, "d1"))
		f.approve(first.ID, ada)
		for name, edit := range map[string]func(*command.Command){
			"device":     func(c *command.Command) { c.AssetID, c.Ask.AssetID = devices[1].ID, devices[1].ID },
			"enrollment": func(c *command.Command) { c.Epoch++; c.Ask.Epoch++ },
			"command": func(c *command.Command) {
				c.Type, c.Ask.Command = command.ResetScreenLock, string(command.ResetScreenLock)
			},
			"arguments": func(c *command.Command) { c.Ask.Digest = "d2" },
			"key":       func(c *command.Command) { c.Actor.ID, c.Ask.Caller.ID = "k2", "k2" },
			"kind":      func(c *command.Command) { c.Actor.Kind, c.Ask.Caller.Kind = access.Connection, access.Connection },
		} {
			c := f.asking(devices[0], command.WipeCompanyData, "d1")
			edit(&c)
			if r := f.refusal(f.db, c); r.ID == first.ID {
				t.Errorf("another %s: %+v", name, r)
			}
		}
		acme := f.company
		f.company = f.newCompany("other")
		f.destructiveApproval()
		foreign := f.asking(f.enroll("x1", f.newPolicy("Other").ID), command.WipeCompanyData, "d1")
		if r := f.refusal(f.db, foreign); r.ID == first.ID {
			t.Errorf("another company: %+v", r)
		}
		if _, err := f.db.Authorization(f.Context(), f.company.ID, first.ID); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("another company reads it: %v", err)
		}
		f.company = acme
		if _, begun, err := f.db.Begin(f.Context(), f.asking(devices[0], command.WipeCompanyData, "d1"), nil); err != nil || !begun {
			t.Errorf("the call that was authorized: %t, %v", begun, err)
		}
	})
}

// A call that the limit refuses uses no authorization and asks for none, and neither does
// one whose command there is already.
func TestBegin_RefusedCallsUseNoAuthorization(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.destructiveApproval()
		devices, ada := f.fleet(2), f.person("Ada", true)
		f.setLimit(1, 60)
		ask := f.refusal(f.db, f.asking(devices[0], command.WipeCompanyData, "d1"))
		f.approve(ask.ID, ada)
		person := f.intent(devices[1], command.WipeCompanyData) // uses the limit, and needs no authorization
		person.Actor = access.Actor{Kind: access.User, ID: f.person("Eve", false).ID}
		if _, begun, err := f.db.Begin(f.Context(), person, nil); err != nil || !begun {
			t.Fatalf("a person's command: %t, %v", begun, err)
		}
		_, _, err := f.db.Begin(f.Context(), f.asking(devices[0], command.WipeCompanyData, "d1"), nil)
		f.code(fault.RateLimited, err)
		_, _, err = f.db.Begin(f.Context(), f.asking(devices[0], command.ResetScreenLock, "d2"), nil)
		f.code(fault.RateLimited, err)
		if a := f.authorization(ask.ID); a.State != approval.Approved {
			t.Errorf("after the limit: %s", a.State)
		}
		if all, err := f.db.Authorizations(f.Context(), f.company.ID, nil, 10); err != nil || len(all) != 1 {
			t.Errorf("%d authorizations, %v", len(all), err)
		}
		f.setLimit(5, 60)
		done := f.asking(devices[0], command.WipeCompanyData, "d1")
		done.IdempotencyRef = "r1"
		if _, begun, err := f.db.Begin(f.Context(), done, nil); err != nil || !begun {
			t.Fatalf("authorized: %t, %v", begun, err)
		}
		again := f.asking(devices[0], command.WipeCompanyData, "d1")
		again.IdempotencyRef = "r1"
		if stored, begun, err := f.db.Begin(f.Context(), again, nil); err != nil || begun || stored.ID != done.ID {
			t.Errorf("a repetition: %s, %t, %v", stored.ID, begun, err)
		}
		f.clock.Advance(approval.KeepFor + time.Millisecond)
		f.ok(f.db.Sweep(f.Context(), f.clock.Now()))
		if all, err := f.db.Authorizations(f.Context(), f.company.ID, nil, 10); err != nil || len(all) != 0 {
			t.Errorf("after thirty days: %d authorizations, %v", len(all), err)
		}
	})
}

// What waits for a device that was enrolled again cannot be decided, and does not count in the five.
func TestBegin_AuthorizationsOfFormerDevices(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.destructiveApproval()
		devices := f.fleet(approval.MaxWaiting + 1)
		for _, d := range devices[:approval.MaxWaiting] {
			f.refusal(f.db, f.asking(d, command.WipeCompanyData, d.ID))
		}
		last := f.asking(devices[approval.MaxWaiting], command.WipeCompanyData, "last")
		equal(f, "one more", f.refusal(f.db, last).Verdict, approval.TooMany)
		f.clock.Advance(time.Minute)
		f.observe(f.joined(devices[0].Device.Name, ""))
		equal(f, "the device's epoch", f.asset(devices[0].ID).Device.Epoch, devices[0].Device.Epoch+1)
		equal(f, "one more after a new enrollment", f.refusal(f.db, last).Verdict, approval.Asks)
	})
}

// Moves that no person can decide about any more, because a policy was saved since, do not count either, and wait for no person.
func TestBegin_AuthorizationsOfFormerPolicies(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.destructiveApproval()
		f.setControls(func(c *access.Controls) { c.ApplyApproval = access.ApproveAll })
		from, to := f.newPolicy("From"), f.newPolicy("To")
		for i := range approval.MaxWaiting {
			move := f.moving(f.enroll(fmt.Sprint("d", i), from.ID), from, to)
			move.Ask.Difference, move.Ask.Needed = approval.Risky, true
			f.refusal(f.db, move)
		}
		last := f.asking(f.enroll("last", from.ID), command.WipeCompanyData, "last")
		waiting := func() int {
			n, err := f.db.WaitingAuthorizations(f.Context(), f.company.ID, nil)
			f.ok(err)
			equal(f, "listed", len(f.waits()), n)
			return n
		}
		equal(f, "one more", f.refusal(f.db, last).Verdict, approval.TooMany)
		equal(f, "waiting", waiting(), approval.MaxWaiting)
		to.Name = "To, later"
		_, err := f.db.SavePolicy(f.Context(), to, to.Version, policy.Revision{SavedAt: f.clock.Now()})
		f.ok(err)
		equal(f, "waiting, after the policy was saved", waiting(), 0)
		equal(f, "one more, after that", f.refusal(f.db, last).Verdict, approval.Asks)
	})
}

// A caller has at most five that wait; a declined call is not asked for again for an hour.
func TestBegin_AuthorizationsAreBounded(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.destructiveApproval()
		devices, ada := f.fleet(7), f.person("Ada", true)
		var ids []string
		for _, d := range devices[:approval.MaxWaiting] {
			ids = append(ids, f.refusal(f.db, f.asking(d, command.WipeCompanyData, d.ID)).ID)
		}
		sixth := f.asking(devices[5], command.WipeCompanyData, "d6")
		if r := f.refusal(f.db, sixth); r.ID != "" || r.Verdict != approval.TooMany {
			t.Errorf("the sixth: %+v", r)
		}
		another := f.asking(devices[6], command.WipeCompanyData, "d7")
		another.Actor.ID, another.Ask.Caller.ID = "k2", "k2"
		if r := f.refusal(f.db, another); r.ID == "" {
			t.Errorf("another caller: %+v", r)
		}
		f.ok(f.decide(ids[0], ada, signature.Decline))
		declined := f.asking(devices[0], command.WipeCompanyData, devices[0].ID)
		if r := f.refusal(f.db, declined); r.ID != ids[0] || r.Verdict != approval.Refused {
			t.Errorf("after a decline: %+v", r)
		}
		if r := f.refusal(f.db, sixth); r.ID == "" {
			t.Errorf("the sixth, when four wait: %+v", r)
		}
		f.clock.Advance(approval.WaitFor)
		if r := f.refusal(f.db, declined); r.Verdict != approval.Asks || r.ID == ids[0] {
			t.Errorf("an hour after a decline: %+v", r)
		}
		if err := f.decide(ids[1], ada, signature.Approve); fault.CodeOf(err) != fault.Refused {
			t.Errorf("an hour old: %v", err)
		}
	})
}

// Who may decide is looked at when they do, and what they signed must be what there is.
func TestDecideAuthorization_Refuses(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.destructiveApproval()
		phone, ada, eve := f.fleet(1)[0], f.person("Ada", true), f.person("Eve", true)
		id := f.refusal(f.db, f.asking(phone, command.WipeCompanyData, "d1")).ID
		decide := func(by account.User, edit func(*approval.Authorization, *approval.Seen)) error {
			return f.db.Decide(f.Context(), f.decision(id, ada, f.sign(ada, f.document(id, by, signature.Approve, edit))))
		}
		for name, err := range map[string]error{
			"signed for another device":  decide(ada, func(a *approval.Authorization, _ *approval.Seen) { a.AssetID = "x" }),
			"signed for another command": decide(ada, func(a *approval.Authorization, _ *approval.Seen) { a.Command = "REBOOT" }),
			"signed by another":          decide(eve, nil),
			"the name changed":           decide(ada, func(_ *approval.Authorization, s *approval.Seen) { s.Device.Identification = "x" }),
			"nothing":                    f.db.Decide(f.Context(), f.decision(id, ada, signature.Signed{Document: []byte("x")})),
			"not signed": f.db.Decide(f.Context(),
				f.decision(id, ada, signature.Signed{Document: f.document(id, ada, signature.Approve, nil)})),
			"signed with another's key": f.db.Decide(f.Context(),
				f.decision(id, ada, f.sign(eve, f.document(id, ada, signature.Approve, nil)))),
		} {
			if fault.CodeOf(err) != fault.Refused {
				t.Errorf("%s: %v", name, err)
			}
		}
		f.setControls(func(c *access.Controls) { c.ApproverAge = time.Hour })
		f.code(fault.Refused, decide(ada, nil))
		f.clock.Advance(time.Minute)
		f.setControls(func(c *access.Controls) { c.ApproverAge = 0 })
		_, err := f.db.UpdateUser(f.Context(), f.company.ID, ada.ID, func(u *account.User) error {
			u.Rights &^= account.DestroyDevices
			return nil
		})
		f.ok(err)
		f.code(fault.Refused, decide(ada, nil))
		if a := f.authorization(id); a.State != approval.Waiting {
			t.Errorf("after refusals: %s", a.State)
		}
		f.approve(id, eve)
		foreign := f.decision(id, eve, signature.Signed{})
		foreign.CompanyID = resource.NewID()
		f.code(fault.NotFound, f.db.Decide(f.Context(), foreign))
	})
}

// With secondPerson, the maker of the key and the user of the connection do not decide.
func TestDecideAuthorization_SecondPerson(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.destructiveApproval()
		f.setControls(func(c *access.Controls) { c.SecondPerson = true })
		devices, ada, eve := f.fleet(2), f.person("Ada", true), f.person("Eve", true)
		made, _ := apikey.New(f.company.ID, "K", ada.ID, access.All, f.clock.Now(), time.Time{})
		f.ok(f.db.CreateKey(f.Context(), made))
		key := made.ID
		byKey := f.asking(devices[0], command.WipeCompanyData, "d1")
		byKey.Actor.ID, byKey.Ask.Caller.ID = key, key
		byClient := f.asking(devices[1], command.WipeCompanyData, "d2")
		byClient.Actor.Kind = access.Connection
		byClient.Ask.Caller.Actor = access.Actor{Kind: access.Connection, ID: "k1", UserID: ada.ID}
		for _, c := range []command.Command{byKey, byClient} {
			id := f.refusal(f.db, c).ID
			f.code(fault.Refused, f.decide(id, ada, signature.Approve))
			f.approve(id, eve)
		}
	})
}

// Once a second person is asked for, what a person approved for themselves does not count any more.
func TestDecideAuthorization_SecondPersonFromNowOn(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.destructiveApproval()
		ada := f.person("Ada", true)
		made, _ := apikey.New(f.company.ID, "K", ada.ID, access.All, f.clock.Now(), time.Time{})
		f.ok(f.db.CreateKey(f.Context(), made))
		own := f.asking(f.fleet(1)[0], command.WipeCompanyData, "d1")
		own.Actor.ID, own.Ask.Caller.ID = made.ID, made.ID
		id := f.refusal(f.db, own).ID
		f.approve(id, ada)
		f.setControls(func(c *access.Controls) { c.SecondPerson = true })
		equal(f, "state", f.authorization(id).State, approval.Waiting)
		equal(f, "recorded as void", f.recorded(activity.AuthorizationVoid), 1)
	})
}

// A second person does not decide for a user whose account, rights or policies are new:
// when it is decided, and when it is used.
func TestDecideAuthorization_SecondPersonNewAccount(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.destructiveApproval()
		devices, eve := f.fleet(1), f.person("Eve", true)
		f.clock.Advance(time.Hour)
		f.setControls(func(c *access.Controls) { c.SecondPerson, c.ApproverAge = true, time.Hour })
		puppet := f.person("Puppet", false)
		made, _ := apikey.New(f.company.ID, "K", puppet.ID, access.All, f.clock.Now(), time.Time{})
		f.ok(f.db.CreateKey(f.Context(), made))
		c := f.asking(devices[0], command.WipeCompanyData, "d1")
		c.Actor.ID, c.Ask.Caller.ID = made.ID, made.ID
		id := f.refusal(f.db, c).ID
		f.code(fault.Refused, f.decide(id, eve, signature.Approve))
		limit := func(ids []string) {
			_, err := f.db.UpdateUser(f.Context(), f.company.ID, puppet.ID, func(u *account.User) error { u.Policies = ids; return nil })
			f.ok(err)
		}
		limit([]string{devices[0].Device.PolicyID})
		f.clock.Advance(time.Hour)
		id = f.refusal(f.db, c).ID // the first has expired
		f.approve(id, eve)
		limit(nil) // more policies
		if again := f.refusal(f.db, c); again.Verdict != approval.Waits {
			t.Errorf("the decision still counts for a user who got rights: %+v", again)
		}
		f.clock.Advance(time.Hour)
		f.approve(f.refusal(f.db, c).ID, eve)
		_, err := f.db.DeleteUser(f.Context(), f.company.ID, puppet.ID)
		f.ok(err)
		if _, begun, err := f.db.Begin(f.Context(), c, nil); err != nil || !begun {
			t.Errorf("the operator deleted who asked: %t, %v", begun, err)
		}
	})
}

// A policy more is a right more: of a user who may see others than before.
func TestUpdateUser_MorePoliciesAreANewRight(t *testing.T) {
	withCompany(t, func(f *fixture) {
		u := f.person("Helper", true)
		for _, c := range []struct {
			to     []string
			gained bool
		}{{[]string{"a", "b"}, false}, {[]string{"b"}, false}, {[]string{"b"}, false}, {[]string{"c"}, true}, {[]string{}, false},
			{[]string{"c"}, true}, {nil, true}, {nil, false}} {
			f.clock.Advance(time.Hour)
			_, err := f.db.UpdateUser(f.Context(), f.company.ID, u.ID, func(u *account.User) error { u.Policies = c.to; return nil })
			f.ok(err)
			who, err := f.db.Decider(f.Context(), f.company.ID, u.ID)
			f.ok(err)
			equal(f, fmt.Sprint("a new right with policies ", c.to), who.RightsAt.Equal(f.clock.Now()), c.gained)
		}
	})
}

// A move to another policy is refused if one of the two changed since they were compared.
func TestBegin_MoveIsWhatWasCompared(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.setControls(func(c *access.Controls) { c.ApplyApproval, c.ApproverAge = access.ApproveAll, 0 })
		from, to, ada := f.newPolicy("From"), f.newPolicy("To"), f.person("Ada", true)
		phone := f.enroll("d1", from.ID)
		move := func() command.Command {
			c := f.asking(phone, command.ChangePolicy, "d1")
			c.PolicyID = to.ID
			c.Ask.Difference, c.Ask.Needed, c.Ask.Move = approval.Risky, true, approval.Move{From: approval.Policy{ID: from.ID, Version: 1},
				To: approval.Policy{ID: to.ID, Version: 1}}
			return c
		}
		id := f.refusal(f.db, move()).ID
		if a := f.authorization(id); a.Move != move().Ask.Move {
			t.Errorf("kept move = %+v", a.Move)
		}
		f.approve(id, ada)
		next := to
		next.Document = json.RawMessage(`{"a":2}`)
		_, err := f.db.SavePolicy(f.Context(), next, 1, policy.Revision{SavedBy: policy.Author{Kind: "USER", ID: ada.ID, Name: "Ada"},
			Origin: policy.FromPortal, SavedAt: f.clock.Now()})
		f.ok(err)
		_, _, err = f.db.Begin(f.Context(), move(), nil)
		f.code(fault.Unavailable, err)
		if a := f.authorization(id); a.State != approval.Approved {
			t.Errorf("after a refusal: %s", a.State)
		}
		if _, begun, err := f.db.Begin(f.Context(), f.moving(phone, from, f.newPolicy("Another")), nil); err != nil || !begun {
			t.Errorf("a move that differs in nothing: %t, %v", begun, err)
		}
	})
}

// Who may decide is read with what decides it.
func TestApprovers(t *testing.T) {
	withCompany(t, func(f *fixture) {
		ada, eve := f.person("Ada", true), f.person("Eve", false)
		all, err := f.db.Approvers(f.Context(), f.company.ID)
		f.ok(err)
		for _, a := range all {
			want := map[string]int{ada.ID: 1, eve.ID: 0}[a.UserID]
			if len(a.Passkeys) != want || a.Permissions != access.All || a.CreatedAt.IsZero() {
				t.Errorf("approver = %+v", a)
			}
		}
		if len(all) != 2 {
			t.Errorf("%d approvers", len(all))
		}
	})
}

// step is an attempt of a caller to send, or of a person to approve what was named.
type step struct {
	call    int
	approve bool
}

type stepped struct{ done, lost bool }

const callsOf = 2

// authorizations is where the last authorization of each call stands: "", W, A.
type authorizations [callsOf]byte

func (a authorizations) after(in step) (authorizations, bool) {
	was := a[in.call]
	switch {
	case in.approve && was == 'W':
		a[in.call] = 'A'
		return a, true
	case in.approve:
		return a, false
	case was == 'A':
		a[in.call] = 'U'
		return a, true
	default:
		a[in.call] = 'W'
		return a, false
	}
}

func authorizing() porcupine.Model {
	return (&porcupine.NondeterministicModel{
		Init: func() []any { return []any{authorizations{}} },
		Step: func(state, input, output any) []any {
			next, done := state.(authorizations).after(input.(step))
			switch got := output.(stepped); {
			case got.lost:
				return []any{state, next}
			case input.(step).approve && !got.done: // what the person saw may be an earlier one of the call
				return []any{state}
			case got.done == done:
				return []any{next}
			default:
				return nil
			}
		},
	}).ToModel()
}

// Many callers on two replicas send the same calls while a person approves, some cut off
// in the middle: there is one order of everything, in which each approval lets one pass.
func TestBegin_AuthorizationIsLinearizable(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.destructiveApproval()
		f.setLimit(0, 0)
		devices, ada := f.fleet(callsOf), f.person("Ada", true)
		replicas := []*database.DB{f.db, f.open(f.T)}
		var mu sync.Mutex
		var history []porcupine.Operation
		var tick atomic.Int64
		run := func(client int, in step, work func(ctx context.Context, db *database.DB) (bool, error), random *rand.Rand) {
			ctx, cancel := context.WithCancel(f.Context())
			defer cancel()
			if random.IntN(6) == 0 {
				time.AfterFunc(time.Duration(random.IntN(1500))*time.Microsecond, cancel)
			}
			db := replicas[random.IntN(2)]
			called := tick.Add(1)
			done, err := work(ctx, db)
			out, returned := stepped{done: done}, tick.Add(1)
			_, refused := errors.AsType[*approval.Refusal](err)
			if err != nil && !refused && fault.CodeOf(err) != fault.Refused {
				out.lost, returned = true, 1<<40 // its effect may come at any time from now on
			}
			mu.Lock()
			defer mu.Unlock()
			history = append(history, porcupine.Operation{ClientId: client, Input: in, Output: out, Call: called, Return: returned})
		}
		for round := range 10 {
			var clients sync.WaitGroup
			for client := range 6 {
				random := rand.New(rand.NewPCG(uint64(round), uint64(client)))
				clients.Go(func() {
					call := random.IntN(callsOf)
					if client == 0 {
						all, err := f.db.Authorizations(f.Context(), f.company.ID, nil, 50)
						if err != nil {
							t.Error(err)
							return
						}
						for _, a := range all { // the newest of the call
							if a.Digest == fmt.Sprint("d", call) && a.State == approval.Waiting {
								run(client, step{call, true}, func(ctx context.Context, db *database.DB) (bool, error) {
									err := db.Decide(ctx, f.decision(a.ID, ada, f.sign(ada, f.document(a.ID, ada, signature.Approve, nil))))
									return err == nil, err
								}, random)
								return
							}
						}
						return
					}
					run(client, step{call, false}, func(ctx context.Context, db *database.DB) (bool, error) {
						_, begun, err := db.Begin(ctx, f.asking(devices[call], command.WipeCompanyData, fmt.Sprint("d", call)), nil)
						return begun, err
					}, random)
				})
			}
			clients.Wait()
		}
		passed := 0
		for _, o := range history {
			if out := o.Output.(stepped); out.done && !o.Input.(step).approve {
				passed++
			}
		}
		if passed == 0 {
			t.Error("no call passed")
		}
		if result := porcupine.CheckOperationsTimeout(authorizing(), history, time.Minute); result != porcupine.Ok {
			t.Errorf("%s: there is no order of %d attempts", result, len(history))
		}
	})
}

// A row of the database that says that a person authorized a call does not stand for what
// they sign, and neither does a signature that the service did not accept.
func TestBegin_ForgedAuthorization(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.destructiveApproval()
		phone, ada := f.fleet(1)[0], f.person("Ada", true)
		wipe := func() command.Command { return f.asking(phone, command.WipeCompanyData, "d1") }
		id := f.refusal(f.db, wipe()).ID
		file, err := f.sign(ada, f.document(id, ada, signature.Approve, nil)).Export()
		f.ok(err)
		f.tamper(fmt.Sprintf(`INSERT INTO signed_documents (id, company_id, subject, signed, at) VALUES ('y', '%s', '%s', '%s', 1)`,
			f.company.ID, id, file))
		for _, signed := range []string{"", "x", "y"} {
			f.tamper(
				fmt.Sprintf(
					`UPDATE authorizations SET state = 'APPROVED', decided_at = %d, decided_by = '%s', decided_by_name = 'Ada', passkey_id = '%s', signed_id = '%s' WHERE id = '%s'`,
					f.clock.Now().UnixMilli(), ada.ID, f.key(ada).ID, signed, id))
			shown, err := f.db.PresentAuthorization(f.Context(), f.authorization(id), approvaltest.Verifier())
			if f.ok(err); shown.State != approval.Waiting {
				t.Errorf("%q: it is shown as %s", signed, shown.State)
			}
			if r := f.refusal(f.db, wipe()); r.ID != id || r.Verdict != approval.Waits {
				t.Errorf("%q: %+v", signed, r)
			}
			if a := f.authorization(id); a.State != approval.Waiting {
				t.Errorf("%q: it is %s", signed, a.State)
			}
		}
		f.approve(id, ada)
		if _, begun, err := f.db.Begin(f.Context(), wipe(), nil); err != nil || !begun {
			t.Errorf("signed and accepted: %t, %v", begun, err)
		}
	})
}

// An authorization that a replica cannot verify, because it has not read the rotated key file yet, stays. It waits again
// once the operator has declared the key lost.
func TestBegin_AuthorizedByAReplicaWithANewerKeyFile(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.destructiveApproval()
		phone, ada := f.fleet(1)[0], f.person("Ada", true)
		wipe := func() command.Command { return f.asking(phone, command.WipeCompanyData, "d1") }
		id := f.refusal(f.db, wipe()).ID
		d := f.decision(id, ada, f.sign(ada, f.document(id, ada, signature.Approve, nil)))
		d.Verifier.Service = approvaltest.Witness(1)
		f.ok(f.db.Decide(f.Context(), d))
		_, begun, err := f.db.Begin(f.Context(), wipe(), nil)
		if f.code(fault.Unavailable, err); begun {
			t.Error("it began")
		}
		refused, err := f.db.WhyNot(f.Context(), wipe())
		f.ok(err)
		f.code(fault.Unavailable, refused)
		f.code(fault.Unavailable, f.decide(id, ada, signature.Decline))
		shown, err := f.db.PresentAuthorization(f.Context(), f.authorization(id), approvaltest.Verifier())
		f.ok(err)
		equal(f, "shown", shown.State, approval.Waiting)
		equal(f, "kept", f.authorization(id).State, approval.Approved)
		for _, key := range []string{"old", "new"} {
			_, err = f.db.AdmitKeys(f.Context(), []string{key}, true)
			f.ok(err)
		}
		if r := f.refusal(f.db, wipe()); r.ID != id || r.Verdict != approval.Waits {
			t.Errorf("with a key that is lost: %+v", r)
		}
		equal(f, "void", f.authorization(id).State, approval.Waiting)
	})
}

// What waits again because its approval does not count any more can be decided.
func TestDecideAuthorization_VoidOne(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.destructiveApproval()
		phone, ada, bob := f.fleet(1)[0], f.person("Ada", true), f.person("Bob", true)
		for _, decision := range []signature.Decision{signature.Approve, signature.Decline} {
			asked := f.refusal(f.db, f.asking(phone, command.WipeCompanyData, string(decision)))
			f.approve(asked.ID, ada)
			f.code(fault.Refused, f.decide(asked.ID, bob, decision)) // it counts
			name := "Renamed before " + string(decision)
			_, err := f.db.EditAsset(f.Context(), f.company.ID, phone.ID, asset.Edit{Identification: &name})
			f.ok(err)
			shown, err := f.db.PresentAuthorization(f.Context(), f.authorization(asked.ID), approvaltest.Verifier())
			f.ok(err)
			equal(f, "shown", shown.State, approval.Waiting)
			f.ok(f.decide(asked.ID, bob, decision))
			equal(f, "decided by", f.authorization(asked.ID).DecidedBy, bob.ID)
			decided := f.authorization(asked.ID)
			shown, err = f.db.PresentAuthorization(f.Context(), decided, approvaltest.Verifier())
			f.ok(err)
			equal(f, "shown once it is decided", shown, decided)
		}
	})
}

// The reason of a person who declines is in the activity log, where one was given.
func TestDecideAuthorization_DeclineWithAReason(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.destructiveApproval()
		phone, ada := f.fleet(1)[0], f.person("Ada", true)
		for _, reason := range []string{"", "Wrong phone"} {
			id := f.refusal(f.db, f.asking(phone, command.WipeCompanyData, "asked "+reason)).ID
			f.clock.Advance(time.Second)
			a, seen, err := f.db.SeenAuthorization(f.Context(), f.company.ID, id)
			f.ok(err)
			of := a.Subject(seen)
			by := signature.Person{ID: ada.ID, Name: ada.Name}
			document, err := of.Canonical(signature.Head{Approver: by, Decision: signature.Decline, Reason: reason,
				At: signature.Time(f.clock.Now()), Confirmation: of.Name}, nil)
			f.ok(err)
			f.ok(f.db.Decide(f.Context(), f.decision(id, ada, f.sign(ada, document))))
			entries, err := f.db.Activity(f.Context(), activity.Filter{CompanyID: f.company.ID}, activity.Cursor{}, 1)
			f.ok(err)
			logged := ""
			for _, c := range entries[0].Changes {
				if c.Field == "reason" {
					logged += "reason: " + c.After
				}
			}
			equal(f, "in the log", words(entries[0].Action, logged), words(activity.AuthorizationDeclined,
				map[bool]string{true: "reason: " + reason}[reason != ""]))
		}
	})
}

// An approval that became void does not count again, whatever comes back.
func TestVoid_DoesNotCountAgain(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.destructiveApproval()
		phone, ada, bea := f.fleet(1)[0], f.person("Ada", true), f.person("Bea", true)
		wipe := func() command.Command { return f.asking(phone, command.WipeCompanyData, "d1") }
		id := f.refusal(f.db, wipe()).ID
		user := func(change func(*account.User)) {
			f.ok(second(f.db.UpdateUser(f.Context(), f.company.ID, ada.ID, func(u *account.User) error { change(u); return nil })))
		}
		for name, both := range map[string][2]func(){
			"disabled": {func() { user(func(u *account.User) { u.Disabled = true }) },
				func() { user(func(u *account.User) { u.Disabled = false }) }},
			"right": {func() { user(func(u *account.User) { u.Rights &^= account.DestroyDevices }) },
				func() { user(func(u *account.User) { u.Rights = ada.Rights }) }},
			"age": {func() { f.setControls(func(c *access.Controls) { c.ApproverAge = time.Hour }) },
				func() { f.setControls(func(c *access.Controls) { c.ApproverAge = 0 }) }},
		} {
			f.ok(f.db.MailSent(f.Context(), f.company.ID, bea.ID, []string{id, "other"}, 0, f.clock.Now()))
			f.approve(id, ada)
			both[0]()
			both[1]()
			equal(f, name+": mailed, and not of what waits again", f.recipient(bea).Mailed, []string{"other"})
			if a := f.authorization(id); a.State != approval.Waiting {
				t.Errorf("%s: it is %s", name, a.State)
			}
			if r := f.refusal(f.db, wipe()); r.ID != id || r.Verdict != approval.Waits {
				t.Errorf("%s: %+v", name, r)
			}
		}
		entries, err := f.db.Activity(f.Context(), activity.Filter{CompanyID: f.company.ID, Area: "authorization"}, activity.Cursor{}, 50)
		f.ok(err)
		void := 0
		for _, e := range entries {
			if e.Action == activity.AuthorizationVoid {
				void++
			}
		}
		equal(f, "void approvals in the log", void, 3)
	})
}

// The list for devices with some policies is limited after those of others are left out.
func TestAuthorizations_OfPolicies(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.destructiveApproval()
		var asks, policies []string
		for _, name := range []string{"One", "Two"} {
			policies = append(policies, f.newPolicy(name).ID)
			device := f.enroll(name, policies[len(policies)-1])
			asks = append(asks, f.refusal(f.db, f.asking(device, command.WipeCompanyData, name)).ID)
			f.clock.Advance(time.Second)
		}
		for i, of := range [][]string{{policies[0]}, nil, {}} {
			all, err := f.db.Authorizations(f.Context(), f.company.ID, of, 1)
			f.ok(err)
			if got := len(all); got != min(1, 2-i) || got == 1 && all[0].ID != asks[i] {
				f.Errorf("of %v: got %+v, want %v", of, all, asks)
			}
		}
	})
}
