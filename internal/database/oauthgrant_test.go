package database_test

import (
	"errors"
	"fmt"
	"slices"
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

// allowed is what an access token may do; false if it is refused.
func allowed(t *testing.T, db *database.DB, token access.SecretHash) (access.Permission, bool) {
	t.Helper()
	_, p, err := db.ConnectionByToken(t.Context(), token)
	if err != nil && fault.CodeOf(err) != fault.NotFound {
		t.Fatal(err)
	}
	return p.Permissions, err == nil
}

func wantAllowed(t *testing.T, db *database.DB, what string, token access.SecretHash, want access.Permission) {
	t.Helper()
	if got, live := allowed(t, db, token); !live || got != want {
		t.Errorf("%s may %s (live: %v), want %s", what, got, live, want)
	}
}

func wantEnded(t *testing.T, db *database.DB, what string, token access.SecretHash) {
	t.Helper()
	if got, live := allowed(t, db, token); live {
		t.Errorf("%s may still %s", what, got)
	}
}

func TestConsent_ActsWhenItsCodeIsRedeemed(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		db := e.open(t)
		first := consent(t, db, e, access.DevicesRead)
		if all, err := db.Connections(t.Context(), first.CompanyID); err != nil || len(all) != 0 {
			t.Errorf("a code that is not redeemed made %d connections, %v", len(all), err)
		}
		tokens, connection := redeem(t, db, e, first)
		wide := again(t, db, e, first, access.DevicesCommand|access.DevicesCommandDestructive)
		wantAllowed(t, db, "the first sign-in after a second consent", tokens.Access, access.DevicesRead)
		e.clock.Advance(time.Hour)
		if _, err := db.RedeemCode(t.Context(), wide.Hash, agree, oauth.Tokens{}); fault.CodeOf(err) != fault.Refused {
			t.Errorf("an expired code: %v", err)
		}
		all, err := db.Connections(t.Context(), first.CompanyID)
		if err != nil || len(all) != 1 || all[0].ID != connection.ID || all[0].Scopes != access.DevicesRead {
			t.Errorf("after a code that was never redeemed: %+v, %v", all, err)
		}
	})
}

// While changes in the portal are stopped, a code connects no application. A stop of automation alone leaves that to the person.
func TestConsent_WaitsWhileChangesAreStopped(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		db := e.open(t)
		code := consent(t, db, e, access.DevicesRead)
		stop := func(s access.Stop) {
			t.Helper()
			if _, err := db.UpdateCompany(t.Context(), code.CompanyID,
				company.Change(func(c *company.Company) { c.Settings.Stop = s })); err != nil {
				t.Fatal(err)
			}
		}
		recorded := func() (n int) {
			t.Helper()
			entries, err := db.Activity(t.Context(), activity.Filter{CompanyID: code.CompanyID}, activity.Cursor{}, 100)
			if err != nil {
				t.Fatal(err)
			}
			for _, entry := range entries {
				if entry.Action == activity.ConnectionGranted {
					n++
				}
			}
			return n
		}
		stop(access.Stop{At: e.clock.Now(), Reason: "a stolen account", All: true})
		tokens, _ := pair(e)
		if _, err := db.RedeemCode(t.Context(), code.Hash, agree, tokens); fault.CodeOf(err) != fault.Forbidden {
			t.Errorf("a code during the stop: %v", err)
		}
		wantEnded(t, db, "a token of the stop", tokens.Access)
		if all, err := db.Connections(t.Context(), code.CompanyID); err != nil || len(all) != 0 || recorded() != 0 {
			t.Errorf("connections made during the stop: %+v, %v, %d recorded", all, err, recorded())
		}
		stop(access.Stop{At: e.clock.Now(), Reason: "a stolen key"})
		tokens, _ = redeem(t, db, e, code)
		wantAllowed(t, db, "the same code, with automation alone stopped", tokens.Access, access.DevicesRead)
		if n := recorded(); n != 1 {
			t.Errorf("grants recorded: %d, want 1", n)
		}
	})
}

// A connection that was revoked stays in the lists for 90 days, however old it is.
func TestConnection_StaysAfterItsEnd(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		db := e.open(t)
		_, connection := redeem(t, db, e, consent(t, db, e, access.DevicesRead))
		kept := func(after time.Duration, want int) {
			t.Helper()
			e.clock.Advance(after)
			err := db.Sweep(t.Context(), e.clock.Now())
			if all, other := db.Connections(t.Context(), connection.CompanyID); errors.Join(err, other) != nil || len(all) != want {
				t.Errorf("%s later: %d connections, want %d; %v, %v", after, len(all), want, err, other)
			}
		}
		e.clock.Advance(91 * 24 * time.Hour)
		change(t, db, connection, func(o *oauth.Connection) { o.RevokedAt = e.clock.Now() })
		kept(time.Minute, 1)
		kept(89*24*time.Hour, 1)
		kept(2*24*time.Hour, 0)
	})
}

// A connection that was frozen stays frozen when its user connects the same client again, however it ended and however long
// ago, until it is thawed. Another client's connection is another one.
func TestConsent_AfterAFrozenConnection(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		db := e.open(t)
		code := consent(t, db, e, access.DevicesRead)
		tokens, connection := redeem(t, db, e, code)
		frozen := func(what string, want bool) {
			t.Helper()
			if _, p, err := db.ConnectionByToken(t.Context(), tokens.Access); err != nil || p.Frozen != want {
				t.Errorf("%s: frozen %v, want %v; %v", what, p.Frozen, want, err)
			}
		}
		connect := func() {
			t.Helper()
			e.clock.Advance(time.Second)
			tokens, connection = redeem(t, db, e, again(t, db, e, code, access.DevicesRead))
		}
		frozen("the first", false)
		change(t, db, connection, func(o *oauth.Connection) { o.Frozen = true })
		connect()
		frozen("with another grant", true)
		change(t, db, connection, func(o *oauth.Connection) { o.RevokedAt = e.clock.Now() })
		connect()
		frozen("after a person revoked it", true)
		if err := db.RevokeToken(t.Context(), tokens.Refresh, code.ClientID); err != nil {
			t.Fatal(err)
		}
		e.clock.Advance(91 * 24 * time.Hour)
		if err := db.Sweep(t.Context(), e.clock.Now()); err != nil {
			t.Fatal(err)
		}
		if all, err := db.Connections(t.Context(), code.CompanyID); err != nil || len(all) != 1 || all[0].ID != connection.ID {
			t.Errorf("kept %+v, %v, want the last one", all, err)
		}
		connect()
		frozen("91 days after the application revoked it", true)
		change(t, db, connection, func(o *oauth.Connection) { o.Frozen = false })
		change(t, db, connection, func(o *oauth.Connection) { o.RevokedAt = e.clock.Now() })
		connect()
		frozen("after it was thawed", false)
		change(t, db, connection, func(o *oauth.Connection) { o.Frozen = true })
		code.ClientID = "mc_2"
		connect()
		frozen("another client's", false)
	})
}

// Pages that are open are told that a connection ended, because what it asked for waits for no person any more.
func TestConnection_ItsEndIsTold(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		db := e.open(t)
		for what, ends := range map[string]func(oauth.AuthorizationCode, oauth.Tokens) error{
			"the application revokes": func(code oauth.AuthorizationCode, tokens oauth.Tokens) error {
				return db.RevokeToken(t.Context(), tokens.Refresh, code.ClientID)
			},
			"a code was used twice": func(code oauth.AuthorizationCode, _ oauth.Tokens) error {
				next, _ := pair(e)
				if _, err := db.RedeemCode(t.Context(), code.Hash, agree, next); fault.CodeOf(err) != fault.Refused {
					return fmt.Errorf("the second use: %w", err)
				}
				return nil
			},
			"its user is deleted": func(code oauth.AuthorizationCode, _ oauth.Tokens) error {
				_, err := db.DeleteUser(t.Context(), code.CompanyID, code.UserID)
				return err
			},
		} {
			code := consent(t, db, e, access.DevicesRead)
			tokens, _ := redeem(t, db, e, code)
			var told atomic.Bool
			stop := db.Listen(resource.Changes, func(ids []string) {
				if slices.Contains(ids, resource.Change(code.CompanyID, "attention", "")) {
					told.Store(true)
				}
			})
			if err := ends(code, tokens); err != nil {
				t.Errorf("%s: %v", what, err)
			}
			stop()
			if !told.Load() {
				t.Errorf("%s: pages that are open are not told", what)
			}
		}
	})
}

func TestConsent_EachHasItsOwnScopes(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		db := e.open(t)
		code := consent(t, db, e, access.DevicesRead)
		laptop, one := redeem(t, db, e, code)
		desk, two := redeem(t, db, e, again(t, db, e, code, access.PoliciesRead))
		if one.ID != two.ID || one.GrantID == two.GrantID {
			t.Errorf("two consents: connections %s and %s, grants %s and %s", one.ID, two.ID, one.GrantID, two.GrantID)
		}
		wantAllowed(t, db, "the laptop", laptop.Access, access.DevicesRead)
		wantAllowed(t, db, "the desk", desk.Access, access.PoliciesRead)
		if scopes, err := db.ConsentedScopes(t.Context(), code.UserID, code.ClientID); err != nil ||
			scopes != access.DevicesRead|access.PoliciesRead {
			t.Errorf("consented: %s, %v", scopes, err)
		}
		if err := db.RevokeToken(t.Context(), laptop.Refresh, code.ClientID); err != nil {
			t.Fatal(err)
		}
		wantEnded(t, db, "the laptop that signed out", laptop.Access)
		wantAllowed(t, db, "the desk after the laptop signed out", desk.Access, access.PoliciesRead)
		// A person's change of the connection reaches each grant and keeps the rest.
		third, _ := redeem(t, db, e, again(t, db, e, code, access.PoliciesRead|access.DevicesCommand|access.DevicesRead))
		change(t, db, one, func(o *oauth.Connection) { o.Scopes = access.PoliciesRead | access.DevicesRead })
		wantAllowed(t, db, "the desk after commands were removed", desk.Access, access.PoliciesRead)
		wantAllowed(t, db, "the third after commands were removed", third.Access, access.PoliciesRead|access.DevicesRead)
		change(t, db, one, func(o *oauth.Connection) { o.Scopes |= access.DevicesCommand })
		wantAllowed(t, db, "the desk after commands were added", desk.Access, access.PoliciesRead|access.DevicesCommand|access.DevicesRead)
	})
}

func change(t *testing.T, db *database.DB, o oauth.Connection, by func(*oauth.Connection)) {
	t.Helper()
	if _, err := db.UpdateConnection(t.Context(), o.CompanyID, o.ID, func(o *oauth.Connection) error { by(o); return nil }); err != nil {
		t.Fatal(err)
	}
}

func TestRevoke_EndsAllGrantsAndPendingCodes(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		db := e.open(t)
		code := consent(t, db, e, access.DevicesRead)
		one, connection := redeem(t, db, e, code)
		two, _ := redeem(t, db, e, again(t, db, e, code, access.DevicesRead))
		pending := again(t, db, e, code, access.DevicesRead)
		change(t, db, connection, func(o *oauth.Connection) { o.RevokedAt = e.clock.Now() })
		wantEnded(t, db, "the first sign-in", one.Access)
		wantEnded(t, db, "the second sign-in", two.Access)
		next, _ := pair(e)
		if _, err := db.RedeemCode(t.Context(), pending.Hash, agree, next); fault.CodeOf(err) != fault.Refused {
			t.Errorf("a code from before the revocation: %v", err)
		}
		if _, err := db.RotateToken(t.Context(), two.Refresh, code.ClientID, 0, next); fault.CodeOf(err) != fault.Refused {
			t.Errorf("a refresh token of a revoked connection: %v", err)
		}
	})
}

// A code that is used twice at one moment, before there is a connection, ends all that it gave.
func TestRedeem_TwiceAtOnce(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		db := e.open(t)
		code := consent(t, db, e, access.DevicesRead)
		for range 5 {
			var both sync.WaitGroup
			var tokens [2]oauth.Tokens
			for n := range tokens {
				tokens[n], _ = pair(e)
				both.Go(func() {
					if _, err := db.RedeemCode(t.Context(), code.Hash, agree, tokens[n]); err != nil && fault.CodeOf(err) != fault.Refused {
						t.Error(err)
					}
				})
			}
			both.Wait()
			for _, one := range tokens {
				wantEnded(t, db, "a token of a code that was used twice", one.Access)
			}
			all, err := db.Connections(t.Context(), code.CompanyID)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range all {
				if o.RevokedAt.IsZero() || o.Grants != 0 {
					t.Errorf("a connection is left: %+v", o)
				}
			}
			code = again(t, db, e, code, access.DevicesRead)
		}
	})
}

// What narrows a connection also ends consents from before that are not redeemed yet: they would
// widen it again.
func TestNarrow_EndsPendingCodes(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		db := e.open(t)
		code := consent(t, db, e, access.DevicesRead|access.DevicesCommand)
		tokens, connection := redeem(t, db, e, code)
		pending := again(t, db, e, code, access.DevicesRead|access.DevicesCommand)
		change(t, db, connection, func(o *oauth.Connection) { o.Scopes = access.DevicesRead })
		next, _ := pair(e)
		if _, err := db.RedeemCode(t.Context(), pending.Hash, agree, next); fault.CodeOf(err) != fault.Refused {
			t.Errorf("a code from before the connection was narrowed: %v", err)
		}
		wantAllowed(t, db, "the connection", tokens.Access, access.DevicesRead)
		later, _ := redeem(t, db, e, again(t, db, e, code, access.DevicesRead))
		wantAllowed(t, db, "a consent of after", later.Access, access.DevicesRead)
	})
}

// A connection that was narrowed still ends when the code that it was made with is used again.
func TestNarrow_KeepsRedeemedCodes(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		db := e.open(t)
		code := consent(t, db, e, access.DevicesRead|access.DevicesCommand)
		tokens, connection := redeem(t, db, e, code)
		change(t, db, connection, func(o *oauth.Connection) { o.Scopes = access.DevicesRead })
		wantAllowed(t, db, "the connection", tokens.Access, access.DevicesRead)
		next, _ := pair(e)
		if _, err := db.RedeemCode(t.Context(), code.Hash, agree, next); fault.CodeOf(err) != fault.Refused {
			t.Errorf("a code that is used again: %v", err)
		}
		wantEnded(t, db, "a token of a code that was used twice", tokens.Access)
	})
}

// The connections of a user who is disabled end: they do not work again if the user is enabled.
func TestDisable_EndsConnections(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		db := e.open(t)
		code := consent(t, db, e, access.DevicesRead)
		tokens, connection := redeem(t, db, e, code)
		pending := again(t, db, e, code, access.DevicesRead)
		disabled := func(now bool) {
			t.Helper()
			if _, err := db.UpdateUser(t.Context(), code.CompanyID, code.UserID, func(u *account.User) error {
				u.Disabled = now
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		disabled(true)
		wantEnded(t, db, "a disabled user's connection", tokens.Access)
		disabled(false)
		wantEnded(t, db, "the connection of a user who was disabled", tokens.Access)
		next, _ := pair(e)
		if _, err := db.RotateToken(t.Context(), tokens.Refresh, code.ClientID, 0, next); fault.CodeOf(err) != fault.Refused {
			t.Errorf("a refresh token from before: %v", err)
		}
		if _, err := db.RedeemCode(t.Context(), pending.Hash, agree, next); fault.CodeOf(err) != fault.Refused {
			t.Errorf("a code from before: %v", err)
		}
		all, err := db.Connections(t.Context(), code.CompanyID)
		if err != nil || len(all) != 1 || all[0].ID != connection.ID || all[0].RevokedAt.IsZero() {
			t.Errorf("connections %+v, %v", all, err)
		}
		fresh, _ := redeem(t, db, e, again(t, db, e, code, access.DevicesRead))
		wantAllowed(t, db, "a consent of after", fresh.Access, access.DevicesRead)
	})
}

// The connections of a user whom an older program disabled, which left them, end when the user is enabled.
func TestEnable_EndsConnectionsFromBefore(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		db := e.open(t)
		code := consent(t, db, e, access.DevicesRead)
		tokens, _ := redeem(t, db, e, code)
		pending := again(t, db, e, code, access.DevicesRead)
		if err := db.Write(t.Context(), nil, `UPDATE users SET disabled = TRUE WHERE id = '`+code.UserID+`'`); err != nil {
			t.Fatal(err)
		}
		if _, err := db.UpdateUser(t.Context(), code.CompanyID, code.UserID, func(u *account.User) error {
			u.Disabled = false
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		wantEnded(t, db, "the connection of a user who was disabled", tokens.Access)
		next, _ := pair(e)
		if _, err := db.RedeemCode(t.Context(), pending.Hash, agree, next); fault.CodeOf(err) != fault.Refused {
			t.Errorf("a code from before: %v", err)
		}
	})
}

func TestGrants_TheOldestUnusedOfElevenEnds(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		db := e.open(t)
		code := consent(t, db, e, access.DevicesRead)
		var tokens []oauth.Tokens
		first, connection := redeem(t, db, e, code)
		for range oauth.MaxGrants - 1 {
			e.clock.Advance(time.Second)
			next, _ := redeem(t, db, e, again(t, db, e, code, access.DevicesRead))
			tokens = append(tokens, next)
		}
		e.clock.Advance(time.Minute)
		if err := db.TouchConnection(t.Context(), connection.ID, connection.GrantID); err != nil {
			t.Fatal(err)
		}
		newest, o := redeem(t, db, e, again(t, db, e, code, access.DevicesRead))
		wantEnded(t, db, "the grant that was unused for longest", tokens[0].Access)
		for what, token := range map[string]oauth.Tokens{"the first, which is in use": first, "the third": tokens[1],
			"the newest": newest} {
			wantAllowed(t, db, what, token.Access, access.DevicesRead)
		}
		if all, err := db.Connections(t.Context(), o.CompanyID); err != nil || len(all) != 1 || all[0].Grants != oauth.MaxGrants {
			t.Errorf("after eleven consents: %+v, %v", all, err)
		}
	})
}

func TestRefresh_ParallelRequestsEachGetTokens(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		db := e.open(t)
		code := consent(t, db, e, access.DevicesRead)
		tokens, _ := redeem(t, db, e, code)
		swap := func(refresh access.SecretHash) (oauth.Tokens, error) {
			next, _ := pair(e)
			_, err := db.RotateToken(t.Context(), refresh, code.ClientID, 0, next)
			return next, err
		}
		var all sync.WaitGroup
		got := make([]oauth.Tokens, 1+oauth.MaxReuses)
		for i := range got {
			all.Go(func() {
				var err error
				if got[i], err = swap(tokens.Refresh); err != nil {
					t.Errorf("refresh %d: %v", i, err)
				}
			})
		}
		all.Wait()
		for _, pair := range got {
			wantAllowed(t, db, "a token of a parallel refresh", pair.Access, access.DevicesRead)
		}
		if _, err := db.RotateToken(t.Context(), tokens.Refresh, "mc_other", 0, got[0]); fault.CodeOf(err) != fault.Refused {
			t.Errorf("another client's refresh: %v", err)
		}
		wantAllowed(t, db, "a token after another client's refresh", got[0].Access, access.DevicesRead)
		if _, err := swap(tokens.Refresh); fault.CodeOf(err) != fault.Refused {
			t.Errorf("refresh number %d: %v", oauth.MaxReuses+2, err)
		}
		wantEnded(t, db, "a token after too many refreshes", got[0].Access)
	})
}

func TestRefresh_ReuseEndsTheGrant(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		db := e.open(t)
		code := consent(t, db, e, access.DevicesRead)
		swap := func(refresh access.SecretHash) (oauth.Tokens, error) {
			next, _ := pair(e)
			_, err := db.RotateToken(t.Context(), refresh, code.ClientID, 0, next)
			return next, err
		}
		other, _ := redeem(t, db, e, again(t, db, e, code, access.DevicesRead))
		lost, _ := redeem(t, db, e, code)
		if _, err := swap(lost.Refresh); err != nil {
			t.Fatal(err)
		}
		e.clock.Advance(oauth.ReuseWindow)
		second, err := swap(lost.Refresh)
		if err != nil {
			t.Fatalf("the answer was lost, and the client asked again in time: %v", err)
		}
		e.clock.Advance(time.Millisecond)
		if _, err := swap(lost.Refresh); fault.CodeOf(err) != fault.Refused {
			t.Errorf("the client asked again too late: %v", err)
		}
		wantEnded(t, db, "a token after a late reuse", second.Access)
		wantAllowed(t, db, "another grant of the connection", other.Access, access.DevicesRead)

		first, _ := redeem(t, db, e, again(t, db, e, code, access.DevicesRead))
		next, err := swap(first.Refresh)
		if err != nil {
			t.Fatal(err)
		}
		after, err := swap(next.Refresh)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := swap(first.Refresh); fault.CodeOf(err) != fault.Refused {
			t.Errorf("a token whose successor was used: %v", err)
		}
		wantEnded(t, db, "a token after the reuse of one two generations old", after.Access)
	})
}

func TestRefresh_NarrowerScopes(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		db := e.open(t)
		code := consent(t, db, e, access.DevicesRead|access.PoliciesRead)
		tokens, _ := redeem(t, db, e, code)
		narrow, _ := pair(e)
		if _, err := db.RotateToken(t.Context(), tokens.Refresh, code.ClientID, access.DevicesRead|access.DevicesCommand,
			narrow); fault.CodeOf(err) != fault.Forbidden {
			t.Errorf("a refresh with more scopes than granted: %v", err)
		}
		if o, err := db.RotateToken(t.Context(), tokens.Refresh, code.ClientID, access.DevicesRead, narrow); err != nil ||
			o.Scopes != access.DevicesRead {
			t.Fatalf("a refresh with fewer scopes: %s, %v", o.Scopes, err)
		}
		wantAllowed(t, db, "the narrower token", narrow.Access, access.DevicesRead)
		whole, _ := pair(e)
		if _, err := db.RotateToken(t.Context(), narrow.Refresh, code.ClientID, 0, whole); err != nil {
			t.Fatal(err)
		}
		wantAllowed(t, db, "the next token", whole.Access, access.DevicesRead|access.PoliciesRead)
	})
}

// Of the tokens that parallel refreshes got a client goes on with one. Where two are
// used, two hold them, however long after: the grant ends.
func TestRefresh_AForkEndsTheGrant(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		db := e.open(t)
		code := consent(t, db, e, access.DevicesRead)
		swap := func(from oauth.Tokens) (oauth.Tokens, error) {
			next, _ := pair(e)
			_, err := db.RotateToken(t.Context(), from.Refresh, code.ClientID, 0, next)
			return next, err
		}
		must := func(from oauth.Tokens) oauth.Tokens {
			t.Helper()
			next, err := swap(from)
			if err != nil {
				t.Fatal(err)
			}
			return next
		}
		stolen, _ := redeem(t, db, e, code)
		client := must(stolen)
		e.clock.Advance(100 * time.Second)
		attacker := must(stolen)
		e.clock.Advance(15 * time.Minute)
		client = must(client)
		wantAllowed(t, db, "the client's token", client.Access, access.DevicesRead)
		if _, err := swap(attacker); fault.CodeOf(err) != fault.Refused {
			t.Errorf("the second branch goes on: %v", err)
		}
		wantEnded(t, db, "the client's token after the fork", client.Access)

		first, _ := redeem(t, db, e, again(t, db, e, code, access.DevicesRead))
		for range 5 { // in parallel, and on with the last
			var last oauth.Tokens
			for range 4 {
				last = must(first)
			}
			first = last
			e.clock.Advance(15 * time.Minute)
		}
		wantAllowed(t, db, "a token of a client that refreshes in parallel", must(first).Access, access.DevicesRead)
	})
}
