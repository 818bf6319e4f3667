package database_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/fault"
)

// connect gives the fixture's company an enterprise.
func (f *fixture) connect(enterprise string) {
	f.Helper()
	_, err := f.db.UpdateCompany(f.Context(), f.company.ID, func(c *company.Company) error {
		c.Enterprise = enterprise
		return nil
	})
	f.ok(err)
}

// Giving up an enterprise ends its devices and leaves their commands open, once, and
// only what was begun.
func TestDisconnection(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		f := newFixture(t, e)
		f.connect("enterprises/a")
		policy := f.newPolicy("p").ID
		a := f.enroll("d", policy)
		sent := f.begin(a, command.Lock)
		now := f.clock.Now()
		finish := func() error { return f.db.FinishDisconnection(f.Context(), f.company.ID, "enterprises/a", now) }
		f.code(fault.Refused, finish())
		f.code(fault.Refused, f.db.BeginDisconnection(f.Context(), f.company.ID, "enterprises/a", false, now))
		f.code(fault.Refused, f.db.BeginDisconnection(f.Context(), f.company.ID, "enterprises/b", true, now))
		f.ok(f.db.SetEnterpriseLost(f.Context(), f.company.ID, "enterprises/a", true, now))
		f.ok(f.db.SetEnterpriseLost(f.Context(), f.company.ID, "enterprises/a", true, now.Add(time.Hour)))
		for range 2 {
			f.ok(f.db.BeginDisconnection(f.Context(), f.company.ID, "enterprises/a", true, now))
		}
		troubles, err := f.db.EnterpriseTroubles(f.Context())
		f.ok(err)
		found := troubles[f.company.ID]
		equal(f, "trouble", []bool{found.LostSince.Equal(now.Truncate(time.Millisecond)),
			found.Disconnecting.Equal(now.Truncate(time.Millisecond))}, []bool{true, true})
		f.ok(finish())
		f.code(fault.Refused, finish())
		ended, err := f.db.Asset(f.Context(), f.company.ID, a.ID)
		f.ok(err)
		equal(f, "status", ended.Status, asset.Deleted)
		open, err := f.db.Command(f.Context(), sent.ID)
		f.ok(err)
		equal(f, "command", open.State, command.Unconfirmed)
		owner, err := f.db.CompanyByID(f.Context(), f.company.ID)
		f.ok(err)
		equal(f, "connected", owner.Connected(), false)
		troubles, err = f.db.EnterpriseTroubles(f.Context())
		f.ok(err)
		equal(f, "troubles", len(troubles), 0)
		former, err := f.db.FormerEnterprise(f.Context(), "enterprises/a")
		f.ok(err)
		equal(f, "former", former, true)

		f.connect("enterprises/b")
		f.ok(f.db.BeginDisconnection(f.Context(), f.company.ID, "enterprises/b", false, now))
		f.ok(f.db.CancelDisconnection(f.Context(), "enterprises/b"))
		f.code(fault.Refused, f.db.FinishDisconnection(f.Context(), f.company.ID, "enterprises/b", now))
	})
}

// What is read of an enterprise while it is given up makes no device of a company that has
// none, or another one.
func TestDisconnection_NoDeviceJoinsAfterwards(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		f := newFixture(t, e)
		f.connect("enterprises/a")
		known, now := f.enroll("enterprises/a/devices/known", ""), f.clock.Now()
		f.ok(f.db.BeginDisconnection(f.Context(), f.company.ID, "enterprises/a", true, now))
		f.ok(f.db.FinishDisconnection(f.Context(), f.company.ID, "enterprises/a", now))
		for _, next := range []string{"", "enterprises/ab"} {
			f.connect(next)
			for _, device := range []string{"known", "new"} {
				for _, message := range []string{"", "of " + device + next} {
					o := f.joined("enterprises/a/devices/"+device, "")
					o.MessageID = message
					equal(f, "joins "+next, f.observe(o).Applied, false)
				}
			}
		}
		equal(f, "status", f.asset(known.ID).Status, asset.Deleted)
		equal(f, "of the next", f.enroll("enterprises/ab/devices/new", "").Status, asset.Active)
		f.checkCounts()
	})
}

// What is remembered of other installations is bounded, and ends after a day.
func TestForeignEnterprises(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		f := newFixture(t, e)
		f.connect("enterprises/own")
		start := f.clock.Now()
		for n := range 110 {
			f.ok(f.db.NoteForeign(f.Context(), fmt.Sprintf("enterprises/%03d\x00", n), start.Add(time.Duration(n)*time.Minute)))
		}
		f.ok(f.db.NoteForeign(f.Context(), "enterprises/own", start.Add(2*time.Hour)))
		last := start.Add(109 * time.Minute)
		found, err := f.db.ForeignEnterprises(f.Context(), last)
		f.ok(err)
		equal(f, "kept", len(found), 99) // and the own
		equal(f, "the last", found[0].Last.Equal(last.Truncate(time.Millisecond)), true)
		found, err = f.db.ForeignEnterprises(f.Context(), last.Add(25*time.Hour))
		f.ok(err)
		equal(f, "a day later", len(found), 0)
	})
}

// One service at a time has a SQLite file.
func TestOpen_AloneOnOneFile(t *testing.T) {
	t.Parallel()
	f := newFixture(t, sqliteEngine(t))
	first, err := database.Open(f.Context(), database.Options{URL: f.url, Now: f.clock.Now, Alone: true})
	f.ok(err)
	if second, err := database.Open(f.Context(), database.Options{URL: f.url, Now: f.clock.Now, Alone: true}); err == nil {
		f.ok(second.Close())
		t.Error("a second service opened the file")
	}
	f.ok(first.Close())
	again, err := database.Open(f.Context(), database.Options{URL: f.url, Now: f.clock.Now, Alone: true})
	f.ok(err)
	f.ok(again.Close())
}
