package database_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/enrollment"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
)

func TestCommand_IsStoredWhole(t *testing.T) {
	withCompany(t, func(f *fixture) {
		a := f.enroll("d", "")
		c := f.intent(a, command.ChangePolicy)
		c.Deadline, c.PolicyID, c.IdempotencyRef = f.clock.Now().Add(time.Hour), "p1", "ref"
		stored, begun, err := f.db.Begin(f.Context(), c, nil)
		f.ok(err)
		equal(f, "begun", begun, true)
		equal(f, "stored", stored, c)
		equal(f, "read", f.command(c.ID), c)

		c.State, c.Ref, c.Outcome, c.FeedbackAt = command.Sent, "operations/1", "on its way", f.clock.Now()
		c.Deadline = c.Deadline.Add(time.Hour)
		got, taken, err := f.db.Advance(f.Context(), c.ID, command.Transition{From: []command.State{command.Prepared}, To: c.State,
			Ref: c.Ref, Outcome: c.Outcome, Feedback: c.FeedbackAt, Deadline: c.Deadline})
		f.ok(err)
		equal(f, "taken", taken, true)
		equal(f, "after the step", got, c)
		// A step changes only what it sets.
		c.State = command.Unconfirmed
		got, _, err = f.db.Advance(f.Context(), c.ID, command.Transition{From: []command.State{command.Sent}, To: c.State})
		f.ok(err)
		equal(f, "after the second step", got, c)
		got, err = f.db.CommandByRef(f.Context(), "operations/1")
		f.ok(err)
		equal(f, "by ref", got, c)
		got, err = f.db.CommandByIdempotencyRef(f.Context(), f.company.ID, "ref")
		f.ok(err)
		equal(f, "by idempotency ref", got, c)
	})
}

// The entry of a command names the user behind the key that sent it, where the call is that key's.
func TestCommand_UserBehindIt(t *testing.T) {
	withCompany(t, func(f *fixture) {
		a := f.enroll("d", "")
		for caller, want := range map[string]string{"k1": "u9", "another": ""} {
			c := f.intent(a, command.Lock)
			c.Actor = access.Actor{Kind: access.APIKey, ID: "k1", Name: "ci"}
			ctx := access.WithActor(f.Context(), access.Actor{Kind: access.APIKey, ID: caller, UserID: "u9"}, "r")
			_, _, err := f.db.Begin(ctx, c, nil)
			f.ok(err)
			all, err := f.db.Activity(f.Context(), activity.Filter{CompanyID: f.company.ID, Area: "command"}, activity.Cursor{}, 10)
			f.ok(err)
			for _, e := range all {
				if e.Reference == c.ID {
					equal(f, "the user behind "+caller, e.Actor.UserID, want)
				}
			}
		}
	})
}

func TestCommand_NotFound(t *testing.T) {
	withCompany(t, func(f *fixture) {
		a := f.enroll("d", "")
		c := f.intent(a, command.Lock)
		c.IdempotencyRef = "ref"
		_, _, err := f.db.Begin(f.Context(), c, nil)
		f.ok(err)
		_, err = f.db.Command(f.Context(), "missing")
		f.code(fault.NotFound, err)
		_, err = f.db.CommandByRef(f.Context(), "")
		f.code(fault.NotFound, err)
		_, err = f.db.CommandByIdempotencyRef(f.Context(), "another company", "ref")
		f.code(fault.NotFound, err)
		_, _, err = f.db.Advance(f.Context(), "missing", command.Transition{From: []command.State{command.Sent}, To: command.Failed})
		f.code(fault.NotFound, err)
		_, _, err = f.db.History(f.Context(), "another company", a.ID, operation.PageRequest{Size: 20})
		f.code(fault.NotFound, err)
		stranger := f.intent(a, command.Lock)
		stranger.AssetID = "missing"
		if _, _, err = f.db.Begin(f.Context(), stranger, nil); err == nil {
			f.Fatal("a command was begun for an asset that is not there")
		}
	})
}

func TestBegin_OneIntentPerIdempotencyRef(t *testing.T) {
	withCompany(t, func(f *fixture) {
		a, second := f.enroll("d", ""), f.open(f)
		var begun atomic.Int32
		var ids sync.Map
		var all sync.WaitGroup
		for n := range 20 {
			db := f.db
			if n%2 == 1 {
				db = second
			}
			all.Go(func() {
				c := f.intent(a, command.Lock)
				c.IdempotencyRef = "ref"
				stored, first, err := db.Begin(f.Context(), c, nil)
				if err != nil {
					f.Error(err)
				}
				if first {
					begun.Add(1)
				}
				ids.Store(stored.ID, true)
			})
		}
		all.Wait()
		equal(f, "begun", begun.Load(), 1)
		n := 0
		ids.Range(func(any, any) bool { n++; return true })
		equal(f, "commands", n, 1)
		_, total, err := f.db.History(f.Context(), f.company.ID, a.ID, operation.PageRequest{Size: 20})
		f.ok(err)
		equal(f, "history", total, 1)
	})
}

func TestTransition_OneWins(t *testing.T) {
	withCompany(t, func(f *fixture) {
		a, second := f.enroll("d", ""), f.open(f)
		c := f.begin(a, command.Lock)
		var taken atomic.Int32
		var all sync.WaitGroup
		for n := range 20 {
			db := f.db
			if n%2 == 1 {
				db = second
			}
			to := []command.State{command.Succeeded, command.Failed}[n%2]
			all.Go(func() {
				got, won, err := db.Advance(f.Context(), c.ID,
					command.Transition{From: []command.State{command.Prepared, command.Sent}, To: to})
				if err != nil || !got.State.Final() {
					f.Errorf("Advance = %+v, %v", got, err)
				}
				if won {
					taken.Add(1)
				}
			})
		}
		all.Wait()
		equal(f, "taken", taken.Load(), 1)
	})
}

func TestTransition_HostileOutcomeIsStored(t *testing.T) {
	withCompany(t, func(f *fixture) {
		c := f.begin(f.enroll("d", ""), command.Lock)
		_, taken, err := f.db.Advance(f.Context(), c.ID, command.Transition{From: []command.State{command.Prepared}, To: command.Failed,
			Outcome: "no\x00 such\xff ?"})
		f.ok(err)
		equal(f, "taken", taken, true)
		equal(f, "outcome", f.command(c.ID).Outcome, "no\uFFFD such\uFFFD ?")
	})
}

// Who reads the activity log finds what went wrong, or may have.
func TestTransition_FailuresAreRecorded(t *testing.T) {
	withCompany(t, func(f *fixture) {
		a := f.enroll("d", "")
		for _, to := range []command.State{command.Sent, command.Succeeded, command.Failed, command.Unconfirmed} {
			before := len(f.log(activity.Filter{}))
			f.ends(f.begin(a, command.Lock), to, "")
			want := before + 1 // that it was sent
			if to == command.Failed || to == command.Unconfirmed {
				want++
			}
			equal(f, "entries after "+string(to), len(f.log(activity.Filter{})), want)
		}
		c := f.begin(a, command.Lock)
		f.ends(c, command.Unconfirmed, "")
		before := len(f.log(activity.Filter{}))
		_, _, err := f.db.Advance(f.Context(), c.ID, command.Transition{From: []command.State{command.Unconfirmed},
			To: command.Unconfirmed, Ref: "operations/1"})
		f.ok(err)
		equal(f, "entries after the platform's name of it is known", len(f.log(activity.Filter{})), before)
	})
}

func TestTransition_FinalStatesStay(t *testing.T) {
	withCompany(t, func(f *fixture) {
		a := f.enroll("d", "")
		for _, final := range []command.State{command.Succeeded, command.Failed} {
			c := f.begin(a, command.Lock)
			_, taken, err := f.db.Advance(f.Context(), c.ID, command.Transition{From: []command.State{command.Prepared}, To: final})
			f.ok(err)
			equal(f, "taken", taken, true)
			got, taken, err := f.db.Advance(f.Context(), c.ID, command.Transition{
				From: []command.State{command.Prepared, command.Sent, command.Unconfirmed, command.Succeeded, command.Failed},
				To:   command.Sent, Outcome: "changed"})
			f.ok(err)
			equal(f, "left", words(taken, got.State, got.Outcome), words(false, final, ""))
		}
		c := f.begin(a, command.Lock)
		_, taken, err := f.db.Advance(f.Context(), c.ID, command.Transition{To: command.Sent})
		f.ok(err)
		equal(f, "a step from nowhere", taken, false)
	})
}

// A reader who sees that a command succeeded finds the asset as it left it.
func TestTransition_SuccessShowsOnTheAsset(t *testing.T) {
	withCompany(t, func(f *fixture) {
		for _, last := range []command.Type{command.WipeCompanyData, command.RelinquishOwnership} {
			a := f.enroll("d-"+string(last), "")
			for _, s := range []struct {
				sent   command.Type
				lost   bool
				status asset.Status
			}{
				{command.StartLostMode, true, asset.Active}, {command.StopLostMode, false, asset.Active}, {last, false, asset.Deleted},
			} {
				c := f.intent(a, s.sent)
				_, _, err := f.db.Begin(f.Context(), c, nil)
				f.ok(err)
				_, taken, err := f.db.Advance(f.Context(), c.ID,
					command.Transition{From: []command.State{command.Prepared}, To: command.Succeeded,
						Feedback: f.clock.Now()})
				f.ok(err)
				now, err := f.db.Asset(f.Context(), f.company.ID, a.ID)
				f.ok(err)
				if !taken || now.Status != s.status {
					f.Errorf("after %s: taken %v, the asset is %s, want %s", s.sent, taken, now.Status, s.status)
				}
				if (now.Device == nil) != (s.status == asset.Deleted) || now.Device != nil && now.Device.LostMode != s.lost {
					f.Errorf("after %s the asset is %s, its device %+v", s.sent, now.Status, now.Device)
				}
			}
		}
	})
}

// The word of a device about lost mode that comes late changes nothing, whichever replica takes it.
func TestTransition_LateWordAboutLostMode(t *testing.T) {
	withCompany(t, func(f *fixture) {
		for n, order := range [][2]command.Type{{command.StartLostMode, command.StopLostMode},
			{command.StopLostMode, command.StartLostMode}} {
			for _, apart := range []time.Duration{time.Second, 0} {
				a := f.enroll(fmt.Sprint("d", n, apart), "")
				first := f.begin(a, order[0])
				f.clock.Advance(time.Millisecond)
				last := f.begin(a, order[1])
				said := f.clock.Now()
				for _, word := range []struct {
					of command.Command
					at time.Time
				}{{last, said.Add(apart)}, {first, said}} {
					_, _, err := f.db.Advance(f.Context(), word.of.ID, command.Transition{From: []command.State{command.Prepared},
						To: command.Succeeded, Feedback: word.at})
					f.ok(err)
				}
				now, err := f.db.Asset(f.Context(), f.company.ID, a.ID)
				f.ok(err)
				equal(f, fmt.Sprint("lost after ", order, " ", apart), now.Device.LostMode, order[1] == command.StartLostMode)
			}
		}
	})
}

// The word of a device about lost mode changes nothing if it comes after a report that the device made later.
func TestTransition_LateWordAfterAReport(t *testing.T) {
	withCompany(t, func(f *fixture) {
		for _, of := range []command.Type{command.StartLostMode, command.StopLostMode} {
			a := f.enroll("d"+string(of), "")
			c := f.begin(a, of)
			f.clock.Advance(time.Second)
			said := f.clock.Now()
			f.clock.Advance(time.Second)
			lost := of == command.StopLostMode
			f.observe(enrollment.Observation{CompanyID: f.company.ID, Device: "d" + string(of), Management: asset.Platform, LostMode: &lost,
				ReportedAt: f.clock.Now()})
			_, _, err := f.db.Advance(f.Context(), c.ID, command.Transition{From: []command.State{command.Prepared}, To: command.Succeeded,
				Feedback: said})
			f.ok(err)
			equal(f, "lost after a report and the word of "+string(of), f.asset(a.ID).Device.LostMode, lost)
		}
	})
}

func TestHistory_IsNewestFirst(t *testing.T) {
	withCompany(t, func(f *fixture) {
		a, b := f.enroll("a", ""), f.enroll("b", "")
		f.begin(b, command.Reboot)
		var want []string
		for n := range 25 {
			if n%5 != 0 {
				f.clock.Advance(time.Second) // and some at the same time
			}
			want = append(want, f.begin(a, command.Lock).ID)
		}
		seen := map[string]bool{}
		var last command.Command
		for page := range 3 {
			all, total, err := f.db.History(f.Context(), f.company.ID, a.ID, operation.PageRequest{Page: page, Size: 10})
			f.ok(err)
			equal(f, "total", total, 25)
			for _, c := range all {
				if seen[c.ID] {
					f.Fatalf("%s is listed twice", c.ID)
				}
				if last.ID != "" && (c.CreatedAt.After(last.CreatedAt) || c.CreatedAt.Equal(last.CreatedAt) && c.ID > last.ID) {
					f.Fatalf("%s is out of order", c.ID)
				}
				seen[c.ID], last = true, c
			}
		}
		for _, id := range want {
			equal(f, "seen", seen[id], true)
		}
		rest, total, err := f.db.History(f.Context(), f.company.ID, a.ID, operation.PageRequest{Page: 3, Size: 10})
		f.ok(err)
		equal(f, "beyond the end", words(len(rest), total), "0 25")
	})
}

func TestOpen_FoundByReconcilers(t *testing.T) {
	withCompany(t, func(f *fixture) {
		a := f.enroll("a", "")
		old := f.begin(a, command.Lock)
		f.clock.Advance(time.Minute)
		young := f.begin(a, command.Reboot)
		done := f.begin(a, command.Lock)
		take := func(id string, s command.Transition) {
			s.From = []command.State{command.Prepared, command.Sent}
			_, taken, err := f.db.Advance(f.Context(), id, s)
			f.ok(err)
			equal(f, "taken", taken, true)
		}
		ids := func(all []command.Command, err error) string {
			f.ok(err)
			text := []any{}
			for _, c := range all {
				text = append(text, map[string]string{old.ID: "old", young.ID: "young", done.ID: "done"}[c.ID])
			}
			return words(text...)
		}
		take(done.ID, command.Transition{To: command.Succeeded})
		soon := f.clock.Now().Add(time.Second)
		equal(f, "prepared", ids(f.db.Abandoned(f.Context(), soon, 10)), "old young")
		equal(f, "prepared, one", ids(f.db.Abandoned(f.Context(), soon, 1)), "old")
		equal(f, "prepared, before", ids(f.db.Abandoned(f.Context(), young.CreatedAt, 10)), "old")
		equal(f, "open of", ids(f.db.OpenOf(f.Context(), a.ID)), "old young")

		take(old.ID, command.Transition{To: command.Unconfirmed, Deadline: soon})
		take(young.ID, command.Transition{To: command.Sent, Deadline: soon.Add(-time.Minute)})
		overdue := func(before, unasked time.Time) string {
			return ids(f.db.Overdue(f.Context(), command.Expiry{AskedAt: soon, Before: before, Unasked: unasked}, 10))
		}
		equal(f, "overdue, the platform not asked", overdue(soon.Add(time.Second), soon.Add(-time.Hour)), "")
		equal(f, "overdue for long", overdue(soon.Add(time.Second), soon), "young")
		f.ok(f.db.SetPolled(f.Context(), old.ID, soon))
		equal(f, "overdue, to be asked again", overdue(soon.Add(time.Second), soon), "young")
		f.ok(f.db.SetPolled(f.Context(), old.ID, soon.Add(time.Second)))
		equal(f, "overdue", overdue(soon.Add(time.Second), soon), "young old")
		equal(f, "overdue before", overdue(soon, soon), "young")
	})
}

func TestMarkDeleted_EndsOneEnrollment(t *testing.T) {
	withCompany(t, func(f *fixture) {
		a := f.enroll("a", "")
		wipe, lock := f.begin(a, command.WipeCompanyData), f.begin(a, command.Lock)
		f.ok(f.db.MarkDeleted(f.Context(), a.ID, 2, f.clock.Now()))
		equal(f, "status after another epoch's end", f.asset(a.ID).Status, asset.Active)
		f.ok(f.db.MarkDeleted(f.Context(), a.ID, 1, f.clock.Now()))
		f.ok(f.db.MarkDeleted(f.Context(), a.ID, 1, f.clock.Now())) // once is as good as twice
		equal(f, "status", f.asset(a.ID).Status, asset.Deleted)
		for c, want := range map[string]command.State{wipe.ID: command.Succeeded, lock.ID: command.Failed} {
			got := f.command(c)
			_, outcome := got.Type.EndOfManagement(asset.Platform, false)
			equal(f, "end", words(got.State, got.Outcome), words(want, outcome))
		}
		equal(f, "feedback on the wipe", f.command(wipe.ID).FeedbackAt, f.clock.Now())
		f.code(fault.NotFound, f.db.MarkDeleted(f.Context(), "missing", 1, f.clock.Now()))
		// The name is buried: a late report enrolls nothing.
		equal(f, "late", f.observe(f.observation("a")).Applied, false)
	})
}
