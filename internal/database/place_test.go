package database_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/database/firsttest"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/resource"
)

func (f *fixture) at(device string, latitude float64) string {
	f.Helper()
	o := f.observation(device)
	o.Location = &asset.Location{Latitude: latitude, Longitude: -13.4, AccuracyMeters: 12.5, ReportedAt: f.clock.Now()}
	return f.observe(o).AssetID
}

func TestTrail_OfADevice(t *testing.T) {
	withCompany(t, func(f *fixture) {
		p := f.newPolicy("Field")
		id := f.enroll("d", p.ID).ID
		f.enroll("still", p.ID)
		f.at("d", 1)
		f.clock.Advance(company.DefaultKeepPlaces - time.Minute)
		f.at("d", 2)
		began := f.clock.Now()
		f.clock.Advance(time.Hour)
		f.at("d", 3)
		f.ok(f.db.Retain(f.Context(), f.clock.Now())) // the first place is older than 90 days
		trail, err := f.db.Trail(f.Context(), f.company.ID, id, time.Time{}, 100)
		f.ok(err)
		equal(f, "trail", trail, []asset.Location{
			{Latitude: 2, Longitude: -13.4, AccuracyMeters: 12.5, ReportedAt: began},
			{Latitude: 3, Longitude: -13.4, AccuracyMeters: 12.5, ReportedAt: f.clock.Now()}})
		trail, err = f.db.Trail(f.Context(), f.company.ID, id, time.Time{}, 1)
		f.ok(err)
		equal(f, "newest", len(trail) == 1 && trail[0].Latitude == 3, true)
		trail, err = f.db.Trail(f.Context(), "other", id, time.Time{}, 100)
		f.ok(err)
		equal(f, "trail for another company", len(trail), 0)

		firsttest.Exec(t, f.url, `WITH RECURSIVE m (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM m WHERE n < 5000)
			INSERT INTO asset_places SELECT '`+id+`', n, 0, 0, 0 FROM m`)
		f.clock.Advance(time.Hour)
		f.at("d", 4)
		trail, err = f.db.Trail(f.Context(), f.company.ID, id, time.Time{}, 2*asset.MaxPlaces)
		f.ok(err)
		equal(f, "the newest stay", fmt.Sprint(len(trail), trail[0].ReportedAt.UnixMilli(), trail[asset.MaxPlaces-1].Latitude), "5000 4 4")

		for _, c := range []struct {
			policies []string
			want     int
		}{{nil, 1}, {[]string{p.ID}, 1}, {[]string{"another"}, 0}, {[]string{}, 0}} {
			places, err := f.db.Located(f.Context(), asset.Filter{CompanyID: f.company.ID, Policies: c.policies}, 10)
			f.ok(err)
			equal(f, "located", len(places), c.want)
		}
		places, err := f.db.Located(f.Context(), asset.Filter{CompanyID: "other"}, 10)
		f.ok(err)
		equal(f, "of another company", len(places), 0)
	})
}

func TestCommands_AcrossDevices(t *testing.T) {
	withCompany(t, func(f *fixture) {
		p := f.newPolicy("Field")
		a := f.enroll("d", p.ID)
		f.begin(a, command.Lock)
		f.clock.Advance(24 * time.Hour)
		c := f.begin(a, command.Reboot)
		_, _, err := f.db.Advance(f.Context(), c.ID, command.Transition{From: []command.State{command.Prepared}, To: command.Succeeded})
		f.ok(err)
		since := f.clock.Now().Add(-48 * time.Hour)
		for _, limit := range []struct {
			policies []string
			want     int
		}{{nil, 2}, {[]string{p.ID}, 2}, {[]string{"another"}, 0}, {[]string{}, 0}} {
			tallies, err := f.db.Tallies(f.Context(), f.company.ID, limit.policies, since)
			f.ok(err)
			equal(f, "days", len(tallies), limit.want)
			open, err := f.db.Unfinished(f.Context(), f.company.ID, limit.policies, since, f.clock.Now(), 10)
			f.ok(err)
			equal(f, "unfinished", open, limit.want/2)
			list, err := f.db.UnfinishedList(f.Context(), f.company.ID, limit.policies, since, f.clock.Now(), 10)
			f.ok(err)
			equal(f, "listed", len(list), limit.want/2)
			late, err := f.db.Unfinished(f.Context(), f.company.ID, limit.policies, f.clock.Now(), f.clock.Now().Add(time.Hour), 10)
			f.ok(err)
			equal(f, "later", late, 0)
		}
		list, err := f.db.UnfinishedList(f.Context(), f.company.ID, nil, since, f.clock.Now(), 1)
		f.ok(err)
		equal(f, "unfinished", words(list[0].Type, list[0].Identification), words(command.Lock, a.Identification))
		tallies, err := f.db.Tallies(f.Context(), f.company.ID, nil, f.clock.Now().Truncate(24*time.Hour))
		f.ok(err)
		equal(f, "today", tallies, []command.Tally{{Day: f.clock.Now().Truncate(24 * time.Hour), State: command.Succeeded, Count: 1}})
	})
}

func TestViews_AreSaved(t *testing.T) {
	withCompany(t, func(f *fixture) {
		for _, id := range []string{"ada", "bob"} {
			f.ok(f.db.CreateUser(f.Context(), account.User{ID: id, CompanyID: f.company.ID, Email: id + "@example.com", Name: id,
				Role: account.Viewer, CreatedAt: f.clock.Now()}))
		}
		save := func(user, view string, shared bool) string {
			id := resource.NewID()
			f.ok(f.db.SaveView(f.Context(), asset.SavedView{ID: id, CompanyID: f.company.ID, UserID: user, Name: view,
				Query: "status=ACTIVE", Shared: shared, CreatedAt: f.clock.Now()}))
			return id
		}
		own, shared := save("ada", "B own", false), save("ada", "A shared", true)
		names := func(company, user string) string {
			views, err := f.db.SavedViews(f.Context(), company, user)
			f.ok(err)
			all := ""
			for _, v := range views {
				all += v.Name + ";"
			}
			return all
		}
		equal(f, "own", names(f.company.ID, "ada"), "A shared;B own;")
		equal(f, "another's", names(f.company.ID, "bob"), "A shared;")
		equal(f, "another company's", names("other", "ada"), "")
		f.ok(f.db.DropView(f.Context(), f.company.ID, "bob", shared, false))
		f.ok(f.db.DropView(f.Context(), f.company.ID, "bob", own, true))
		equal(f, "after another's removal", names(f.company.ID, "ada"), "A shared;B own;")
		f.ok(f.db.DropView(f.Context(), f.company.ID, "ada", own, false))
		equal(f, "after", names(f.company.ID, "ada"), "A shared;")
		f.ok(f.db.DropView(f.Context(), f.company.ID, "bob", shared, true))
		equal(f, "after an administrator's removal", names(f.company.ID, "ada"), "")
	})
}

// A person's limit keeps the others able to save views, and the company's counts the views of all.
func TestViews_AreLimited(t *testing.T) {
	withCompany(t, func(f *fixture) {
		saved := 0
		for n := range asset.MaxViews/asset.MaxUserViews + 1 {
			u := f.user(account.Viewer)
			for range asset.MaxUserViews + 1 {
				err := f.db.SaveView(f.Context(), asset.SavedView{ID: resource.NewID(), CompanyID: f.company.ID, UserID: u.ID, Name: "View",
					Shared: n%2 == 0, CreatedAt: f.clock.Now()})
				if err == nil {
					saved++
				} else {
					f.code(fault.Refused, err)
				}
			}
		}
		equal(f, "saved", saved, asset.MaxViews)
	})
}
