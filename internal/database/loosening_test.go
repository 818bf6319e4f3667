package database_test

import (
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/approval/approvaltest"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/signature"
)

func (f *fixture) now() access.Settings {
	f.Helper()
	c, err := f.db.CompanyByID(f.Context(), f.company.ID)
	f.ok(err)
	return c.Settings
}

// controls asks, as a person in the portal, for other controls.
func (f *fixture) controls(by account.User, edit func(*access.Settings)) []access.Loosening {
	f.Helper()
	waiting, err := f.db.ChangeControls(f.Context(), f.company.ID, by, func(c *company.Company) { edit(&c.Settings) })
	f.ok(err)
	return waiting
}

func limitTo(devices int) func(*access.Settings) {
	return func(s *access.Settings) {
		s.Controls.DestructiveLimit = access.DestructiveLimit{Devices: devices, Window: time.Hour}
	}
}

// What tightens takes effect at once; what loosens waits for a day, whatever
// replica looks, and is canceled by what happens to the control before.
func TestChangeControls(t *testing.T) {
	withCompany(t, func(f *fixture) {
		ada, second := f.person("ada", true), f.open(f.T)
		apply := func() {
			for _, db := range []*database.DB{second, f.db} {
				f.ok(db.ApplyLoosenings(f.Context()))
			}
		}
		devices := func(want int) {
			f.Helper()
			apply()
			equal(f, "limit", f.now().Controls.DestructiveLimit.Devices, want)
		}
		equal(f, "a limit where there is none waits", len(f.controls(ada, limitTo(20))), 0)
		devices(20)
		equal(f, "tightening waits", len(f.controls(ada, limitTo(10))), 0)
		devices(10)
		equal(f, "loosening waits", len(f.controls(ada, limitTo(30))), 1)
		devices(10)
		f.clock.Advance(24*time.Hour - time.Millisecond)
		devices(10)
		f.clock.Advance(time.Millisecond)
		devices(30)
		equal(f, "applied", f.recorded(activity.LooseningApplied), 1)

		f.controls(ada, limitTo(40))
		f.controls(ada, limitTo(5)) // what is tightened is not loosened later
		f.clock.Advance(25 * time.Hour)
		devices(5)
		f.controls(ada, limitTo(40))
		f.setLimit(6, 60) // nor what the operator changes
		f.clock.Advance(25 * time.Hour)
		devices(6)
		f.controls(ada, limitTo(40))
		f.controls(ada, limitTo(50)) // begins again
		f.clock.Advance(23 * time.Hour)
		waiting, err := f.db.Loosenings(f.Context(), f.company.ID)
		f.ok(err)
		if len(waiting) != 1 || waiting[0].After != "50/60m" || waiting[0].AskedBy.ID != ada.ID {
			f.Fatalf("waiting: %+v", waiting)
		}
		f.ok(f.db.CancelLoosening(f.Context(), f.company.ID, waiting[0].ID))
		f.code(fault.NotFound, f.db.CancelLoosening(f.Context(), f.company.ID, waiting[0].ID))
		f.clock.Advance(2 * time.Hour)
		devices(6)
		equal(f, "canceled", f.recorded(activity.LooseningCanceled), 4)
		other := f.newCompany("other")
		f.code(fault.NotFound, f.db.CancelLoosening(f.Context(), other.ID, f.controls(ada, limitTo(40))[0].ID))
	})
}

// What waits for an administrator who may not change the controls any more is canceled, the end
// of a stop above all: it does not wait again if they may again.
func TestChangeControls_OfOneWhoMayNotAnyMore(t *testing.T) {
	for how, end := range map[string]func(f *fixture, id string) error{
		"disabled": func(f *fixture, id string) error {
			return second(f.db.UpdateUser(f.Context(), f.company.ID, id, func(u *account.User) error { u.Disabled = true; return nil }))
		},
		"without the right": func(f *fixture, id string) error {
			return second(f.db.UpdateUser(f.Context(), f.company.ID, id, func(u *account.User) error {
				u.Rights &^= account.ManageCompany
				return nil
			}))
		},
		"deleted": func(f *fixture, id string) error { return second(f.db.DeleteUser(f.Context(), f.company.ID, id)) },
	} {
		t.Run(how, func(t *testing.T) {
			withCompany(t, func(f *fixture) {
				f.setLimit(10, 60)
				thief, bob := f.person("thief", true), f.person("bob", true)
				f.controls(thief, func(s *access.Settings) { s.Stop = access.Stop{At: f.clock.Now(), Reason: "a leak", All: true} })
				f.controls(thief, func(s *access.Settings) { s.Stop = access.Stop{} })
				f.controls(bob, limitTo(30))
				f.ok(end(f, thief.ID))
				waiting, err := f.db.Loosenings(f.Context(), f.company.ID)
				f.ok(err)
				if len(waiting) != 1 || waiting[0].AskedBy.ID != bob.ID {
					f.Errorf("waiting: %+v", waiting)
				}
				equal(f, "canceled", f.recorded(activity.LooseningCanceled), 1)
				f.clock.Advance(25 * time.Hour)
				f.ok(f.db.ApplyLoosenings(f.Context()))
				if !f.now().Stop.On() {
					f.Error("the stop has ended")
				}
			})
		})
	}
}

// What waits for an administrator from whom an older program took the right is canceled when its time comes.
func TestApplyLoosenings_OfOneWhoMayNotAnyMore(t *testing.T) {
	for how, statement := range map[string]string{
		"disabled":          `UPDATE users SET disabled = TRUE WHERE id = `,
		"without the right": `UPDATE users SET rights = 0 WHERE id = `,
		"deleted":           `DELETE FROM users WHERE id = `,
	} {
		t.Run(how, func(t *testing.T) {
			withCompany(t, func(f *fixture) {
				f.setLimit(10, 60)
				thief := f.person("thief", false)
				f.controls(thief, limitTo(30))
				f.ok(f.db.Write(f.Context(), nil, `DELETE FROM mail_users WHERE user_id = '`+thief.ID+`'`, statement+`'`+thief.ID+`'`))
				f.clock.Advance(25 * time.Hour)
				f.ok(f.db.ApplyLoosenings(f.Context()))
				equal(f, "limit", f.now().Controls.DestructiveLimit.Devices, 10)
				equal(f, "canceled", f.recorded(activity.LooseningCanceled), 1)
				equal(f, "applied", f.recorded(activity.LooseningApplied), 0)
			})
		})
	}
}

// During a stop nothing is loosened, by time or by a second person, but the stop.
func TestChangeControls_Stop(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.setLimit(10, 60)
		ada, bob := f.person("ada", true), f.person("bob", true)
		keys, err := f.db.Passkeys(f.Context(), bob.ID)
		f.ok(err)
		f.clock.Advance(48 * time.Hour)
		raise := f.controls(ada, limitTo(30))[0]
		f.controls(ada, func(s *access.Settings) { s.Stop = access.Stop{At: f.clock.Now(), Reason: "a leak", All: true} })
		if !f.now().Stop.All {
			f.Fatal("a stop waits")
		}
		f.clock.Advance(25 * time.Hour)
		f.ok(f.db.ApplyLoosenings(f.Context()))
		f.code(fault.Refused, f.confirm(raise.ID, bob, keys[0].ID))
		equal(f, "limit during the stop", f.now().Controls.DestructiveLimit.Devices, 10)
		resume := f.controls(ada, func(s *access.Settings) { s.Stop = access.Stop{} })
		if len(resume) != 1 || !f.now().Stop.On() {
			f.Fatalf("resuming does not wait: %+v", resume)
		}
		f.ok(f.confirm(resume[0].ID, bob, keys[0].ID))
		if f.now().Stop.On() {
			f.Error("it is not resumed")
		}
		f.ok(f.db.ApplyLoosenings(f.Context())) // the day has long passed
		equal(f, "limit after the stop", f.now().Controls.DestructiveLimit.Devices, 30)
	})
}

// A company that is stopped again is not resumed by what was asked for before.
func TestChangeControls_StoppedAgain(t *testing.T) {
	withCompany(t, func(f *fixture) {
		ada := f.person("ada", true)
		f.controls(ada, func(s *access.Settings) { s.Stop = access.Stop{At: f.clock.Now(), Reason: "a leak"} })
		for _, c := range []struct {
			name   string
			change func(*access.Settings)
			left   int
		}{
			{"another change", limitTo(1), 1},
			{"a stop with the same reason", func(s *access.Settings) { s.Stop = access.Stop{At: f.clock.Now(), Reason: "a leak"} }, 0},
		} {
			f.controls(ada, func(s *access.Settings) { s.Stop = access.Stop{} })
			f.clock.Advance(time.Hour)
			_, err := f.db.UpdateCompany(f.Context(), f.company.ID, company.Change(func(to *company.Company) { c.change(&to.Settings) }))
			f.ok(err)
			left, err := f.db.Loosenings(f.Context(), f.company.ID)
			f.ok(err)
			equal(f, "waiting after "+c.name, len(left), c.left)
		}
		f.clock.Advance(25 * time.Hour)
		f.ok(f.db.ApplyLoosenings(f.Context()))
		equal(f, "stopped", f.now().Stop.On(), true)
	})
}

// confirm has an administrator confirm what waits, with a passkey.
func (f *fixture) confirm(id string, by account.User, passkeyID string) error {
	f.Helper()
	return f.answer(id, by, passkeyID, signature.Approve)
}

// answer has an administrator decide about what waits, with a passkey.
func (f *fixture) answer(id string, by account.User, passkeyID string, d signature.Decision) error {
	f.Helper()
	_, of, err := f.db.LooseningSubject(f.Context(), f.company.ID, id)
	if err != nil {
		return err
	}
	document, err := of.Canonical(signature.Head{Approver: signature.Person{ID: by.ID, Name: by.Name}, Decision: d,
		At: signature.Time(f.clock.Now())}, nil)
	f.ok(err)
	key, _ := keysOf.Load(passkeyID)
	return f.db.Decide(f.Context(), approval.Decision{CompanyID: f.company.ID, Kind: approval.LooseningKind, ID: id, UserID: by.ID,
		PasskeyID: passkeyID,
		Signed:    key.(*approvaltest.Passkey).Sign(document), Verifier: approvaltest.Verifier()})
}

// A second administrator counts whose account, right and passkey are old enough.
func TestConfirmLoosening(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.setLimit(10, 60)
		f.ok(second(f.db.UpdateCompany(f.Context(), f.company.ID, func(c *company.Company) error {
			c.Settings.Controls.ApproverAge = 24 * time.Hour
			return nil
		})))
		ada, bob := f.person("ada", true), f.person("bob", true)
		passkey := func(u account.User) string {
			keys, err := f.db.Passkeys(f.Context(), u.ID)
			f.ok(err)
			return keys[0].ID
		}
		raise := f.controls(ada, limitTo(30))[0]
		confirm := func(by account.User, key string) error {
			return f.confirm(raise.ID, by, key)
		}
		f.code(fault.Refused, confirm(bob, passkey(bob))) // an account of today
		f.clock.Advance(24 * time.Hour)
		raise = f.controls(ada, limitTo(31))[0]
		f.code(fault.Refused, confirm(ada, passkey(ada)))
		f.code(fault.Refused, confirm(bob, passkey(ada)))
		rights := func(r account.Right) {
			f.ok(second(f.db.UpdateUser(f.Context(), f.company.ID, bob.ID, func(u *account.User) error {
				u.Rights = r
				return nil
			})))
		}
		rights(account.ViewDevices)
		f.code(fault.Refused, confirm(bob, passkey(bob)))
		rights(bob.Rights) // given back just now
		f.code(fault.Refused, confirm(bob, passkey(bob)))
		equal(f, "limit", f.now().Controls.DestructiveLimit.Devices, 10)
		f.clock.Advance(24 * time.Hour)
		raise = f.controls(ada, limitTo(32))[0]
		f.ok(confirm(bob, passkey(bob)))
		equal(f, "limit", f.now().Controls.DestructiveLimit.Devices, 32)
		f.code(fault.NotFound, confirm(bob, passkey(bob)))
	})
}

// What a second administrator declines does not take effect.
func TestConfirmLoosening_Declined(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.setLimit(10, 60)
		ada, bob := f.person("ada", true), f.person("bob", true)
		f.clock.Advance(48 * time.Hour)
		raise := f.controls(ada, limitTo(30))[0]
		f.ok(f.answer(raise.ID, bob, f.key(bob).ID, signature.Decline))
		waiting, err := f.db.Loosenings(f.Context(), f.company.ID)
		f.ok(err)
		equal(f, "limit and what waits", words(f.now().Controls.DestructiveLimit.Devices, len(waiting)), words(10, 0))
		equal(f, "canceled", f.recorded(activity.LooseningCanceled), 1)
	})
}

// Who asks for what waits already does not begin it again.
func TestChangeControls_AskedAgain(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.setLimit(10, 60)
		first := f.controls(f.person("ada", true), limitTo(30))[0]
		f.clock.Advance(time.Hour)
		equal(f, "waiting", f.controls(f.person("bob", true), limitTo(30)), []access.Loosening{first})
		equal(f, "canceled", f.recorded(activity.LooseningCanceled), 0)
	})
}

// A replica that saw what is due looks again before it takes effect.
func TestChangeControls_ChangedSinceItWasSeen(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.setLimit(10, 60)
		ada := f.person("ada", true)
		seen := f.controls(ada, limitTo(30))[0]
		stays := func(when string, waiting int) {
			f.Helper()
			f.ok(f.db.ApplyLoosening(f.Context(), seen))
			all, err := f.db.Loosenings(f.Context(), f.company.ID)
			f.ok(err)
			equal(f, when, words(f.now().Controls.DestructiveLimit.Devices, len(all)), words(10, waiting))
		}
		stays("not due yet", 1)
		f.clock.Advance(24 * time.Hour)
		f.stop(access.Stop{At: f.clock.Now(), Reason: "a leak"})
		stays("during a stop", 1)
		f.stop(access.Stop{})
		f.ok(f.db.CancelLoosening(f.Context(), f.company.ID, seen.ID))
		stays("canceled", 0)
	})
}

// second is the error of a call with a result.
func second[T any](_ T, err error) error { return err }
