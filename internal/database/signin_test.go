package database_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/resource"
)

func (f *fixture) user(role account.Role) account.User {
	f.Helper()
	rights, _ := role.Rights()
	u := account.User{ID: resource.NewID(), CompanyID: f.company.ID, Email: resource.NewID() + "@acme.example", Name: "Ada", Role: role,
		Rights: rights, PasswordHash: "x", CreatedAt: f.clock.Now()}
	f.ok(f.db.CreateUser(f.Context(), u))
	return u
}

// A step is there once, for its kind, until its time is over.
func TestSignInStep_IsTakenOnce(t *testing.T) {
	withCompany(t, func(f *fixture) {
		u := f.user(account.Viewer)
		begin := func(kind account.PendingKind) access.SecretHash {
			token, err := account.Begin(f.Context(), f.db, account.PendingSignIn{Kind: kind, CompanyID: f.company.ID, UserID: u.ID,
				Data: json.RawMessage(`{"a":1}`), ExpiresAt: f.clock.Now().Add(time.Minute)})
			f.ok(err)
			return access.HashSecret(token)
		}
		token := begin(account.Invitation)
		_, err := f.db.TakeStep(f.Context(), token, account.SecondFactor)
		f.code(fault.NotFound, err)
		step, err := f.db.Step(f.Context(), token, account.Invitation)
		f.ok(err)
		if string(step.Data) != `{"a":1}` || step.UserID != u.ID {
			f.Errorf("read back %+v", step)
		}
		var wins sync.Map
		var racers sync.WaitGroup
		for i := range 8 {
			racers.Go(func() {
				if _, err := f.db.TakeStep(f.Context(), token, account.Invitation); err == nil {
					wins.Store(i, true)
				}
			})
		}
		racers.Wait()
		n := 0
		wins.Range(func(any, any) bool { n++; return true })
		if n != 1 {
			f.Errorf("%d took the step", n)
		}
		dropped, late := begin(account.Invitation), begin(account.LinkingIdentity)
		f.ok(f.db.DropSteps(f.Context(), u.ID, account.Invitation))
		_, err = f.db.TakeStep(f.Context(), dropped, account.Invitation)
		f.code(fault.NotFound, err)
		f.clock.Advance(time.Minute)
		_, err = f.db.TakeStep(f.Context(), late, account.LinkingIdentity)
		f.code(fault.NotFound, err)
	})
}

func TestPasskeys_AndRecoveryCodes(t *testing.T) {
	withCompany(t, func(f *fixture) {
		u := f.user(account.Viewer)
		p := account.Passkey{ID: "0a0b", UserID: u.ID, Name: "Key", Credential: json.RawMessage(`{}`), CreatedAt: f.clock.Now()}
		f.ok(f.db.AddPasskey(f.Context(), p))
		f.code(fault.Refused, f.db.AddPasskey(f.Context(), p))
		many := f.user(account.Viewer)
		for n := range account.MaxPasskeys + 1 {
			err := f.db.AddPasskey(f.Context(), account.Passkey{ID: fmt.Sprint("key ", n), UserID: many.ID,
				Credential: json.RawMessage(`{}`)})
			if added := err == nil; added != (n < account.MaxPasskeys) {
				f.Errorf("passkey %d: %v", n+1, err)
			}
		}
		p.LastUsedAt = f.clock.Now()
		f.ok(f.db.UsePasskey(f.Context(), p))
		codes := []access.SecretHash{access.HashSecret("a"), access.HashSecret("b")}
		f.ok(f.db.SetRecoveryCodes(f.Context(), u.ID, codes))
		f.ok(f.db.UseRecoveryCode(f.Context(), u.ID, codes[0]))
		f.code(fault.NotFound, f.db.UseRecoveryCode(f.Context(), u.ID, codes[0]))
		f.code(fault.NotFound, f.db.UseRecoveryCode(f.Context(), f.user(account.Viewer).ID, codes[1]))
		if n, err := f.db.RecoveryCodes(f.Context(), u.ID); err != nil || n != 1 {
			f.Errorf("%d codes left, %v", n, err)
		}
		if known, err := f.db.Passkeys(f.Context(), u.ID); err != nil || len(known) != 1 || known[0].LastUsedAt.IsZero() {
			f.Errorf("%+v, %v", known, err)
		}
		f.code(fault.NotFound, f.db.RemovePasskey(f.Context(), f.user(account.Viewer).ID, p.ID))
		f.ok(f.db.RemovePasskey(f.Context(), u.ID, p.ID))
		f.code(fault.Refused, f.db.UsePasskey(f.Context(), p)) // removed while its answer was checked
		if n, err := f.db.RecoveryCodes(f.Context(), u.ID); err != nil || n != 0 {
			f.Errorf("%d codes outlived the last passkey, %v", n, err)
		}
	})
}

// The operator takes all second factors from one user: sessions and steps that were begun with them end as well.
func TestPasskeys_AllOfAUserAreRemoved(t *testing.T) {
	withCompany(t, func(f *fixture) {
		lost, other := f.user(account.Admin), f.user(account.Admin)
		token := access.HashSecret("step")
		for _, u := range []account.User{lost, other} {
			f.ok(f.db.AddPasskey(f.Context(), account.Passkey{ID: "one of " + u.ID, UserID: u.ID, Name: "Phone", Credential: []byte(`{}`)}))
			f.ok(f.db.AddPasskey(f.Context(), account.Passkey{ID: "two of " + u.ID, UserID: u.ID, Name: "Key", Credential: []byte(`{}`)}))
			f.ok(f.db.SetRecoveryCodes(f.Context(), u.ID, []access.SecretHash{access.HashSecret(u.ID)}))
			f.ok(f.db.CreateSession(f.Context(), account.Session{ID: resource.NewID(), TokenHash: access.HashSecret(u.ID), UserID: u.ID,
				CompanyID: f.company.ID, PasswordHash: u.PasswordHash, CreatedAt: f.clock.Now(), SeenAt: f.clock.Now()}))
		}
		f.ok(f.db.SaveStep(f.Context(), token, account.PendingSignIn{Kind: account.SecondFactor, CompanyID: f.company.ID, UserID: lost.ID,
			PasswordHash: lost.PasswordHash, Data: json.RawMessage(`{}`), ExpiresAt: f.clock.Now().Add(time.Minute)}))
		_, err := f.db.RemovePasskeys(f.Context(), resource.NewID(), lost.ID)
		f.code(fault.NotFound, err)
		got, err := f.db.RemovePasskeys(f.Context(), f.company.ID, lost.ID)
		f.ok(err)
		equal(f, "user", got.Email, lost.Email)
		_, err = f.db.TakeStep(f.Context(), token, account.SecondFactor)
		f.code(fault.NotFound, err)
		for _, u := range []account.User{lost, other} {
			known, err := f.db.Passkeys(f.Context(), u.ID)
			f.ok(err)
			codes, err := f.db.RecoveryCodes(f.Context(), u.ID)
			f.ok(err)
			sessions, err := f.db.Sessions(f.Context(), u.ID)
			f.ok(err)
			left := map[bool][]int{true: {0, 0, 0}, false: {2, 1, 1}}[u.ID == lost.ID]
			equal(f, "passkeys, codes and sessions", []int{len(known), codes, len(sessions)}, left)
		}
		late := account.Session{ID: resource.NewID(), TokenHash: token, UserID: lost.ID, CompanyID: f.company.ID,
			PasswordHash: lost.PasswordHash, Method: account.ByPasskey, CreatedAt: f.clock.Now(), SeenAt: f.clock.Now()}
		f.code(fault.Unauthorized, f.db.CreateSession(f.Context(), late)) // the passkey was shown just before
		late.UserID = other.ID
		f.ok(f.db.CreateSession(f.Context(), late))
		removed, err := f.db.Activity(f.Context(), activity.Filter{CompanyID: f.company.ID, Action: activity.PasskeyRemoved},
			activity.Cursor{}, 10)
		f.ok(err)
		equal(f, "entries", len(removed), 2)
	})
}

func anybody(account.IdentityProvider, []account.User) error { return nil }

func TestProviders_AndIdentities(t *testing.T) {
	withCompany(t, func(f *fixture) {
		p := account.IdentityProvider{CompanyID: f.company.ID, Name: "ID", Issuer: "https://id.example", ClientID: "c",
			Secret:  []byte{1, 2},
			Domains: []string{"acme.example", "acme.test"}, Enabled: true, Role: account.Viewer}
		f.ok(f.db.SaveProvider(f.Context(), p, anybody))
		found, err := f.db.ProviderByDomain(f.Context(), "acme.test")
		f.ok(err)
		stored := p
		stored.UpdatedAt = found.UpdatedAt
		equal(f, "read back", found, stored)
		theirs := p
		theirs.CompanyID = f.newCompany("other").ID
		f.code(fault.Refused, f.db.SaveProvider(f.Context(), theirs, anybody))
		p.Enabled = false
		f.ok(f.db.SaveProvider(f.Context(), p, anybody))
		_, err = f.db.ProviderByDomain(f.Context(), "acme.test")
		f.code(fault.NotFound, err)
		u := f.user(account.Viewer)
		link := account.IdentityLink{CompanyID: f.company.ID, Issuer: p.Issuer, Subject: "s", UserID: u.ID}
		f.code(fault.Refused, f.db.LinkIdentity(f.Context(), link, nil, func(now account.IdentityProvider, of account.User) error {
			equal(f, "checked", words(now.Enabled, of.ID), words(false, u.ID))
			return fault.New(fault.Refused, "no")
		}))
		_, err = f.db.IdentityUser(f.Context(), f.company.ID, p.Issuer, "s")
		f.code(fault.NotFound, err)
		yes := func(account.IdentityProvider, account.User) error { return nil }
		f.ok(f.db.LinkIdentity(f.Context(), link, nil, yes))
		f.ok(f.db.LinkIdentity(f.Context(), link, nil, yes))
		link.UserID = f.user(account.Viewer).ID
		f.code(fault.Refused, f.db.LinkIdentity(f.Context(), link, nil, yes)) // the subject is another user
		if id, err := f.db.IdentityUser(f.Context(), f.company.ID, p.Issuer, "s"); err != nil || id != u.ID {
			f.Errorf("%s, %v", id, err)
		}
		_, err = f.db.IdentityUser(f.Context(), theirs.CompanyID, p.Issuer, "s")
		f.code(fault.NotFound, err)
		// Another subject of the issuer is another person, unless the user can prove to be the same.
		link.UserID, link.Subject = u.ID, "another"
		_, err = f.db.UpdateUser(f.Context(), f.company.ID, u.ID, func(u *account.User) error { u.PasswordHash = ""; return nil })
		f.ok(err)
		f.code(fault.Refused, f.db.LinkIdentity(f.Context(), link, nil, yes))
		f.ok(f.db.AddPasskey(f.Context(), account.Passkey{ID: "key", UserID: u.ID, Name: "Key", Credential: []byte(`{}`)}))
		f.ok(f.db.LinkIdentity(f.Context(), link, nil, yes))
	})
}

// savesFirst saves company sign-in when a user's change is decided, but not yet written.
type savesFirst struct {
	*database.DB
	save func()
}

func (s savesFirst) ForeignDomain(ctx context.Context, companyID, domain string) (bool, error) {
	s.save()
	return s.DB.ForeignDomain(ctx, companyID, domain)
}

func (s savesFirst) UpdateUserAmong(ctx context.Context, companyID, id string, change func(*account.User,
	account.Among) error) (account.User, error) {
	s.save()
	return s.DB.UpdateUserAmong(ctx, companyID, id, change)
}

// Rights are compared with company sign-in as it is when the user is written: no user gets
// more than the person who saved it has, also not while it is saved.
func TestUsers_RightsBesideCompanySignInThatIsSaved(t *testing.T) {
	withCompany(t, func(f *fixture) {
		admin, carl := f.user(account.Admin), f.user(account.Viewer)
		viewer, _ := account.Viewer.Rights()
		rights := viewer | account.ManageUsers | account.ManageCompany
		store := savesFirst{f.db, func() {
			f.ok(f.db.SaveProvider(f.Context(),
				account.IdentityProvider{CompanyID: f.company.ID, Name: "ID", Issuer: "https://id.example", ClientID: "c",
					Domains: []string{"acme.example"}, Enabled: true, Role: account.Viewer, SavedBy: "Clerk",
					SavedRights: rights}, anybody))
		}}
		users := account.Users{Store: store, Domains: store, Now: f.clock.Now}
		manager := account.Manager
		for name, change := range map[string]func() error{
			"invited": func() error {
				_, err := users.Invite(f.Context(), admin, account.NewUserRequest{Email: "boss@acme.example", Role: account.Admin})
				return err
			},
			"changed": func() error {
				_, err := users.Change(f.Context(), admin, carl.ID, account.UserChange{Role: &manager})
				return err
			},
			"by the operator": func() error {
				_, err := users.SetRole(f.Context(), f.company.ID, carl.ID, manager)
				return err
			},
		} {
			err := change()
			f.code(fault.Refused, err)
			if !strings.Contains(fmt.Sprint(err), "saved by Clerk") {
				f.Errorf("%s: got %v, want the person who saved company sign-in", name, err)
			}
			f.ok(f.db.SaveProvider(f.Context(), account.IdentityProvider{CompanyID: f.company.ID}, anybody))
		}
		if _, err := f.db.UserByEmail(f.Context(), "boss@acme.example"); fault.CodeOf(err) != fault.NotFound {
			f.Errorf("the invited user: got %v, want none", err)
		}
		_, err := users.SetRole(f.Context(), f.company.ID, carl.ID, account.Viewer)
		f.ok(err) // takes nothing that was not theirs
	})
}

// Two administrators who take each other's right at one moment: one stays.
func TestUser_OneAdministratorStays(t *testing.T) {
	withCompany(t, func(f *fixture) {
		a, b := f.user(account.Admin), f.user(account.Admin)
		f.user(account.Viewer)
		users := account.Users{Store: f.db, Domains: f.db, Now: f.clock.Now}
		yes := true
		var racers sync.WaitGroup
		for _, pair := range [][2]account.User{{a, b}, {b, a}} {
			racers.Go(func() {
				_, _ = users.Change(f.Context(), pair[0], pair[1].ID, account.UserChange{Disabled: &yes})
			})
		}
		racers.Wait()
		all, err := f.db.Users(f.Context(), f.company.ID)
		f.ok(err)
		left := 0
		for _, u := range all {
			if !u.Disabled && u.Rights.Has(account.ManageUsers) {
				left++
			}
		}
		if left != 1 {
			f.Errorf("%d administrators are left", left)
		}
	})
}

func TestKey_Usage(t *testing.T) {
	withCompany(t, func(f *fixture) {
		since := f.clock.Now()
		for range 3 {
			f.ok(f.db.RecordActivity(f.Context(), f.company.ID,
				activity.Event{Action: activity.Command("LOCK"), Actor: access.Actor{Kind: access.APIKey, ID: "k1"}}))
			f.clock.Advance(time.Hour)
		}
		counts, err := f.db.ActivityOfActors(f.Context(), f.company.ID, access.APIKey, since, time.Hour)
		f.ok(err)
		if len(counts["k1"]) != 3 || counts["k1"][1].Count != 1 || !counts["k1"][1].From.Equal(since.Add(time.Hour)) {
			f.Errorf("%+v", counts)
		}
		_, _, _, err = f.db.Spend(f.Context(), "API_KEY:k1", 10, time.Minute, f.clock.Now())
		f.ok(err)
		used, err := f.db.BudgetUsed(f.Context(), []string{"API_KEY:k1", "API_KEY:k2"}, time.Minute, f.clock.Now())
		f.ok(err)
		if used["API_KEY:k1"] != 1 || len(used) != 1 {
			f.Errorf("%v", used)
		}
	})
}
