package database_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/resource"
)

// deviceFor enrolls an agent.
func (f *fixture) deviceFor(serial string) agentdevice.Device {
	f.Helper()
	d, err := f.enrollAgent(f.agentPolicy("Policy of "+serial), serial)
	f.ok(err)
	return f.deviceNow(d.ID)
}

func (f *fixture) deviceNow(id string) agentdevice.Device {
	f.Helper()
	d, err := f.db.AgentDevice(f.Context(), id)
	f.ok(err)
	return d
}

// deliver sends a command to a device; a zero deadline is none.
func (f *fixture) deliver(d agentdevice.Device, kind command.Type, deadline time.Time) command.Command {
	f.Helper()
	c := f.intent(f.asset(d.AssetID), kind)
	c.State, c.Ref, c.Deadline = command.Sent, "agent/"+d.ID+"/"+c.ID, deadline
	stored, begun, err := f.db.Begin(f.Context(), c, &agentdevice.Delivery{CommandID: c.ID, DeviceID: d.ID, Type: string(kind),
		Args: []byte(`{"text":"a \"b\" \u00e4"}`), CreatedAt: c.CreatedAt, Deadline: deadline})
	f.ok(err)
	if !begun {
		f.Fatal("not begun")
	}
	return stored
}

func (f *fixture) visit(db *database.DB, d agentdevice.Device, sequence int64, words ...string) (command.Visited, bool) {
	f.Helper()
	got, taken, err := db.Visit(f.Context(), command.Visit{Device: d.ID, Key: d.Key, Sequence: sequence, Words: words,
		Lease: f.clock.Now().Add(time.Minute), Limit: 20})
	f.ok(err)
	return got, taken
}

func ids(all []agentdevice.Delivery) (of []string) {
	for _, v := range all {
		of = append(of, v.CommandID)
	}
	return of
}

// A visit takes the sequence, leases what is due in its order, and finds the commands of
// this device alone.
func TestVisit(t *testing.T) {
	withCompany(t, func(f *fixture) {
		d, other := f.deviceFor("SN-1"), f.deviceFor("SN-2")
		first, second := f.deliver(d, command.Reboot, time.Time{}), f.deliver(d, command.UploadLog, f.clock.Now().Add(time.Hour))
		late, foreign := f.deliver(d, command.LaunchApp, f.clock.Now()), f.deliver(other, command.Reboot, time.Time{})
		got, taken := f.visit(f.db, d, 7, second.ID, foreign.ID, resource.NewID(), "no id at all", "")
		equal(f, "taken", taken, true)
		equal(f, "offered", ids(got.Offered), []string{first.ID, second.ID})
		if v := got.Offered[1]; v.Type != "UPLOAD_LOG" || string(v.Args) != `{"text":"a \"b\" \u00e4"}` ||
			!v.CreatedAt.Equal(second.CreatedAt) || !v.Deadline.Equal(second.Deadline) {
			f.Errorf("offered %+v", v)
		}
		equal(f, "device", got.Device, f.deviceNow(d.ID))
		equal(f, "outstanding", got.Outstanding,
			map[string]command.Outstanding{second.ID: {Command: f.command(second.ID), Device: d.ID, Type: "UPLOAD_LOG"}})

		f.ok(f.db.KeepLog(f.Context(), d, agentdevice.Log{ID: second.ID, At: f.clock.Now(), Bytes: 1, Text: "x"}))
		f.ok(f.db.Accept(f.Context(), d.ID, second.ID, string(second.Type), f.clock.Now()))
		erasing, err := f.db.Text(f.Context(), `SELECT erasing_at FROM agent_devices WHERE id = ?`, d.ID)
		f.ok(err)
		equal(f, "is erasing itself since", erasing[0], "0")
		if again, taken := f.visit(f.db, d, 7); taken || len(again.Offered) != 0 {
			f.Errorf("a sequence that was used: %v, %+v", taken, again)
		}
		got, _ = f.visit(f.db, d, 8, second.ID, first.ID, late.ID)
		equal(f, "offered while the leases run", ids(got.Offered), []string(nil))
		if o := got.Outstanding[second.ID]; len(got.Outstanding) != 3 || !o.Accepted || !o.Logged {
			f.Errorf("outstanding %+v", got.Outstanding)
		}
	})
}

// A device whose relation ends is offered nothing but what ends it, and a wipe alone once it is to be wiped.
func TestVisit_OffersTheEnding(t *testing.T) {
	withCompany(t, func(f *fixture) {
		d := f.deviceFor("SN-1")
		reboot := f.deliver(d, command.Reboot, time.Time{})
		for sequence, c := range []struct {
			kind   command.Type
			brings agentdevice.State
		}{
			{command.RelinquishOwnership, agentdevice.RelinquishPending},
			{command.WipeCompanyData, agentdevice.WipePending},
		} {
			ends := f.intent(f.asset(d.AssetID), c.kind)
			ends.State, ends.Ref = command.Sent, "agent/"+d.ID+"/"+ends.ID
			_, _, err := f.db.Begin(f.Context(), ends, &agentdevice.Delivery{CommandID: ends.ID, DeviceID: d.ID, Type: string(c.kind),
				Args: []byte(`{}`), CreatedAt: ends.CreatedAt, Brings: c.brings})
			f.ok(err)
			got, _ := f.visit(f.db, d, int64(sequence+1))
			equal(f, "offered to a visit", ids(got.Offered), []string{ends.ID})
			again, err := f.db.Offer(f.Context(), f.deviceNow(d.ID), f.clock.Now().Add(time.Minute), 20)
			f.ok(err)
			equal(f, "offered once more", ids(again), []string{ends.ID})
		}
		equal(f, "the other waits on", f.command(reboot.ID).State, command.Sent)
	})
}

// Whatever replicas a device asks at once, each command is offered once while its lease runs.
func TestVisit_OffersOnce(t *testing.T) {
	withCompany(t, func(f *fixture) {
		d, replicas := f.deviceFor("SN-1"), []*database.DB{f.db, f.open(f)}
		var offered, sent atomic.Int64
		var all sync.WaitGroup
		for n := range int64(40) {
			all.Go(func() {
				if n%4 == 0 {
					f.deliver(d, command.Reboot, time.Time{})
					sent.Add(1)
					return
				}
				got, _, err := replicas[n%2].Visit(f.Context(),
					command.Visit{Device: d.ID, Key: d.Key, Sequence: 100 + n, Lease: f.clock.Now().Add(time.Minute), Limit: 20})
				if err != nil {
					f.Error(err)
				}
				offered.Add(int64(len(got.Offered)))
			})
		}
		all.Wait()
		rest, _ := f.visit(f.db, d, 1000)
		equal(f, "offers", offered.Load()+int64(len(rest.Offered)), sent.Load())
	})
}

// A visit that waited for its device's row while a command was delivered has what it leased
// itself and what it missed.
func TestVisit_WaitsForADelivery(t *testing.T) {
	t.Parallel()
	f := newFixture(t, postgresEngine(t))
	d := f.deviceFor("SN-1")
	first, another := f.deliver(d, command.Reboot, time.Time{}), resource.NewID()
	connect := func() *pgx.Conn {
		c, err := pgx.Connect(f.Context(), f.url)
		f.ok(err)
		f.Cleanup(func() { f.ok(c.Close(context.Background())) })
		return c
	}
	watcher := connect()
	held, err := connect().Begin(f.Context())
	f.ok(err)
	for _, statement := range []string{
		`UPDATE agent_devices SET open_deliveries = open_deliveries + 1`,
		`CREATE TEMPORARY TABLE delivered AS SELECT * FROM agent_deliveries`,
		`UPDATE delivered SET number = number + 1, command_id = '` + another + `'`,
		`INSERT INTO agent_deliveries SELECT * FROM delivered`,
	} {
		_, err := held.Exec(f.Context(), statement)
		f.ok(err)
	}
	done := make(chan command.Visited)
	go func() {
		got, _ := f.visit(f.db, d, 1)
		done <- got
	}()
	f.counts(watcher, "transactions that wait", 1, waiting)
	f.ok(held.Commit(f.Context()))
	equal(f, "offered", ids((<-done).Offered), []string{first.ID, another})
}

// settles is a device's final word about a command.
func settles(d agentdevice.Device, c command.Command, to command.State, outcome string) command.Transition {
	return command.Transition{From: []command.State{command.Prepared, command.Sent, command.Unconfirmed}, To: to, Outcome: outcome,
		Ends: &command.Outstanding{Command: c, Device: d.ID, Type: string(c.Type)}}
}

// checkSettled compares a command with its records: one event, and an entry if it failed.
func (f *fixture) checkSettled(d agentdevice.Device, c command.Command, state command.State, open int) {
	f.Helper()
	equal(f, "state", f.command(c.ID).State, state)
	equal(f, "open deliveries", f.deviceNow(d.ID).Open, open)
	left, err := f.db.Text(f.Context(), `SELECT COUNT(*) FROM agent_deliveries WHERE device_id = ?`, d.ID)
	f.ok(err)
	equal(f, "deliveries", left[0], fmt.Sprint(open))
	events, err := f.db.Text(f.Context(), `SELECT COUNT(*) FROM events WHERE area = 'command' AND asset_id = ? AND command = ?`,
		c.AssetID, string(c.Type))
	f.ok(err)
	equal(f, "events", events[0], "1")
	entries, err := f.db.Activity(f.Context(), activity.Filter{CompanyID: c.CompanyID, Action: activity.Command(string(c.Type)),
		AssetID: c.AssetID}, activity.Cursor{}, 10)
	f.ok(err)
	want := 1 // that it was sent
	if state == command.Failed {
		want = 2
	}
	equal(f, "entries", len(entries), want)
}

// The delivery, the command, its event and its entry change together, once.
func TestAdvance_WithDelivery(t *testing.T) {
	withCompany(t, func(f *fixture) {
		d, replicas := f.deviceFor("SN-1"), []*database.DB{f.db, f.open(f)}
		for kind, state := range map[command.Type]command.State{command.Reboot: command.Succeeded, command.LaunchApp: command.Failed,
			command.StartLostMode: command.Succeeded} {
			c := f.deliver(d, kind, time.Time{})
			var times atomic.Int64
			var all sync.WaitGroup
			for n := range 8 {
				all.Go(func() {
					now, taken, err := replicas[n%2].Advance(f.Context(), c.ID, settles(d, c, state, "because\x00"))
					if err != nil || now.State != state {
						f.Errorf("%s, %v", now.State, err)
					}
					if taken {
						times.Add(1)
					}
				})
			}
			all.Wait()
			equal(f, "times", times.Load(), 1)
			f.checkSettled(d, c, state, 0)
			if kind == command.StartLostMode {
				equal(f, "in lost mode", f.asset(d.AssetID).Device.LostMode, true)
			}
		}
	})
}

// A command that ended otherwise at the same time stays as it is, and its delivery ends.
func TestAdvance_WithDeliveryAgainstAnother(t *testing.T) {
	withCompany(t, func(f *fixture) {
		d, second := f.deviceFor("SN-1"), f.open(f)
		for _, kind := range []command.Type{command.Reboot, command.LaunchApp, command.SyncPolicy, command.UploadLog} {
			c := f.deliver(d, kind, time.Time{})
			var all sync.WaitGroup
			taken := make([]bool, 2)
			all.Go(func() {
				var err error
				if _, taken[0], err = f.db.Advance(f.Context(), c.ID, settles(d, c, command.Succeeded, "")); err != nil {
					f.Error(err)
				}
			})
			all.Go(func() {
				var err error
				if _, taken[1], err = second.Advance(f.Context(), c.ID,
					command.Transition{From: []command.State{command.Sent}, To: command.Failed, Outcome: "expired"}); err != nil {
					f.Error(err)
				}
			})
			all.Wait()
			state := command.Failed
			if taken[0] {
				state = command.Succeeded
			}
			equal(f, "one of both", taken[0] != taken[1], true)
			f.checkSettled(d, c, state, 0)
		}
		// Without a delivery the word changes nothing.
		c := f.begin(f.asset(d.AssetID), command.Shutdown)
		if _, taken, err := f.db.Advance(f.Context(), c.ID, settles(d, c, command.Succeeded, "")); err != nil || taken {
			f.Errorf("a command that was not delivered: %v, %v", taken, err)
		}
		equal(f, "state", f.command(c.ID).State, command.Prepared)
	})
}

// Deliveries that came too late end once, whatever replicas sweep.
func TestDropExpired(t *testing.T) {
	withCompany(t, func(f *fixture) {
		a, b, second := f.deviceFor("SN-1"), f.deviceFor("SN-2"), f.open(f)
		for range 3 {
			f.deliver(a, command.Reboot, f.clock.Now().Add(time.Minute))
		}
		f.deliver(b, command.Reboot, f.clock.Now().Add(time.Minute))
		kept := f.deliver(b, command.LaunchApp, f.clock.Now().Add(2*time.Minute))
		f.deliver(b, command.UploadLog, time.Time{})
		drop := func(db *database.DB, limit int) int {
			n, err := db.DropExpired(f.Context(), limit)
			if err != nil {
				f.Error(err)
			}
			return n
		}
		equal(f, "dropped before the deadline", drop(f.db, 10), 0)
		f.clock.Advance(time.Minute)
		equal(f, "dropped at most", drop(f.db, 1), 1)
		var dropped atomic.Int64
		var all sync.WaitGroup
		for _, db := range []*database.DB{f.db, second} {
			all.Go(func() { dropped.Add(int64(drop(db, 10))) })
		}
		all.Wait()
		dropped.Add(int64(drop(f.db, 10)))
		equal(f, "dropped", dropped.Load(), 3)
		equal(f, "open of both", []int{f.deviceNow(a.ID).Open, f.deviceNow(b.ID).Open}, []int{0, 2})
		got, _ := f.visit(f.db, b, 1)
		equal(f, "what is left", ids(got.Offered)[0], kept.ID)
	})
}

// A device may say that it carried out a command until its grace ends. It is offered the command until the deadline alone.
func TestDropExpired_Offered(t *testing.T) {
	withCompany(t, func(f *fixture) {
		d := f.deviceFor("SN-1")
		deadline := f.clock.Now().Add(time.Minute)
		offered := f.deliver(d, command.UploadLog, deadline)
		message := f.intent(f.asset(d.AssetID), command.NotificationMessage)
		message.State, message.Deadline = command.Succeeded, deadline
		_, _, err := f.db.Begin(f.Context(), message, &agentdevice.Delivery{CommandID: message.ID, DeviceID: d.ID,
			Type: string(message.Type), Args: []byte(`{}`), CreatedAt: message.CreatedAt, Deadline: deadline, Final: true})
		f.ok(err)
		f.visit(f.db, d, 1)
		f.deliver(d, command.Reboot, deadline) // never offered
		dropped := func(want int) {
			f.Helper()
			n, err := f.db.DropExpired(f.Context(), 10)
			f.ok(err)
			equal(f, "dropped", n, want)
		}
		f.clock.Advance(time.Minute)
		dropped(2)
		f.clock.Advance(command.ExpiryGrace - time.Second)
		dropped(0)
		f.ok(f.db.KeepLog(f.Context(), d, agentdevice.Log{ID: offered.ID, At: f.clock.Now(), Bytes: 1, Text: "x"}))
		got, _ := f.visit(f.db, d, 2, offered.ID)
		equal(f, "offered after the deadline", ids(got.Offered), []string(nil))
		equal(f, "has the log", got.Outstanding[offered.ID].Logged, true)
		f.clock.Advance(time.Second)
		dropped(1)
		equal(f, "open", f.deviceNow(d.ID).Open, 0)
	})
}

// What a device should fetch is due from when it came up until a time later: a delivery, another policy, and a new version.
func TestWaiting(t *testing.T) {
	withCompany(t, func(f *fixture) {
		told, moves, behind, current := f.deviceFor("SN-1"), f.deviceFor("SN-2"), f.deviceFor("SN-3"), f.deviceFor("SN-4")
		report := f.observation(current.ID)
		report.Management, report.AppliedPolicy, report.AppliedVersion = asset.Agent, current.PolicyID, 1
		f.observe(report)
		f.clock.Advance(time.Hour)
		before := f.clock.Now()
		waiting := func(want ...string) {
			f.Helper()
			got, err := f.db.Waiting(f.Context(), before, f.clock.Now(), 10)
			f.ok(err)
			slices.Sort(got)
			slices.Sort(want)
			equal(f, "waiting", got, want)
		}
		f.clock.Advance(time.Minute)
		waiting()
		f.deliver(told, command.Reboot, f.clock.Now().Add(time.Minute))
		c := f.intent(f.asset(moves.AssetID), command.ChangePolicy)
		c.State, c.PolicyID = command.Sent, f.agentPolicy("Other").ID
		_, _, err := f.db.Begin(f.Context(), c, nil)
		f.ok(err)
		for _, d := range []agentdevice.Device{behind, current} {
			_, err := f.db.SavePolicy(f.Context(), f.policy(d.PolicyID), 1, policy.Revision{SavedAt: f.clock.Now()})
			f.ok(err)
		}
		report.AppliedVersion, report.ObservedAt = f.policy(current.PolicyID).Version, f.clock.Now()
		report.ReportedAt = report.ObservedAt
		f.observe(report)
		waiting(told.ID, moves.ID, behind.ID)
		before = f.clock.Now()
		f.clock.Advance(time.Minute)
		waiting()
	})
}

// A command that was kept for a device at the moment at which it ended is not fetched: it ends,
// whatever replicas sweep, and no other does.
func TestEndOrphans(t *testing.T) {
	withCompany(t, func(f *fixture) {
		gone, stays, second := f.deviceFor("SN-1"), f.deviceFor("SN-2"), f.open(f)
		ended, err := f.db.EndAgent(f.Context(), gone, agentdevice.Ending{How: agentdevice.Released, At: f.clock.Now()})
		f.ok(err)
		equal(f, "ended", ended, true)
		late, other := f.deliver(gone, command.Reboot, time.Time{}), f.deliver(stays, command.Reboot, time.Time{})
		equal(f, "of the device that ended", f.command(late.ID).State, command.Sent)
		var all sync.WaitGroup
		for _, db := range []*database.DB{f.db, second} {
			all.Go(func() {
				if err := db.EndOrphans(f.Context(), 10); err != nil {
					f.Error(err)
				}
			})
		}
		all.Wait()
		equal(f, "of the device that ended", f.command(late.ID).State, command.Failed)
		equal(f, "of the other device", f.command(other.ID).State, command.Sent)
		equal(f, "open of both", []int{f.deviceNow(gone.ID).Open, f.deviceNow(stays.ID).Open}, []int{0, 1})
	})
}

// A visit says whether the device has reported the policy that an open command moves it to.
func TestVisit_MovedBack(t *testing.T) {
	withCompany(t, func(f *fixture) {
		d := f.deviceFor("SN-1")
		other := f.agentPolicy("Other")
		report := f.observation(d.ID)
		report.Management, report.AppliedPolicy, report.AppliedVersion = asset.Agent, d.PolicyID, 1
		f.observe(report)
		move := func(to string) {
			f.Helper()
			c := f.intent(f.asset(d.AssetID), command.ChangePolicy)
			c.State, c.PolicyID = command.Sent, to
			_, _, err := f.db.Begin(f.Context(), c, nil)
			f.ok(err)
			f.ok(f.db.AssignPolicy(f.Context(), d.AssetID, 1, to))
		}
		sequence := int64(0)
		hasIt := func(want bool) {
			f.Helper()
			sequence++
			got, taken := f.visit(f.db, d, sequence)
			equal(f, "taken", taken, true)
			equal(f, "has it", got.Device.HasIt, want)
		}
		hasIt(false)
		move(other.ID)
		hasIt(false)
		move(d.PolicyID)
		hasIt(true)
		p := f.policy(d.PolicyID)
		_, err := f.db.SavePolicy(f.Context(), p, 1, policy.Revision{SavedAt: f.clock.Now()})
		f.ok(err)
		hasIt(false)
	})
}
