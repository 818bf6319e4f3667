package database_test

import (
	"testing"
	"time"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/enrollment"
	"github.com/musterhq/muster/internal/fault"
)

// A report from before a move, or from while it was sent, does not take the device back to
// its policy here. One of later does: it was moved at the platform.
func TestObserve_ReportFromBeforeAMove(t *testing.T) {
	withCompany(t, func(f *fixture) {
		before, after := f.newPolicy("before"), f.newPolicy("after")
		a := f.enroll("d1", before.ID)
		report := func(when time.Time) enrollment.Observation {
			return enrollment.Observation{CompanyID: f.company.ID, Device: "d1", Management: asset.Platform,
				ReportedAt: when, ObservedAt: when,
				PolicyID: before.ID, AppliedPolicy: before.ID, AppliedVersion: 1}
		}
		f.clock.Advance(time.Hour)
		early := report(f.clock.Now().Add(-time.Second))
		move := f.intent(a, command.ChangePolicy)
		move.PolicyID = after.ID
		_, _, err := f.db.Begin(f.Context(), move, nil)
		f.ok(err)
		f.clock.Advance(time.Second)
		between := report(f.clock.Now())
		f.clock.Advance(time.Second)
		_, _, err = f.db.Advance(f.Context(), move.ID, command.Transition{From: []command.State{command.Prepared}, To: command.Sent})
		f.ok(err)
		f.ok(f.db.AssignPolicy(f.Context(), a.ID, a.Device.Epoch, after.ID))
		for name, o := range map[string]enrollment.Observation{"before the move": early, "while it was sent": between} {
			f.observe(o)
			reported := f.asset(a.ID)
			equal(f, "after a report from "+name, words(reported.Device.PolicyID, reported.Status), words(after.ID, asset.Synchronizing))
		}
		_, _, err = f.db.Advance(f.Context(), move.ID, command.Transition{From: []command.State{command.Sent}, To: command.Succeeded})
		f.ok(err)
		f.observe(report(between.ObservedAt.Add(500 * time.Millisecond)))
		equal(f, "after a report from before, once the move has succeeded", f.asset(a.ID).Device.PolicyID, after.ID)
		f.clock.Advance(2 * time.Minute)
		f.observe(report(f.clock.Now()))
		equal(f, "after a later report", f.asset(a.ID).Device.PolicyID, before.ID)
		f.checkCounts()
	})
}

// TestAssignPolicy: a move counts at once, is under way until the device has
// reported it, and leaves alone whom it does not concern.
func TestAssignPolicy(t *testing.T) {
	withCompany(t, func(f *fixture) {
		ctx := f.Context()
		before, after := f.newPolicy("before"), f.newPolicy("after")
		count := func(p string) int64 {
			n, err := f.db.CountAssets(ctx, asset.Filter{CompanyID: f.company.ID, PolicyID: p})
			f.ok(err)
			return n
		}
		a := f.enroll("d1", before.ID)
		equal(t, "status", a.Status, asset.Active)
		f.ok(f.db.AssignPolicy(ctx, a.ID, a.Device.Epoch+1, after.ID))
		equal(t, "policy after another epoch's move", f.asset(a.ID).Device.PolicyID, before.ID)

		for range 2 {
			f.ok(f.db.AssignPolicy(ctx, a.ID, a.Device.Epoch, after.ID))
			moved := f.asset(a.ID)
			equal(t, "status", moved.Status, asset.Synchronizing)
			equal(t, "policy", moved.Device.PolicyID, after.ID)
			equal(t, "name", moved.Device.PolicyName, "after")
			equal(t, "devices of the old", count(before.ID), 0)
			equal(t, "devices of the new", count(after.ID), 1)
		}
		f.ok(f.db.AssignPolicy(ctx, a.ID, a.Device.Epoch, before.ID)) // back: it has that applied
		equal(t, "status after the way back", f.asset(a.ID).Status, asset.Active)

		n, err := f.db.MarkInactive(ctx, f.company.ID, f.clock.Now().Add(time.Hour), 10)
		f.ok(err)
		equal(t, "inactive", n, 1)
		f.ok(f.db.AssignPolicy(ctx, a.ID, a.Device.Epoch, after.ID))
		equal(t, "status of a silent device", f.asset(a.ID).Status, asset.Inactive)
		equal(t, "devices of the new", count(after.ID), 1)

		f.ok(f.db.MarkDeleted(ctx, a.ID, a.Device.Epoch, f.clock.Now()))
		f.ok(f.db.AssignPolicy(ctx, a.ID, a.Device.Epoch, before.ID))
		equal(t, "status of what ended", f.asset(a.ID).Status, asset.Deleted)
		equal(t, "devices", count(before.ID)+count(after.ID), 0)
		f.code(fault.NotFound, f.db.AssignPolicy(ctx, "nothing", 1, before.ID))
	})
}
