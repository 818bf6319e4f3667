package database_test

import (
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/oauth"
	"github.com/musterhq/muster/internal/resource"
)

// person makes a company with one user.
func person(t *testing.T, db *database.DB, now time.Time, role account.Role) (company.Company, account.User) {
	t.Helper()
	id := resource.NewID()
	c := company.Company{ID: id, Slug: "c-" + id[:8], Name: "C", InactiveAfter: company.DefaultInactiveAfter, CreatedAt: now,
		Settings: access.Settings{OAuthConnections: true, DeviceCommands: true}}
	if err := db.CreateCompany(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	rights, _ := role.Rights()
	u := account.User{ID: resource.NewID(), CompanyID: id, Email: id[:8] + "@example.com", Name: "Ada", Role: role, Rights: rights,
		PasswordHash: "x", CreatedAt: now}
	if err := db.CreateUser(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	return c, u
}

func TestUser_StaysInTheCompany(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		db := e.open(t)
		now := e.clock.Now()
		c, u := person(t, db, now, account.Manager)
		other, _ := person(t, db, now, account.Viewer)

		got, err := db.UserByID(t.Context(), c.ID, u.ID)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "read back", got, u)
		if _, err := db.UserByID(t.Context(), other.ID, u.ID); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("another company's user: %v", err)
		}
		same := u
		same.ID = resource.NewID()
		if err := db.CreateUser(t.Context(), same); fault.CodeOf(err) != fault.Refused {
			t.Errorf("an address used twice: %v", err)
		}
		limited, err := db.UpdateUser(t.Context(), c.ID, u.ID, func(u *account.User) error {
			u.Policies = []string{"p1"}
			return nil
		})
		if got, _ := db.UserByEmail(t.Context(), u.Email); err != nil || len(limited.Policies) != 1 || len(got.Policies) != 1 {
			t.Errorf("limited to %v, read back %v, %v", limited.Policies, got.Policies, err)
		}
	})
}

func TestSession_EndsWithTheUser(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		db := e.open(t)
		now := e.clock.Now()
		c, u := person(t, db, now, account.Admin)
		hash := access.HashSecret("ms_token")
		s := account.Session{ID: resource.NewID(), TokenHash: hash, UserID: u.ID, CompanyID: c.ID, CreatedAt: now, SeenAt: now,
			ProvedAt: now, PasswordHash: u.PasswordHash}
		if err := db.CreateSession(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		got, user, principal, err := db.SessionByToken(t.Context(), hash)
		if err != nil || got.ID != s.ID || user.ID != u.ID {
			t.Fatalf("got %+v, %+v, %v", got, user, err)
		}
		if principal.Kind != access.User || principal.CompanySlug != c.Slug || !principal.Settings.DeviceCommands {
			t.Fatalf("principal %+v", principal)
		}
		if _, _, _, err := db.SessionByToken(t.Context(), access.HashSecret("other")); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("another token: %v", err)
		}
		if _, err := db.UpdateUser(t.Context(), c.ID, u.ID, func(u *account.User) error { u.Disabled = true; return nil }); err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := db.SessionByToken(t.Context(), hash); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("a disabled user's session: %v", err)
		}
		if left, err := db.Sessions(t.Context(), u.ID); err != nil || len(left) != 0 {
			t.Errorf("sessions left: %v, %v", left, err)
		}
	})
}

// consent is a person's consent to the client mc_1, with its code.
func consent(t *testing.T, db *database.DB, e *engine, scopes access.Permission) oauth.AuthorizationCode {
	t.Helper()
	c, u := person(t, db, e.clock.Now(), account.Operator)
	code := oauth.AuthorizationCode{CompanyID: c.ID, UserID: u.ID, ClientID: "mc_1", ClientName: "Client", Scopes: scopes,
		RedirectURI: "https://example.com/cb", CodeChallenge: "ch", Resource: "r"}
	return again(t, db, e, code, scopes)
}

// again is another consent of the same person to the same client.
func again(t *testing.T, db *database.DB, e *engine, code oauth.AuthorizationCode, scopes access.Permission) oauth.AuthorizationCode {
	t.Helper()
	code.Hash, code.Scopes, code.ExpiresAt = access.HashSecret(resource.NewID()), scopes, e.clock.Now().Add(time.Minute)
	if err := db.SaveCode(t.Context(), code); err != nil {
		t.Fatal(err)
	}
	return code
}

// redeem redeems a code and returns the tokens with their connection.
func redeem(t *testing.T, db *database.DB, e *engine, code oauth.AuthorizationCode) (oauth.Tokens, oauth.Connection) {
	t.Helper()
	tokens, _ := pair(e)
	o, err := db.RedeemCode(t.Context(), code.Hash, agree, tokens)
	if err != nil {
		t.Fatal(err)
	}
	return tokens, o
}

func pair(e *engine) (oauth.Tokens, string) {
	text := resource.NewID()
	now := e.clock.Now()
	return oauth.Tokens{Access: access.HashSecret("a" + text), AccessExpires: now.Add(15 * time.Minute),
		Refresh: access.HashSecret("r" + text), RefreshExpires: now.Add(time.Hour)}, text
}

func agree(oauth.AuthorizationCode) error { return nil }

func TestConnection_ScopesAreCutByTheUser(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		db := e.open(t)
		tokens, connection := redeem(t, db, e, consent(t, db, e, access.DevicesCommand|access.PoliciesWrite))
		got, principal, err := db.ConnectionByToken(t.Context(), tokens.Access)
		want := access.DevicesRead | access.DevicesCommand | access.PoliciesRead // an operator may not edit policies
		if err != nil || got.ID != connection.ID {
			t.Fatalf("got %+v, %v", got, err)
		}
		if principal.Kind != access.Connection || principal.ID != connection.ID || principal.Permissions != want {
			t.Fatalf("principal %+v, want permissions %v", principal, want)
		}
		if _, _, err := db.ConnectionByToken(t.Context(), tokens.Refresh); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("a refresh token as access token: %v", err)
		}
		update := func(change func(*oauth.Connection) error) {
			t.Helper()
			if _, err := db.UpdateConnection(t.Context(), connection.CompanyID, connection.ID, change); err != nil {
				t.Fatal(err)
			}
		}
		update(func(o *oauth.Connection) error { o.Frozen = true; return nil })
		if _, principal, err := db.ConnectionByToken(t.Context(), tokens.Access); err != nil ||
			access.Grant(principal, access.DevicesRead, access.NoGate) == nil {
			t.Errorf("a frozen connection is %+v, %v", principal, err)
		}
		update(func(o *oauth.Connection) error { o.Frozen, o.RevokedAt = false, e.clock.Now(); return nil })
		if _, _, err := db.ConnectionByToken(t.Context(), tokens.Access); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("a revoked connection: %v", err)
		}
	})
}

func TestCode_ReplayRevokes(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		db := e.open(t)
		code := consent(t, db, e, access.DevicesRead)
		var won atomic.Int32
		var winner atomic.Pointer[oauth.Tokens]
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				tokens, _ := pair(e)
				_, err := db.RedeemCode(t.Context(), code.Hash, agree, tokens)
				if err == nil {
					won.Add(1)
					winner.Store(&tokens)
				} else if fault.CodeOf(err) != fault.Refused {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if won.Load() != 1 {
			t.Fatalf("%d of 8 took the code", won.Load())
		}
		if _, _, err := db.ConnectionByToken(t.Context(), winner.Load().Access); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("after a replay the tokens still work: %v", err)
		}
	})
}

func TestCode_AndTokensExpire(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		db := e.open(t)
		code := consent(t, db, e, access.DevicesRead)
		tokens, _ := pair(e)
		if _, err := db.RedeemCode(t.Context(), code.Hash, func(oauth.AuthorizationCode) error {
			return fault.New(fault.Refused, "wrong verifier")
		}, tokens); fault.CodeOf(err) != fault.Refused {
			t.Errorf("a code with the wrong verifier: %v", err)
		}
		if _, err := db.RedeemCode(t.Context(), code.Hash, agree, tokens); err != nil {
			t.Fatalf("a wrong attempt spent the code: %v", err)
		}
		e.clock.Advance(15 * time.Minute)
		if _, _, err := db.ConnectionByToken(t.Context(), tokens.Access); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("an expired access token: %v", err)
		}
		e.clock.Advance(time.Hour)
		next, _ := pair(e)
		if _, err := db.RotateToken(t.Context(), tokens.Refresh, "mc_1", 0, next); fault.CodeOf(err) != fault.Refused {
			t.Errorf("an expired refresh token: %v", err)
		}
	})
}

// What can no longer be used is deleted, and only that: the tables stay bounded
// whatever clients register, consent to and refresh.
func TestOAuth_SweptWhenExpired(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		db := e.open(t)
		rows := func(table string) string {
			t.Helper()
			got, err := db.Text(t.Context(), `SELECT COUNT(*) FROM `+table)
			if err != nil {
				t.Fatal(err)
			}
			return got[0]
		}
		after := func(when string, by time.Duration, clients, connections, codes, tokens, sessions string) {
			t.Helper()
			e.clock.Advance(by)
			if err := db.Sweep(t.Context(), e.clock.Now()); err != nil {
				t.Fatal(err)
			}
			for table, want := range map[string]string{"oauth_clients": clients, "oauth_connections": connections,
				"oauth_codes": codes, "oauth_tokens": tokens, "sessions": sessions} {
				if got := rows(table); got != want {
					t.Errorf("%s: %s rows in %s, want %s", when, got, table, want)
				}
			}
		}
		now := e.clock.Now()
		for _, id := range []string{"mc_1", "mc_never"} {
			if err := db.SaveOAuthClient(t.Context(),
				oauth.Client{ID: id, Dynamic: true, CreatedAt: now, ExpiresAt: now.Add(time.Hour)}); err != nil {
				t.Fatal(err)
			}
		}
		code := consent(t, db, e, access.DevicesRead)
		if err := db.CreateSession(t.Context(), account.Session{ID: resource.NewID(), UserID: code.UserID, CompanyID: code.CompanyID,
			CreatedAt: now, SeenAt: now, PasswordHash: "x"}); err != nil {
			t.Fatal(err)
		}
		redeem(t, db, e, code)
		after("at once", 0, "2", "1", "1", "2", "1")
		after("the access token has expired", 20*time.Minute, "2", "1", "1", "1", "1")
		after("the registration without a consent has expired", 2*time.Hour, "1", "1", "1", "0", "1")
		after("two days on", 48*time.Hour, "1", "1", "0", "0", "1")
		after("a week on", 7*24*time.Hour, "1", "1", "0", "0", "0")
		after("a season on", 90*24*time.Hour, "0", "0", "0", "0", "0")
	})
}

// A person who is shut out cannot keep a connection going.
func TestToken_OfDisabledUserIsNotRefreshed(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		db := e.open(t)
		tokens, connection := redeem(t, db, e, consent(t, db, e, access.DevicesRead))
		next, _ := pair(e)
		if _, err := db.UpdateUser(t.Context(), connection.CompanyID, connection.UserID, func(u *account.User) error {
			u.Disabled = true
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if _, err := db.RotateToken(t.Context(), tokens.Refresh, "mc_1", 0, next); fault.CodeOf(err) != fault.Refused {
			t.Errorf("a disabled user's token is swapped: %v", err)
		}
		if _, _, err := db.ConnectionByToken(t.Context(), tokens.Access); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("a disabled user's token works: %v", err)
		}
	})
}

// A deleted user leaves nothing that is the user's alone. Whichever table refers
// to users must be among those that are emptied.
func TestDeleteUser_LeavesNothing(t *testing.T) {
	schema, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	refers := map[string]bool{"signin_steps": true}
	table := ""
	for line := range strings.Lines(string(schema)) {
		if name, ok := strings.CutPrefix(line, "CREATE TABLE "); ok {
			table = strings.Trim(strings.Fields(name)[0], `"`)
		}
		if strings.Contains(line, "REFERENCES users (id)") {
			refers[table] = true
		}
	}
	for table := range refers {
		t.Run(table, func(t *testing.T) {
			if !slices.ContainsFunc(database.OfUser(), func(s string) bool { return strings.HasPrefix(s, "DELETE FROM "+table+" ") }) {
				t.Errorf("table %s refers to users, and keeps what is of a deleted one", table)
			}
		})
	}
	withCompany(t, func(f *fixture) {
		user := account.User{ID: resource.NewID(), CompanyID: f.company.ID, Email: "gone@acme.example", Role: account.Viewer,
			CreatedAt: f.clock.Now()}
		f.ok(f.db.CreateUser(f.Context(), user))
		f.ok(f.db.CreateSession(f.Context(), account.Session{ID: resource.NewID(), UserID: user.ID, CompanyID: f.company.ID,
			CreatedAt: f.clock.Now()}))
		_, err := f.db.DeleteUser(f.Context(), resource.NewID(), user.ID)
		f.code(fault.NotFound, err)
		f.clock.Advance(time.Second)
		deleted, err := f.db.DeleteUser(f.Context(), f.company.ID, user.ID)
		f.ok(err)
		if deleted.Email != user.Email {
			f.Errorf("deleted %+v", deleted)
		}
		_, err = f.db.UserByEmail(f.Context(), user.Email)
		f.code(fault.NotFound, err)
		if log := f.log(activity.Filter{}); log[len(log)-1] != string(activity.UserDeleted) {
			f.Errorf("recorded %v", log)
		}
		f.ok(f.db.CreateUser(f.Context(), user)) // the address is free again
	})
}
