package database_test

import (
	"slices"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/job"
)

func (f *fixture) stop(s access.Stop) {
	f.Helper()
	_, err := f.db.UpdateCompany(f.Context(), f.company.ID, company.Change(func(c *company.Company) { c.Settings.Stop = s }))
	f.ok(err)
}

// While a company is stopped, what its keys and connections sent to an agent ends
// if the device was never offered it. The rest stays: what was offered, what
// people sent, what another company's keys sent.
func TestWithdraw(t *testing.T) {
	withCompany(t, func(f *fixture) {
		d, err := f.enrollAgent(f.agentPolicy("Kiosk"), "SN-1")
		f.ok(err)
		d, err = f.db.AgentDevice(f.Context(), d.ID)
		f.ok(err)
		a := f.asset(d.AssetID)
		send := func(kind command.Type, by access.Kind, brings agentdevice.State) command.Command {
			c := f.intent(a, kind)
			c.State, c.Ref, c.Actor.Kind = command.Sent, "agent/"+d.ID+"/"+c.ID, by
			stored, begun, err := f.db.Begin(f.Context(), c, &agentdevice.Delivery{CommandID: c.ID, DeviceID: d.ID, Type: string(kind),
				Args: []byte(`{}`), CreatedAt: c.CreatedAt, Brings: brings})
			f.ok(err)
			if !begun {
				f.Fatal("not begun")
			}
			return stored
		}
		offered := send(command.Reboot, access.APIKey, "")
		f.clock.Advance(time.Second)
		got, err := f.db.Offer(f.Context(), d, f.clock.Now().Add(time.Minute), 5)
		f.ok(err)
		if len(got) != 1 {
			f.Fatalf("offered %+v", got)
		}
		streamed := f.intent(a, command.StatusReport)
		streamed.State, streamed.Ref, streamed.Actor.Kind = command.Sent, "agent/"+d.ID+"/"+streamed.ID, access.APIKey
		_, _, err = f.db.Begin(f.Context(), streamed,
			&agentdevice.Delivery{CommandID: streamed.ID, DeviceID: d.ID, Type: string(streamed.Type),
				Args: []byte(`{}`), CreatedAt: streamed.CreatedAt, LeaseUntil: streamed.CreatedAt.Add(time.Second)})
		f.ok(err)
		if got, err = f.db.Offer(f.Context(), d, f.clock.Now().Add(time.Minute), 5); err != nil || len(got) != 0 {
			f.Errorf("a check-in is offered %+v, %v: the stream has it", got, err)
		}
		f.ok(f.db.ExpireDeliveryLeases(f.Context())) // in the millisecond in which it was made
		if got, err = f.db.Offer(f.Context(), d, f.clock.Now().Add(time.Minute), 5); err != nil || len(got) != 2 {
			f.Errorf("after a start, %+v is offered, %v", got, err)
		}
		f.ok(f.db.ExpireDeliveryLeases(f.Context()))
		f.clock.Advance(time.Hour) // the lease has ended: the device may have it all the same
		launch, sync := send(command.LaunchApp, access.APIKey, ""), send(command.SyncPolicy, access.Connection, "")
		person, wipe := send(command.Shutdown, access.User, ""), send(command.WipeCompanyData, access.APIKey, agentdevice.WipePending)

		withdraw := func() []command.Type {
			kinds, err := f.db.Withdraw(f.Context(), "cancelled: because", 10)
			f.ok(err)
			slices.Sort(kinds)
			return kinds
		}
		if kinds := withdraw(); len(kinds) != 0 {
			f.Fatalf("withdrew %v from a company that is not stopped", kinds)
		}
		f.stop(access.Stop{At: f.clock.Now(), Reason: "a leak"})
		equal(f, "stops and ends of stops", words(f.recorded(activity.CompanyStopped), f.recorded(activity.CompanyResumed)), "1 0")
		equal(f, "withdrawn", withdraw(), []command.Type{command.LaunchApp, command.SyncPolicy, command.WipeCompanyData})
		for _, c := range []command.Command{launch, sync, wipe} {
			if now := f.command(c.ID); now.State != command.Failed || now.Outcome != "cancelled: because (a leak)" {
				f.Errorf("%s is %s: %q", c.Type, now.State, now.Outcome)
			}
		}
		for _, c := range []command.Command{offered, streamed, person} {
			if now := f.command(c.ID); now.State != command.Sent {
				f.Errorf("%s is %s: %q", c.Type, now.State, now.Outcome)
			}
		}
		if d, err = f.db.AgentDevice(f.Context(), d.ID); err != nil || d.State != agentdevice.Active || d.Open != 3 {
			f.Errorf("the device is %s with %d deliveries, %v", d.State, d.Open, err)
		}
		if kinds := withdraw(); len(kinds) != 0 {
			f.Errorf("withdrew %v once more", kinds)
		}
		f.stop(access.Stop{})
		for _, action := range []activity.Action{activity.CompanyStopped, activity.CompanyResumed} {
			entries, err := f.db.Activity(f.Context(), activity.Filter{CompanyID: f.company.ID, Action: action}, activity.Cursor{}, 10)
			f.ok(err)
			if len(entries) != 1 {
				f.Errorf("%s: %d entries", action, len(entries))
			}
		}
	})
}

// A stop pauses the jobs that run when it begins.
func TestWithdraw_PausesJobs(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.fleetOf(1)
		r := f.jobReplica(f.db, &sender{sent: map[string]int{}}, nil)
		_, p := f.jobMaker()
		j, err := r.service.Create(f.Context(), p, job.Spec{Command: "reboot", Words: "all=true",
			Filter: asset.Filter{CompanyID: f.company.ID}, Rate: 1})
		f.ok(err)
		f.stop(access.Stop{At: f.clock.Now(), Reason: "a leak"})
		now, err := f.db.Job(f.Context(), f.company.ID, j.ID)
		f.ok(err)
		equal(f, "status", now.Status, job.Paused)
	})
}

// A command that was offered, or ended, after a replica saw it to wait is not withdrawn.
func TestWithdraw_ChangedSinceItWasSeen(t *testing.T) {
	withCompany(t, func(f *fixture) {
		d := f.deviceFor("SN-1")
		ended, offered := f.deliver(d, command.Reboot, time.Time{}), f.deliver(d, command.LaunchApp, time.Time{})
		_, _, err := f.db.Advance(f.Context(), ended.ID, command.Transition{From: []command.State{command.Sent}, To: command.Succeeded})
		f.ok(err)
		withdraws := func(c command.Command, open int, want command.State) {
			f.Helper()
			taken, err := f.db.WithdrawSeen(f.Context(), c, d.ID)
			f.ok(err)
			equal(f, string(c.Type), words(taken, f.command(c.ID).State, f.deviceNow(d.ID).Open), words(false, want, open))
		}
		withdraws(ended, 1, command.Succeeded)
		f.clock.Advance(time.Second)
		_, err = f.db.Offer(f.Context(), d, f.clock.Now().Add(time.Minute), 5)
		f.ok(err)
		withdraws(offered, 1, command.Sent)
	})
}

// What keys sent through the platform is given to one caller to cancel, once in a
// while, for as long as it is open and the company is stopped.
func TestToCancel(t *testing.T) {
	withCompany(t, func(f *fixture) {
		a := f.enroll("d1", f.newPolicy("Fleet").ID)
		send := func(by access.Kind, ref string) command.Command {
			c := f.intent(a, command.Lock)
			c.Actor.Kind, c.State, c.Ref = by, command.Sent, ref
			stored, _, err := f.db.Begin(f.Context(), c, nil)
			f.ok(err)
			return stored
		}
		key := send(access.APIKey, "enterprises/LCacme/devices/d1/operations/1")
		send(access.User, "enterprises/LCacme/devices/d1/operations/2")
		send(access.APIKey, "")
		second := f.open(f.T)
		due := func() (ids []string) {
			for _, db := range []*database.DB{f.db, second} {

				found, err := db.ToCancel(f.Context(), time.Minute, 10)
				f.ok(err)
				for _, c := range found {
					ids = append(ids, c.ID)
				}
			}
			return ids
		}
		equal(f, "not stopped", len(due()), 0)
		f.stop(access.Stop{At: f.clock.Now(), Reason: "a leak"})
		equal(f, "stopped", due(), []string{key.ID})
		equal(f, "at once again", len(due()), 0)
		f.clock.Advance(time.Minute)
		equal(f, "a minute later", due(), []string{key.ID})
		f.clock.Advance(time.Minute)
		_, _, err := f.db.Advance(f.Context(), key.ID, command.Transition{From: []command.State{command.Sent}, To: command.Succeeded})
		f.ok(err)
		equal(f, "ended", len(due()), 0)
	})
}
