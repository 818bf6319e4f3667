package database_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/database"
)

// finished is a command of the given age that has ended.
func (f *fixture) finished(a asset.Asset, age time.Duration, state command.State, ref string) command.Command {
	f.Helper()
	c := intentAt(a, command.Lock, f.clock.Now().Add(-age))
	c.State, c.IdempotencyRef = state, ref
	_, _, err := f.db.Begin(f.Context(), c, nil)
	f.ok(err)
	return c
}

func (f *fixture) commandsKept(ids ...string) (kept []bool) {
	f.Helper()
	for _, id := range ids {
		_, err := f.db.Command(f.Context(), id)
		kept = append(kept, err == nil)
	}
	return kept
}

func TestRetain(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.clock.Advance(500 * 24 * time.Hour)
		a := f.enroll("d", f.newPolicy("p").ID)
		const old = 401 * 24 * time.Hour
		gone := f.finished(a, old, command.Succeeded, "")
		failed := f.finished(a, old, command.Failed, "")
		young := f.finished(a, old-48*time.Hour, command.Succeeded, "")
		doubtful := f.finished(a, old, command.Unconfirmed, "")
		sent := f.finished(a, old, command.Sent, "")
		owner := f.company
		f.company = f.newCompany("other")
		foreign := f.finished(f.enroll("f", f.newPolicy("q").ID), 300*24*time.Hour, command.Succeeded, "")
		f.company = owner

		f.ok(f.db.Retain(f.Context(), f.clock.Now()))
		equal(f, "kept", f.commandsKept(gone.ID, failed.ID, young.ID, doubtful.ID, sent.ID, foreign.ID),
			[]bool{false, false, true, true, true, true})
		equal(f, "recorded", f.recorded(activity.RetentionApplied), 1)
		f.ok(f.db.Retain(f.Context(), f.clock.Now()))
		equal(f, "recorded after nothing was deleted", f.recorded(activity.RetentionApplied), 1)

		_, err := f.db.UpdateCompany(f.Context(), owner.ID, company.Change(func(c *company.Company) { c.KeepCommands = 24 * time.Hour }))
		f.ok(err)
		f.ok(f.db.Retain(f.Context(), f.clock.Now())) // a shorter time counts at once
		equal(f, "kept for a day", f.commandsKept(young.ID, doubtful.ID, foreign.ID), []bool{false, true, true})
	})
}

// No transaction of a deletion removes more than a hundred rows, so that no request waits
// long for it.
func TestRetain_InSmallTransactions(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.clock.Advance(500 * 24 * time.Hour)
		a := f.enroll("d", f.newPolicy("p").ID)
		for range 230 {
			f.finished(a, 401*24*time.Hour, command.Succeeded, "")
		}
		batches := f.batches("commands")
		f.ok(f.db.Retain(f.Context(), f.clock.Now()))
		equal(f, "rows of each transaction", batches(), "100 100 30")
	})
}

// batches returns what reports how many rows each transaction of a deletion removes from then on.
func (f *fixture) batches(counted string) func() string {
	f.Helper()
	note := `INSERT INTO batches SELECT NEW.` + counted + ` - OLD.` + counted + ` WHERE NEW.` + counted + ` > OLD.` + counted
	driver, source := "sqlite", "file:"+strings.TrimPrefix(f.url, "sqlite:")+"?_pragma=busy_timeout(10000)"
	trigger := `CREATE TRIGGER batch AFTER UPDATE ON retentions BEGIN ` + note + `; END`
	if f.name == "postgres" {
		driver, source = "pgx", f.url
		trigger = `CREATE FUNCTION batch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ` + note + `; RETURN NULL; END $$;
			CREATE TRIGGER batch AFTER UPDATE ON retentions FOR EACH ROW EXECUTE FUNCTION batch()`
	}
	pool, err := sql.Open(driver, source)
	f.ok(err)
	_, err = pool.ExecContext(f.Context(), `CREATE TABLE batches (deleted BIGINT NOT NULL); `+trigger)
	f.ok(err)
	f.ok(pool.Close())
	return func() string { return f.text(`SELECT deleted FROM batches ORDER BY deleted DESC`) }
}

func TestRetain_Places(t *testing.T) {
	withCompany(t, func(f *fixture) {
		p := f.newPolicy("p").ID
		f.enroll("moving", p)
		f.enroll("silent", p)
		moving, silent := f.at("moving", 1), f.at("silent", 2)
		f.clock.Advance(company.DefaultKeepPlaces + time.Hour)
		f.at("moving", 3)
		f.ok(f.db.Retain(f.Context(), f.clock.Now()))
		trail, err := f.db.Trail(f.Context(), f.company.ID, moving, time.Time{}, 10)
		f.ok(err)
		equal(f, "places", len(trail), 1)
		equal(f, "last places", []bool{f.asset(moving).Device.Location != nil, f.asset(silent).Device.Location != nil}, []bool{true, false})
	})
}

// Where a companion was, and a last known place that has no other beside it, as programs before
// left it, are deleted as well.
func TestRetain_PlacesOfCompanions(t *testing.T) {
	withCompany(t, func(f *fixture) {
		a, lone, fresh := f.enroll("d", f.newPolicy("p").ID), f.enroll("lone", ""), f.enroll("fresh", "")
		companion := f.companion(a)
		f.ok(f.lose(f.Context(), f.db, "d", true))
		place := func(at time.Time) string {
			text, err := json.Marshal(asset.Location{Latitude: 28.1, Longitude: -15.4, AccuracyMeters: 5, ReportedAt: at})
			f.ok(err)
			return string(text)
		}
		current, err := f.db.ReportCompanion(f.Context(), companion, agentdevice.CompanionReport{
			Location: json.RawMessage(place(f.clock.Now())), SeenAt: f.clock.Now()})
		f.ok(err)
		equal(f, "current", current, true)
		f.ok(f.db.Write(f.Context(), nil, `UPDATE assets SET location = '`+place(f.clock.Now())+`' WHERE id = '`+lone.ID+`'`))
		located := func(want ...bool) {
			f.Helper()
			f.ok(f.db.Retain(f.Context(), f.clock.Now()))
			got := []bool{}
			for _, id := range []string{a.ID, lone.ID, fresh.ID} {
				got = append(got, f.asset(id).Device.Location != nil)
			}
			equal(f, "located", got, want)
		}
		trail, err := f.db.Trail(f.Context(), f.company.ID, a.ID, time.Time{}, 10)
		f.ok(err)
		equal(f, "places", len(trail), 1)
		located(true, true, false)
		f.clock.Advance(company.DefaultKeepPlaces + time.Hour)
		f.ok(f.db.Write(f.Context(), nil, `UPDATE assets SET location = '`+place(f.clock.Now())+`' WHERE id = '`+fresh.ID+`'`))
		located(false, false, true)
	})
}

// A place that a device reports while older ones are deleted stays.
func TestRetain_KeepsFreshPlaces(t *testing.T) {
	t.Parallel()
	for name, others := range map[string]bool{"the asset has older places": true, "the asset has no other": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, postgresEngine(t))
			f.enroll("d", f.newPolicy("p").ID)
			id := f.at("d", 1)
			if !others {
				f.ok(f.db.Write(t.Context(), nil, `DELETE FROM asset_places WHERE asset_id = '`+id+`'`))
			}
			f.clock.Advance(company.DefaultKeepPlaces + time.Hour)
			device, err := pgx.Connect(t.Context(), f.url)
			f.ok(err)
			defer func() { f.ok(device.Close(context.Background())) }()
			report, err := device.Begin(t.Context())
			f.ok(err)
			now := f.clock.Now()
			_, err = report.Exec(t.Context(), `UPDATE assets SET location = $1 WHERE id = $2`,
				`{"latitude":1,"longitude":1,"accuracyMeters":5,"reportedAt":"`+now.Format(time.RFC3339)+`"}`, id)
			f.ok(err)
			_, err = report.Exec(t.Context(), `INSERT INTO asset_places (asset_id, reported_at, latitude, longitude, accuracy)
				VALUES ($1, $2, 1000000, 1000000, 50)`, id, now.UnixMilli())
			f.ok(err)
			done := make(chan error)
			go func() { done <- f.db.Retain(t.Context(), f.clock.Now()) }()
			f.counts(device, "transactions that wait", 1, waiting)
			f.ok(report.Commit(t.Context()))
			f.ok(<-done)
			if f.asset(id).Device.Location == nil {
				t.Error("the place was deleted")
			}
		})
	}
}

// No transaction removes more than a hundred last known places.
func TestRetain_PlacesInSmallTransactions(t *testing.T) {
	withCompany(t, func(f *fixture) {
		for n := range 130 {
			f.enroll(fmt.Sprint("d", n), "")
		}
		f.ok(f.db.Write(f.Context(), nil, `UPDATE assets SET location = '{"latitude":1,"longitude":1,"accuracyMeters":5,"reportedAt":"`+
			f.clock.Now().Format(time.RFC3339)+`"}' WHERE company_id = '`+f.company.ID+`'`))
		f.clock.Advance(company.DefaultKeepPlaces + time.Hour)
		batches := f.batches("places")
		f.ok(f.db.Retain(f.Context(), f.clock.Now()))
		equal(f, "rows of each transaction", batches(), "100 30")
		equal(f, "left", f.text(`SELECT COUNT(*) FROM assets WHERE location <> ''`), "0")
	})
}

// What was there before an upgrade stays for 30 days, and the log says so, once.
func TestRetain_AfterUpgrade(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.clock.Advance(500 * 24 * time.Hour)
		old := f.finished(f.enroll("d", f.newPolicy("p").ID), 450*24*time.Hour, command.Succeeded, "")
		// as the migration does
		f.ok(f.db.Write(f.Context(), nil, `INSERT INTO retentions (company_id, next_at, commands, places) VALUES ('`+
			f.company.ID+`', -1, 0, 0)`))
		replica := f.open(f.T)
		var done sync.WaitGroup
		for _, db := range []*database.DB{f.db, replica} {
			done.Go(func() {
				if err := db.Retain(f.Context(), f.clock.Now()); err != nil {
					f.Error(err)
				}
			})
		}
		done.Wait()
		equal(f, "announced", f.recorded(activity.RetentionAnnounced), 1)
		_, err := f.db.UpdateCompany(f.Context(), f.company.ID,
			company.Change(func(c *company.Company) { c.KeepCommands = 24 * time.Hour }))
		f.ok(err)
		f.clock.Advance(company.RetentionNotice - time.Minute)
		f.ok(f.db.Retain(f.Context(), f.clock.Now()))
		equal(f, "kept", f.commandsKept(old.ID), []bool{true})
		f.clock.Advance(2 * time.Minute)
		f.ok(f.db.Retain(f.Context(), f.clock.Now()))
		equal(f, "kept", f.commandsKept(old.ID), []bool{false})
		equal(f, "announced", f.recorded(activity.RetentionAnnounced), 1)
	})
}
