package database_test

import (
	"testing"
	"time"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/enrolment"
)

func TestADeviceJoinsReportsAndLeaves(t *testing.T) {
	withCompany(t, func(f *fixture) {
		p := f.newPolicy("Warehouse")
		o := f.joined("enterprises/LCacme/devices/d1", p.ID)
		o.AppliedPolicy, o.ReportedAt = "", time.Time{}
		change := f.observe(o)
		if !change.Applied || !change.Enrolled || change.Epoch != 1 || change.PolicyNew {
			f.Fatalf("joining: %+v", change)
		}
		a := f.asset(change.AssetID)
		equal(f, "status", a.Status, asset.Synchronizing)
		equal(f, "identification", a.Identification, "Phone 1 s/d1")
		equal(f, "policy's name", a.Device.PolicyName, "Warehouse")
		equal(f, "syncedAt", a.SyncedAt, time.Time{})

		o = f.seen(o.Device)
		o.AppliedPolicy, o.AppliedVersion = p.ID, 1
		change = f.observe(o)
		if change.Enrolled || !change.PolicyNew || change.PolicyID != p.ID {
			f.Fatalf("applying: %+v", change)
		}
		a = f.asset(a.ID)
		equal(f, "status", a.Status, asset.Active)
		equal(f, "syncedAt", a.SyncedAt, f.clock.Now())
		equal(f, "applied", a.Device.PolicyApplied, 1)

		wipe, lock := f.begin(a, command.WipeCompanyData), f.begin(a, command.Lock)
		o = f.seen(o.Device)
		o.Gone = true
		if change = f.observe(o); !change.Ended || change.Epoch != 1 {
			f.Fatalf("leaving: %+v", change)
		}
		a = f.asset(a.ID)
		equal(f, "status", a.Status, asset.Deleted)
		equal(f, "device", a.Device, nil)
		equal(f, "wipe", f.command(wipe.ID).State, command.Succeeded)
		equal(f, "lock", f.command(lock.ID).State, command.Failed)

		if change = f.observe(f.seen(o.Device)); change != (enrolment.Change{}) {
			f.Fatalf("a late report: %+v", change)
		}
	})
}
