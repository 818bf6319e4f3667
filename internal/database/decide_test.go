package database_test

import (
	"crypto/sha256"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/test/poll"
)

// Of two rotations that began with the same key one wins.
func TestUpdateAgent_FormerKey(t *testing.T) {
	withCompany(t, func(f *fixture) {
		d, err := f.enrollAgent(f.agentPolicy("Kiosk"), "SN-1")
		f.ok(err)
		next := func(spki string) agentdevice.Change {
			return agentdevice.Change{Was: d.Key, Key: &protocol.PublicKey{Algorithm: protocol.Ed25519, SPKI: spki}}
		}
		f.ok(f.db.UpdateAgent(f.Context(), d.ID, next("one")))
		f.code(fault.Refused, f.db.UpdateAgent(f.Context(), d.ID, next("two")))
		d, err = f.db.AgentDevice(f.Context(), d.ID)
		f.ok(err)
		equal(f, "key", d.Key.SPKI, "one")
	})
}

// A device is not moved to a policy that was deleted since the move was decided.
func TestObserve_MoveToDeletedPolicy(t *testing.T) {
	withCompany(t, func(f *fixture) {
		p, q := f.agentPolicy("Kiosk"), f.agentPolicy("Other")
		d, err := f.enrollAgent(p, "SN-1")
		f.ok(err)
		f.ok(f.deletePolicy(f.Context(), f.company.ID, q.ID, f.clock.Now()))
		move := f.observation(d.ID)
		move.Management, move.PolicyID = asset.Agent, q.ID
		_, err = f.db.Observe(f.Context(), move)
		f.code(fault.Refused, err)
		equal(f, "policy", f.asset(d.AssetID).Device.PolicyID, p.ID)
	})
}

// What an agent asks for that has ended changes nothing.
func TestSetPushToken_EndedDevice(t *testing.T) {
	withCompany(t, func(f *fixture) {
		d, err := f.enrollAgent(f.agentPolicy("Kiosk"), "SN-1")
		f.ok(err)
		ended, err := f.db.EndAgent(f.Context(), d, agentdevice.Ending{How: agentdevice.Released, At: f.clock.Now()})
		f.ok(err)
		equal(f, "ended", ended, true)
		f.ok(f.db.SetPushToken(f.Context(), d, "token"))
		d, err = f.db.AgentDevice(f.Context(), d.ID)
		f.ok(err)
		equal(f, "push token", d.PushToken, "")
	})
}

// Of recovery codes that are renewed at the same moment one set is left.
func TestSetRecoveryCodes_AtOnce(t *testing.T) {
	withCompany(t, func(f *fixture) {
		u := account.User{ID: "u", CompanyID: f.company.ID, Email: "a@example.test", Name: "A", CreatedAt: f.clock.Now()}
		f.ok(f.db.CreateUser(f.Context(), u))
		const sets, codes = 8, 5
		all := make([][]access.SecretHash, sets)
		wait := sync.WaitGroup{}
		for n := range all {
			for i := range codes {
				all[n] = append(all[n], sha256.Sum256([]byte(fmt.Sprint(n, i))))
			}
			wait.Go(func() {
				if err := f.db.SetRecoveryCodes(f.Context(), u.ID, all[n]); err != nil {
					f.Error(err)
				}
			})
		}
		wait.Wait()
		left := 0
		for _, set := range all {
			for _, hash := range set {
				if f.db.UseRecoveryCode(f.Context(), u.ID, hash) == nil {
					left++
				}
			}
		}
		equal(f, "codes that work", left, codes)
	})
}

// While it is checked whether a provider may be saved, its company's users stay
// as they were read: a change of one waits.
func TestSaveProvider_UsersStayAsTheyWereChecked(t *testing.T) {
	withCompany(t, func(f *fixture) {
		other := f.open(f)
		u := account.User{ID: "u", CompanyID: f.company.ID, Email: "a@acme.test", Name: "A", PasswordHash: "x", CreatedAt: f.clock.Now()}
		f.ok(f.db.CreateUser(f.Context(), u))
		var saved atomic.Bool
		changed := make(chan error, 1)
		p := account.IdentityProvider{CompanyID: f.company.ID, Name: "ID", Issuer: "https://id.example", ClientID: "c", Enabled: true,
			Role: account.Viewer}
		f.ok(f.db.SaveProvider(f.Context(), p, func(_ account.IdentityProvider, users []account.User) error {
			equal(f, "users", len(users), 1)
			go func() {
				_, err := other.UpdateUser(f.Context(), u.CompanyID, u.ID, func(u *account.User) error {
					if !saved.Load() {
						f.Error("a user changes between the check and the saving")
					}
					u.PasswordHash = ""
					return nil
				})
				changed <- err
			}()
			poll.Pause(300 * time.Millisecond) // the change waits for us
			saved.Store(true)
			return nil
		}))
		f.ok(<-changed)
	})
}
