package database_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/apikey"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/oauth"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/resource"
)

// admitted is the principal of a key now.
func (f *fixture) admitted(k apikey.Key) access.Principal {
	f.Helper()
	_, p, err := f.db.KeyByPrefix(f.Context(), k.Prefix)
	f.ok(err)
	return p
}

// under is a context whose writes are bound to the key as it is now, and as again says
// later.
func (f *fixture) under(k apikey.Key, again func(context.Context) (access.Principal, error)) context.Context {
	return access.WithPermit(f.Context(), access.NewPermit(f.admitted(k), again))
}

func (f *fixture) moved(what string, err error) {
	f.Helper()
	if !errors.Is(err, access.ErrMoved) || errors.Is(err, operation.ErrDoubt) {
		f.Errorf("%s: error = %v, want ErrMoved, without a doubt", what, err)
	}
}

// settings changes the company's settings.
func (f *fixture) settings(change func(*access.Settings)) error {
	_, err := f.db.UpdateCompany(f.Context(), f.company.ID, company.Change(func(c *company.Company) { change(&c.Settings) }))
	return err
}

// Whatever may change what one of a company's callers may do refuses each write of a
// caller who was let in before.
func TestPermit_MovedBy(t *testing.T) {
	withCompany(t, func(f *fixture) {
		a := f.enroll("d1", f.newPolicy("p").ID)
		caller, _ := f.newKey("caller", access.All)
		other, _ := f.newKey("other", access.All)
		u := f.user(account.Manager)
		session := account.Session{ID: resource.NewID(), TokenHash: access.HashSecret("one"), UserID: u.ID, CompanyID: f.company.ID,
			CreatedAt: f.clock.Now(), SeenAt: f.clock.Now(), PasswordHash: u.PasswordHash}
		f.ok(f.db.CreateSession(f.Context(), session))
		user := func(change func(*account.User)) func() error {
			return func() error {
				_, err := f.db.UpdateUser(f.Context(), f.company.ID, u.ID, func(u *account.User) error { change(u); return nil })
				return err
			}
		}
		moves := []struct {
			what string
			by   func() error
		}{
			{"a stop", func() error {
				return f.settings(func(s *access.Settings) { s.Stop = access.Stop{At: f.clock.Now(), Reason: "because"} })
			}},
			{"resuming", func() error { return f.settings(func(s *access.Settings) { s.Stop = access.Stop{} }) }},
			{"a gate", func() error { return f.settings(func(s *access.Settings) { s.PolicyChanges = !s.PolicyChanges }) }},
			{"a control", func() error {
				return f.settings(func(s *access.Settings) { s.Controls.RequireReason = access.ReasonAll })
			}},
			{"the end of another key", func() error {
				_, err := f.db.RevokeKey(f.Context(), f.company.ID, other.ID, f.clock.Now())
				return err
			}},
			{"fewer rights", user(func(u *account.User) { u.Rights &^= account.DestroyDevices })},
			{"other policies", user(func(u *account.User) { u.Policies = []string{"p"} })},
			{"a password", user(func(u *account.User) { u.PasswordHash = "another" })},
			{"the end of a session", func() error {
				again := session
				again.ID, again.TokenHash, again.PasswordHash = resource.NewID(), access.HashSecret("two"), "another"
				return errors.Join(f.db.CreateSession(f.Context(), again), f.db.EndSession(f.Context(), u.ID, again.ID))
			}},
			{"a disabled user", user(func(u *account.User) { u.Disabled = true })},
			{"a deleted user", func() error { _, err := f.db.DeleteUser(f.Context(), f.company.ID, u.ID); return err }},
		}
		for _, move := range moves {
			ctx := f.under(caller, nil)
			destructive, plain := f.intent(a, command.WipeCompanyData), f.intent(a, command.Lock)
			reads := f.under(caller, nil)
			f.ok(f.db.PermitStands(reads))
			f.ok(move.by())
			f.moved(move.what, f.db.PermitStands(reads))
			f.ok(f.db.PermitStands(f.Context())) // no permit binds it
			for _, c := range []command.Command{destructive, plain} {
				_, begun, err := f.db.Begin(ctx, c, nil)
				f.moved(move.what, err)
				equal(f, "begun after "+move.what, begun, false)
				_, err = f.db.Command(f.Context(), c.ID)
				f.code(fault.NotFound, err)
			}
			k, _ := apikey.New(f.company.ID, "late", "operator", access.All, f.clock.Now(), time.Time{})
			f.moved(move.what, f.db.CreateKey(ctx, k))
			f.moved(move.what, f.db.RecordActivity(ctx, f.company.ID, activity.Event{Action: activity.ProvisioningIssued}))
			equal(f, "moves after "+move.what, access.PermitOf(ctx).Moves() > 0, true)
			equal(f, "used after "+move.what, access.PermitOf(ctx).Used(), false)
		}
	})
}

// The same for what ends or narrows an application's connection.
func TestPermit_MovedByConnections(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		db := e.open(t)
		code := consent(t, db, e, access.DevicesRead|access.DevicesCommand)
		tokens, connection := redeem(t, db, e, code)
		narrow := func(change func(*oauth.Connection)) func() error {
			return func() error {
				_, err := db.UpdateConnection(t.Context(), code.CompanyID, connection.ID, func(o *oauth.Connection) error {
					change(o)
					return nil
				})
				return err
			}
		}
		for _, move := range []struct {
			what string
			by   func() error
		}{
			{"fewer scopes", narrow(func(o *oauth.Connection) { o.Scopes = access.DevicesRead })},
			{"freezing", narrow(func(o *oauth.Connection) { o.Frozen = true })},
			{"a token given back", func() error { return db.RevokeToken(t.Context(), tokens.Refresh, code.ClientID) }},
		} {
			_, p, err := db.ConnectionByToken(t.Context(), tokens.Access)
			if err != nil {
				t.Fatal(err)
			}
			ctx := access.WithPermit(t.Context(), access.NewPermit(p, nil))
			if err := move.by(); err != nil {
				t.Fatal(err)
			}
			err = db.RecordActivity(ctx, code.CompanyID, activity.Event{Action: activity.ProvisioningIssued})
			if !errors.Is(err, access.ErrMoved) {
				t.Errorf("after %s: %v, want ErrMoved", move.what, err)
			}
		}
	})
}

// What changes nothing of what callers may do refuses no caller.
func TestPermit_StandsBeside(t *testing.T) {
	withCompany(t, func(f *fixture) {
		a := f.enroll("d1", f.newPolicy("p").ID)
		k, _ := f.newKey("caller", access.All)
		u := f.user(account.Manager)
		ctx := f.under(k, nil)
		f.newKey("another", access.All)
		f.begin(a, command.Lock)
		f.ok(f.db.CreateSession(f.Context(), account.Session{ID: "s", UserID: u.ID, CompanyID: f.company.ID, CreatedAt: f.clock.Now(),
			SeenAt: f.clock.Now(), PasswordHash: u.PasswordHash}))
		_, err := f.db.UpdateCompany(f.Context(), f.company.ID, func(c *company.Company) error { c.Name = "Another"; return nil })
		f.ok(err)
		_, begun, err := f.db.Begin(ctx, f.intent(a, command.Lock), nil)
		f.ok(err)
		equal(f, "begun", begun, true)
		equal(f, "used", access.PermitOf(ctx).Used(), true)
	})
}

// A caller whose own rights did not move writes at the second attempt; one whose rights
// did is to be decided about again.
func TestPermit_Renewed(t *testing.T) {
	withCompany(t, func(f *fixture) {
		a := f.enroll("d1", f.newPolicy("p").ID)
		k, _ := f.newKey("caller", access.All)
		other, _ := f.newKey("other", access.All)
		renewals := 0
		ctx := f.under(k, func(context.Context) (access.Principal, error) { renewals++; return f.admitted(k), nil })
		_, err := f.db.RevokeKey(f.Context(), f.company.ID, other.ID, f.clock.Now())
		f.ok(err)
		_, begun, err := f.db.Begin(ctx, f.intent(a, command.Lock), nil)
		f.ok(err)
		equal(f, "begun", begun, true)
		_, _, err = f.db.Begin(ctx, f.intent(a, command.WipeCompanyData), nil)
		f.ok(err)
		equal(f, "renewals", renewals, 1)
		f.ok(f.settings(func(s *access.Settings) { s.PolicyChanges = !s.PolicyChanges }))
		_, _, err = f.db.Begin(ctx, f.intent(a, command.Lock), nil)
		f.moved("a caller whose gates moved", err)

		// It moves again at each attempt.
		ctx = f.under(k, func(context.Context) (access.Principal, error) {
			p := f.admitted(k)
			p.Version--
			return p, nil
		})
		f.ok(f.settings(func(s *access.Settings) { s.Provisioning = !s.Provisioning }))
		f.ok(f.settings(func(s *access.Settings) { s.Provisioning = !s.Provisioning }))
		_, _, err = f.db.Begin(ctx, f.intent(a, command.Lock), nil)
		f.moved("a permit that moves twice", err)
		equal(f, "counted", access.PermitOf(ctx).Moves(), 1)
	})
}

// A caller who changes what others may do goes on: the rest of the same request is bound
// to what they made of it.
func TestPermit_OwnChange(t *testing.T) {
	withCompany(t, func(f *fixture) {
		a := f.enroll("d1", f.newPolicy("p").ID)
		k, _ := f.newKey("caller", access.All)
		other, _ := f.newKey("other", access.All)
		ctx := f.under(k, nil)
		_, err := f.db.RevokeKey(ctx, f.company.ID, other.ID, f.clock.Now())
		f.ok(err)
		_, _, err = f.db.Begin(ctx, f.intent(a, command.Lock), nil)
		f.ok(err)

		last, _ := f.newKey("last", access.All)
		f.ok(f.settings(func(s *access.Settings) { s.PolicyChanges = !s.PolicyChanges }))
		_, err = f.db.RevokeKey(ctx, f.company.ID, last.ID, f.clock.Now())
		f.moved("a change after another's", err)
		equal(f, "revoked", f.admitted(last).ID, last.ID)
	})
}

// A key that runs out writes nothing more, by the time of the database's clock.
func TestPermit_Ends(t *testing.T) {
	withCompany(t, func(f *fixture) {
		a := f.enroll("d1", f.newPolicy("p").ID)
		k, _ := apikey.New(f.company.ID, "short", "operator", access.All, f.clock.Now(), f.clock.Now().Add(time.Minute))
		f.ok(f.db.CreateKey(f.Context(), k))
		ctx := f.under(k, nil)
		f.clock.Advance(time.Minute - time.Millisecond)
		_, _, err := f.db.Begin(ctx, f.intent(a, command.Lock), nil)
		f.ok(err)
		f.clock.Advance(time.Millisecond)
		for _, kind := range []command.Type{command.Lock, command.WipeCompanyData} {
			_, _, err = f.db.Begin(ctx, f.intent(a, kind), nil)
			f.moved("an expired key", err)
		}
		f.moved("an expired key", f.db.PermitStands(f.under(k, nil)))
	})
}

// The repetition of a request that recorded its command is answered by that, whatever
// moved since; what follows from a record is not bound.
func TestPermit_Recorded(t *testing.T) {
	withCompany(t, func(f *fixture) {
		a := f.enroll("d1", f.newPolicy("p").ID)
		k, _ := f.newKey("caller", access.All)
		ctx := f.under(k, nil)
		c := f.intent(a, command.Lock)
		c.IdempotencyRef = "ref"
		_, begun, err := f.db.Begin(ctx, c, nil)
		f.ok(err)
		equal(f, "begun", begun, true)
		f.stop(access.Stop{At: f.clock.Now(), Reason: "because"})
		repetition := f.intent(a, command.Lock)
		repetition.IdempotencyRef = "ref"
		stored, begun, err := f.db.Begin(ctx, repetition, nil)
		f.ok(err)
		equal(f, "begun twice", begun, false)
		equal(f, "the command", stored.ID, c.ID)
		_, taken, err := f.db.Advance(access.Settling(ctx), c.ID,
			command.Transition{From: []command.State{command.Prepared}, To: command.Failed, Outcome: "no"})
		f.ok(err)
		equal(f, "settled", taken, true)
	})
}

// A user who is disabled while they sign in gets no session, which would live on when
// they are enabled again.
func TestCreateSession_DisabledUser(t *testing.T) {
	withCompany(t, func(f *fixture) {
		u := f.user(account.Manager)
		_, err := f.db.UpdateUser(f.Context(), f.company.ID, u.ID, func(u *account.User) error { u.Disabled = true; return nil })
		f.ok(err)
		f.code(fault.Unauthorized, f.db.CreateSession(f.Context(), account.Session{ID: "s", UserID: u.ID, CompanyID: f.company.ID,
			CreatedAt: f.clock.Now(), SeenAt: f.clock.Now(), PasswordHash: u.PasswordHash}))
	})
}

// While changes in the portal are stopped, no invitation is accepted, and it can be
// accepted afterwards.
func TestAcceptInvitation_DuringAStop(t *testing.T) {
	withCompany(t, func(f *fixture) {
		u := account.User{ID: resource.NewID(), CompanyID: f.company.ID, Email: "new@acme.test", Name: "New", Role: account.Viewer,
			CreatedAt: f.clock.Now()}
		f.ok(f.db.CreateUser(f.Context(), u))
		token := access.HashSecret("an invitation")
		_, err := f.db.BeginInvitation(f.Context(), token,
			account.PendingSignIn{Kind: account.Invitation, CompanyID: f.company.ID, UserID: u.ID,
				Data: []byte(`{}`), ExpiresAt: f.clock.Now().Add(time.Hour)})
		f.ok(err)
		f.stop(access.Stop{At: f.clock.Now(), Reason: "because", All: true})
		_, err = f.db.AcceptInvitation(f.Context(), token, "hash", account.Inviter{})
		f.code(fault.Forbidden, err)
		f.stop(access.Stop{})
		accepted, err := f.db.AcceptInvitation(f.Context(), token, "hash", account.Inviter{})
		f.ok(err)
		equal(f, "accepted", accepted.ID, u.ID)
	})
}

// An invitation ends with the right of who made it, so that a thief of an account does not
// come back by one after the account was disabled.
func TestAcceptInvitation_InviterLostTheRight(t *testing.T) {
	withCompany(t, func(f *fixture) {
		for name, lose := range map[string]func(u *account.User){
			"disabled": func(u *account.User) { u.Disabled = true },
			"role":     func(u *account.User) { u.Role, u.Rights = account.Viewer, 0 },
			"less":     func(u *account.User) { u.Role, u.Rights = "", account.ManageUsers },
		} {
			f.user(account.Admin) // one stays
			inviter := f.user(account.Admin)
			by := account.Inviter{ID: inviter.ID, Name: inviter.Name}
			u := account.User{ID: resource.NewID(), CompanyID: f.company.ID, Email: name + "@acme.test", Name: "New",
				Role: account.Viewer, CreatedAt: f.clock.Now()}
			u.Rights, _ = u.Role.Rights()
			f.ok(f.db.CreateUser(f.Context(), u))
			token := access.HashSecret(name)
			_, err := f.db.BeginInvitation(f.Context(), token, account.PendingSignIn{Kind: account.Invitation, CompanyID: f.company.ID,
				UserID: u.ID, Data: []byte(`{}`), ExpiresAt: f.clock.Now().Add(time.Hour)})
			f.ok(err)
			_, err = f.db.UpdateUser(f.Context(), f.company.ID, inviter.ID, func(u *account.User) error { lose(u); return nil })
			f.ok(err)
			_, err = f.db.AcceptInvitation(f.Context(), token, "hash", by)
			f.code(fault.Refused, err)
			link := account.IdentityLink{CompanyID: f.company.ID, UserID: u.ID, Issuer: "i", Subject: "s"}
			_, err = f.db.LinkInvited(f.Context(), token, link, by, func(account.IdentityProvider, account.User) error { return nil })
			f.code(fault.Refused, err)
			_, err = f.db.AcceptInvitation(f.Context(), token, "hash", account.Inviter{Name: "from before the upgrade"})
			f.ok(err)
		}
	})
}
