package database_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/event"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/resource"
)

// manyEvents is how many changes the proof of the order makes.
var manyEvents = flag.Int("events", 400, "changes that TestEvents_ExactlyOnceInOrder makes")

// reader reads the feed from one cursor to the next, as a caller with all rights.
type reader struct {
	feed   *event.Feed
	call   operation.Call
	after  string
	events []event.View
}

func (f *fixture) reader(db *database.DB, p access.Principal) *reader {
	p.CompanyID, p.CompanySlug = f.company.ID, f.company.Slug
	return &reader{feed: &event.Feed{Store: db, Stands: func(context.Context) error { return nil }, Waiters: 10},
		call: operation.Call{Principal: p}}
}

// all may read everything that the feed has.
func all() access.Principal {
	return access.Principal{Kind: access.APIKey, ID: "k1", Permissions: access.DevicesRead | access.PoliciesRead}
}

// read takes what there is and reports whether it was anything.
func (r *reader) read(ctx context.Context) (bool, error) {
	page, err := r.feed.List(ctx, r.call, event.WaitArgs{Args: event.Args{After: r.after, Limit: 7}})
	if err != nil {
		return false, err
	}
	r.events, r.after = append(r.events, page.Events...), page.Next
	return len(page.Events) > 0, nil
}

// rest numbers and reads until there is nothing more.
func (r *reader) rest(f *fixture) []event.View {
	f.Helper()
	for n := 1; n > 0; {
		var err error
		n, err = f.db.NumberRound(f.Context())
		f.ok(err)
	}
	for more := true; more; {
		var err error
		more, err = r.read(f.Context())
		f.ok(err)
	}
	return r.events
}

// texts are events in few words.
func (f *fixture) texts(events []event.View) (all []string) {
	for _, e := range events {
		all = append(all, words(e.Type, e.Data.Status))
	}
	return all
}

func (f *fixture) lose(ctx context.Context, db *database.DB, device string, lost bool) error {
	now := f.clock.Now()
	o := f.joined(device, "")
	o.Enrolling, o.ObservedAt, o.ReportedAt, o.LostMode = false, now, now, &lost
	_, err := db.Observe(ctx, o)
	return err
}

// Two replicas and eight writers on few devices, with transactions that stay open, and a
// reader that never waits: it gets each event once, and those of a device in their order.
func TestEvents_ExactlyOnceInOrder(t *testing.T) {
	withCompany(t, func(f *fixture) {
		replicas := []*database.DB{f.db, f.open(f)}
		devices := []string{"d0", "d1", "d2", "d3", "d4"}
		for _, d := range devices {
			f.enroll(d, "")
		}
		working, stop := context.WithCancel(f.Context())
		var numbering, writing, reading sync.WaitGroup
		for _, db := range replicas {
			numbering.Go(func() { _ = db.NumberEvents(working) })
		}
		var left atomic.Int64
		left.Store(int64(*manyEvents))
		for n := range 8 {
			writing.Go(func() {
				for left.Add(-1) >= 0 {
					if err := f.lose(f.Context(), replicas[n%2], devices[rand.IntN(len(devices))], rand.IntN(2) == 0); err != nil {
						f.Error(err)
					}
				}
			})
		}
		if f.name == "postgres" {
			writing.Go(func() { f.holdOpen(&left) })
		}
		written := make(chan struct{})
		r := f.reader(replicas[1], all())
		reading.Go(func() {
			for {
				if _, err := r.read(f.Context()); err != nil {
					f.Error(err)
					return
				}
				select {
				case <-written:
					return
				default:
				}
			}
		})
		writing.Wait()
		close(written)
		reading.Wait()
		stop()
		numbering.Wait()
		f.inOrder(r.rest(f))
	})
}

// holdOpen keeps a transaction open, which drew a number, while others write.
func (f *fixture) holdOpen(left *atomic.Int64) {
	c, err := pgx.Connect(f.Context(), f.url)
	if err != nil {
		f.Error(err)
		return
	}
	defer func() { _ = c.Close(context.WithoutCancel(f.Context())) }()
	for n := 0; left.Load() > 0; n++ {
		tx, err := c.Begin(f.Context())
		if err == nil {
			_, err = tx.Exec(f.Context(), insertElsewhere, fmt.Sprintf("open%d", n), f.company.ID)
		}
		for until := left.Load() - 20; err == nil && left.Load() > max(until, 0); {
			_, err = tx.Exec(f.Context(), `SELECT pg_sleep(0.01)`)
		}
		if err == nil && n%2 == 0 {
			err = tx.Commit(f.Context())
		} else if err == nil {
			err = tx.Rollback(f.Context())
		}
		if err != nil {
			f.Error(err)
			return
		}
	}
}

// insertElsewhere is an event of another asset.
const insertElsewhere = `INSERT INTO events (id, n, company_id, area, type, at, asset_id, policy_id, proposal_id, command, status, request_id, owner)
	VALUES ($1, nextval(pg_get_serial_sequence('events', 'n')), $2, 'device', 'device.silent', 1, 'elsewhere', '', '', '', '', '', '')`

// inOrder checks that the events are all that were written, each once, and that lost mode
// began and ended in turn on each device.
func (f *fixture) inOrder(events []event.View) {
	f.Helper()
	ids, lost := map[string]bool{}, map[string]string{}
	for _, e := range events {
		if ids[e.ID] {
			f.Errorf("event %s came twice", e.ID)
		}
		ids[e.ID] = true
		if e.Type != event.DeviceLostMode {
			continue
		}
		if last, known := lost[e.Data.AssetID]; last == e.Data.Status || !known && e.Data.Status == event.Off {
			f.Errorf("lost mode of %s is %s twice in a row, or was never begun", e.Data.AssetID, e.Data.Status)
		}
		lost[e.Data.AssetID] = e.Data.Status
	}
	kept, err := f.db.Text(f.Context(), `SELECT id FROM events ORDER BY id`)
	f.ok(err)
	got := make([]string, 0, len(ids))
	for id := range ids {
		got = append(got, id)
	}
	slices.Sort(got)
	equal(f, "events that were read", got, kept)
	f.Logf("%s: %d events", f.name, len(events))
}

// T1 writes elsewhere and stays open, T2 changes a device and is committed, and then T1
// changes the same device: nothing waits for T1, and the device's events keep their order.
func TestEvents_OpenTransactionDelaysNoOther(t *testing.T) {
	t.Parallel()
	for _, between := range []bool{true, false} {
		t.Run(fmt.Sprint("numbered between ", between), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, postgresEngine(t))
			a := f.enroll("d", "")
			r := f.reader(f.db, all())
			r.rest(f)
			c, err := pgx.Connect(f.Context(), f.url)
			f.ok(err)
			defer func() { f.ok(c.Close(context.WithoutCancel(f.Context()))) }()
			t1, err := c.Begin(f.Context())
			f.ok(err)
			run := func(statement string, args ...any) {
				_, err := t1.Exec(f.Context(), statement, args...)
				f.ok(err)
			}
			run(insertElsewhere, "t1", f.company.ID)
			f.ok(f.lose(f.Context(), f.db, "d", true))
			want := []string{"device.enrolled", "device.silent", "device.lost_mode ON", "device.lost_mode OFF"}
			if between {
				equal(f, "events while T1 is open", f.texts(r.rest(f)), []string{"device.enrolled", "device.lost_mode ON"})
				want = []string{"device.enrolled", "device.lost_mode ON", "device.silent", "device.lost_mode OFF"}
			}
			run(`UPDATE assets SET lost_mode = FALSE WHERE id = $1`, a.ID)
			run(
				`INSERT INTO events (id, n, company_id, area, type, at, asset_id, policy_id, proposal_id, command, status, request_id, owner)
				VALUES ('t1 again', nextval(pg_get_serial_sequence('events', 'n')), $1, 'device', 'device.lost_mode', 1, $2, '', '', '', 'OFF', '', '')`, f.company.ID, a.ID)
			f.ok(t1.Commit(f.Context()))
			equal(f, "events", f.texts(r.rest(f)), want)
		})
	}
}

// The end of a device's management ends its lost mode, before it: it does not wait for the next enrollment.
func TestEvents_EndOfLostMode(t *testing.T) {
	withCompany(t, func(f *fixture) {
		p := f.newPolicy("West")
		a := f.enroll("d", p.ID)
		f.ok(f.lose(f.Context(), f.db, "d", true))
		wipe := f.begin(f.asset(a.ID), command.WipeCompanyData)
		_, taken, err := f.db.Advance(f.Context(), wipe.ID, command.Transition{From: []command.State{command.Prepared},
			To: command.Succeeded, Feedback: f.clock.Now()})
		f.ok(err)
		equal(f, "the wipe is taken", taken, true)
		r := f.reader(f.db, all())
		told := []string{"device.enrolled", "device.lost_mode ON", "command.succeeded SUCCESS", "device.lost_mode OFF", "device.unenrolled"}
		equal(f, "events of the device that was wiped", f.texts(r.rest(f)), told)
		equal(f, "policy of the end of lost mode", r.events[3].Data.PolicyID, r.events[4].Data.PolicyID)
		f.clock.Advance(time.Hour)
		f.enroll("d", p.ID)
		equal(f, "events of the next enrollment", f.texts(r.rest(f))[len(told):], []string{"device.enrolled"})

		b := f.enroll("e", "")
		f.ok(f.lose(f.Context(), f.db, "e", true))
		f.ok(f.db.MarkDeleted(f.Context(), b.ID, b.Device.Epoch, f.clock.Now()))
		equal(f, "events of the device that was deleted", f.texts(r.rest(f))[len(told)+1:],
			[]string{"device.enrolled", "device.lost_mode ON", "device.lost_mode OFF", "device.unenrolled"})
		lost := true
		found, _, err := f.db.Assets(f.Context(), asset.Query{Filter: asset.Filter{CompanyID: f.company.ID, Lost: &lost}})
		f.ok(err)
		equal(f, "lost devices", len(found), 0)
	})
}

// Writers that number their own events are killed; what they report as kept has one event.
func TestEvents_KilledWriters(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		f := newFixture(t, e)
		r := f.reader(f.db, all())
		var kept []string
		for round := range 2 {
			kept = append(kept, killWriter(t, e.url, 20+round*17)...)
			_, err := r.read(f.Context())
			f.ok(err)
		}
		enrolled := map[string]int{}
		for _, event := range r.rest(f) {
			enrolled[event.Data.AssetID]++
		}
		for _, line := range kept {
			var asset, command string
			_, err := fmt.Sscan(line, &asset, &command)
			f.ok(err)
			equal(f, "events of an enrollment", enrolled[resource.Of("acme", resource.Assets, asset)], 1)
		}
		f.inOrder(r.events)
	})
}

// A caller sees what it may read now, by the policy at the time of the event, and next
// passes over the rest. Cursors are of one company and one history.
func TestEvents_RightsAndCursors(t *testing.T) {
	withCompany(t, func(f *fixture) {
		west, east := f.newPolicy("West"), f.newPolicy("East")
		a := f.enroll("d", west.ID)
		c := f.begin(a, command.Lock)
		_, taken, err := f.db.Advance(f.Context(), c.ID, command.Transition{From: []command.State{command.Prepared}, To: command.Succeeded,
			Feedback: f.clock.Now()})
		f.ok(err)
		equal(f, "taken", taken, true)
		f.ok(f.db.AssignPolicy(f.Context(), a.ID, a.Device.Epoch, east.ID))
		f.ok(f.db.MarkDeleted(f.Context(), a.ID, a.Device.Epoch, f.clock.Now()))

		sees := func(change func(*access.Principal)) string {
			f.Helper()
			p := all()
			change(&p)
			r := f.reader(f.db, p)
			types := ""
			for _, e := range r.rest(f) {
				types += string(e.Type) + " "
			}
			equal(f, "next of what was passed over", r.after, f.end(p))
			return types
		}
		const both = "device.enrolled command.succeeded device.unenrolled "
		equal(f, "with both rights", sees(func(*access.Principal) {}), both)
		equal(f, "policies alone", sees(func(p *access.Principal) { p.Permissions = access.PoliciesRead }), "")
		equal(f, "no right", sees(func(p *access.Principal) { p.Permissions = 0 }), "")
		equal(f, "the policy of then", sees(func(p *access.Principal) { p.Policies = []string{west.ID} }),
			"device.enrolled command.succeeded ")
		equal(f, "the policy of the end", sees(func(p *access.Principal) { p.Policies = []string{east.ID} }), "device.unenrolled ")
		equal(f, "no policy", sees(func(p *access.Principal) { p.Policies = []string{} }), "")

		mine := f.reader(f.db, all())
		mine.rest(f)
		old := f.company
		f.company = f.newCompany("other")
		stranger := f.reader(f.db, all())
		f.company = old
		for _, cursor := range []string{mine.after, "x", "AAAA"} {
			stranger.after = cursor
			_, err = stranger.read(f.Context())
			f.code(fault.CursorExpired, err)
			stranger.after = fault.From(err).Oldest
			_, err = stranger.read(f.Context())
			f.ok(err)
		}
	})
}

// end is the cursor of what happens from now on.
func (f *fixture) end(p access.Principal) string {
	f.Helper()
	r := f.reader(f.db, p)
	r.after = event.Latest
	_, err := r.read(f.Context())
	f.ok(err)
	return r.after
}
