package database_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/durable"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/resource"
)

// A new table must be said to belong to companies, or to none.
func TestCompanyTables(t *testing.T) {
	withCompany(t, func(f *fixture) {
		ofCompanies, ofNone := database.CompanyTables()
		listed := append(ofCompanies, ofNone...)
		there, err := f.db.TableNames(f.Context())
		f.ok(err)
		for _, table := range there {
			if n := len(slices.DeleteFunc(slices.Clone(listed), func(name string) bool { return name != table })); n != 1 {
				f.Errorf("the table %s is %d times in ofCompany and ofService", table, n)
			}
		}
		equal(f, "tables", len(listed), len(there))
	})
}

// rows are the rows of all tables, as text, by table.
func (f *fixture) rows() map[string][]string {
	f.Helper()
	all := map[string][]string{}
	ofCompanies, ofNone := database.CompanyTables()
	for _, table := range append(ofCompanies, ofNone...) {
		rows, err := f.db.Text(f.Context(), `SELECT * FROM `+table)
		f.ok(err)
		slices.Sort(rows)
		all[table] = rows
	}
	return all
}

// filled fills the fixture's company with devices and commands, whose management ended.
func (f *fixture) filled(slug string, devices int) {
	f.Helper()
	p := f.newPolicy("p " + slug)
	for n := range devices {
		device := slug + words(n)
		a := f.enroll(device, p.ID)
		f.at(device, 1)
		f.begin(a, command.Lock)
		gone := f.observation(device)
		gone.Gone = true
		f.observe(gone)
	}
	f.ok(f.db.CreateUser(f.Context(), account.User{ID: resource.NewID(), CompanyID: f.company.ID, Email: slug + "@example.com",
		Role: account.Viewer, CreatedAt: f.clock.Now()}))
}

func (f *fixture) unconnected() {
	f.Helper()
	_, err := f.db.UpdateCompany(f.Context(), f.company.ID, func(c *company.Company) error { c.Enterprise = ""; return nil })
	f.ok(err)
}

func TestDeleteCompany(t *testing.T) {
	withCompany(t, func(f *fixture) {
		doomed := f.company
		f.company = f.newCompany("other")
		f.filled("other", 3)
		f.company = doomed
		before := f.rows()
		f.filled("acme", 3)
		f.code(fault.Refused, f.db.DeleteCompany(f.Context(), doomed.ID, &keeper{})) // connected
		f.unconnected()
		p := f.newPolicy("last")
		last := f.enroll("last", p.ID)
		f.code(fault.Refused, f.db.DeleteCompany(f.Context(), doomed.ID, &keeper{})) // a device is managed
		gone := f.observation("last")
		gone.Gone = true
		f.observe(gone)
		full := errors.New("the disk is full")
		if err := f.db.DeleteCompany(f.Context(), doomed.ID, &keeper{fail: full}); !errors.Is(err, full) {
			f.Fatalf("an export that failed: %v", err)
		}
		owner, err := f.db.CompanyByID(f.Context(), doomed.ID)
		f.ok(err)
		equal(f, "stopped after it failed", owner.Settings.Stop, access.Stop{})
		equal(f, "asset after it failed", f.asset(last.ID).Status, asset.Deleted)

		kept := &keeper{}
		f.ok(f.db.DeleteCompany(f.Context(), doomed.ID, kept))
		equal(f, "exported", words(kept.committed, len(kept.rows["companies"]), len(kept.rows["assets"]), len(kept.rows["commands"]),
			len(kept.rows["asset_places"]), len(kept.rows["users"])), "true 1 4 3 3 1")
		after := f.rows()
		for table, rows := range after {
			for _, row := range rows {
				if strings.Contains(row, doomed.ID) {
					f.Errorf("%s still has %s", table, row)
				}
			}
			others := slices.DeleteFunc(before[table], func(row string) bool { return strings.Contains(row, doomed.ID) })
			equal(f, "rows of others in "+table, rows, others)
		}
		equal(f, "companies", len(after["companies"]), 1)
		f.code(fault.NotFound, f.db.DeleteCompany(f.Context(), doomed.ID, &keeper{}))
	})
}

// deletesOn makes this test program one that deletes a company, until it is killed.
const deletesOn = "MUSTER_TEST_DELETES_ON"

func deleteUntilKilled(url string) error {
	db, err := database.Open(context.Background(), database.Options{URL: url, Now: time.Now})
	if err != nil {
		return err
	}
	c, err := db.CompanyBySlug(context.Background(), "acme")
	if err != nil {
		return err
	}
	return db.DeleteCompany(context.Background(), c.ID, &keeper{})
}

// Killed with SIGKILL wherever it is, a deletion leaves everything or goes on, by the
// service alone.
func TestDeleteCompany_Killed(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		f := newFixture(t, e)
		f.filled("acme", 450)
		f.unconnected()
		count := func(table string) string {
			n, err := f.db.Text(f.Context(), `SELECT CAST(COUNT(*) AS TEXT) FROM `+table)
			f.ok(err)
			return n[0]
		}
		all := count("commands")
		alarms, k := 0, f.keeper()
		k.Alarm = func(broken int) { alarms = broken }
		f.ok(k.Seal(f.Context()))
		for _, table := range []string{"activity", "commands"} {
			before := count(table)
			if !killWorker(f, deletesOn, func() bool { return count(table) < before }) {
				f.Logf("the deletion ended before it was killed at %s", table)
			}
			if count("company_deletions") == "0" && count("companies") == "1" && count("commands") != all {
				f.Error("rows are gone, and the deletion does not go on")
			}
			f.ok(k.Inspect(f.Context()))
			equal(f, "broken chains half-way", alarms, 0)
		}
		f.clock.Advance(time.Hour * 24 * 365) // the killed processes' clock is the machine's
		f.ok(f.db.FinishDeletions(f.Context()))
		ofCompanies, _ := database.CompanyTables()
		for _, table := range ofCompanies {
			equal(f, "rows in "+table, count(table), "0")
		}
	})
}

// Thousands of old commands go in small transactions.
func TestRetain_InParts(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.clock.Advance(500 * 24 * time.Hour)
		a := f.enroll("d", f.newPolicy("p").ID)
		for range 1000 {
			f.finished(a, 450*24*time.Hour, command.Succeeded, "")
		}
		parts, most := 0, 0
		f.db.OnStatement(func(query string, args []any) {
			if strings.HasPrefix(query, "DELETE FROM commands") {
				parts, most = parts+1, max(most, len(args))
			}
		})
		f.ok(f.db.Retain(f.Context(), f.clock.Now()))
		equal(f, "parts and their rows", fmt.Sprint(parts, most), "10 100")
	})
}

// A stop that an administrator made is not ended by deletions that are broken off: the company
// stays stopped.
func TestDeleteCompany_BrokenOffKeepsTheStop(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.unconnected()
		f.stop(access.Stop{At: f.clock.Now(), Reason: "a stolen account", All: true})
		func() {
			defer func() { _ = recover() }()
			_ = f.db.DeleteCompany(f.Context(), f.company.ID, dying{})
		}()
		if err := f.db.DeleteCompany(f.Context(), f.company.ID, &keeper{fail: errors.New("the disk is full")}); err == nil {
			f.Fatal("a deletion without an export succeeded")
		}
		owner, err := f.db.CompanyByID(f.Context(), f.company.ID)
		f.ok(err)
		equal(f, "all stopped", owner.Settings.Stop.All, true)
	})
}

// A deletion that is refused after the export leaves the company as it was.
func TestDeleteCompany_RefusedAfterTheExport(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.unconnected()
		p := f.newPolicy("p")
		f.code(fault.Refused, f.db.DeleteCompany(f.Context(), f.company.ID, &enrolling{then: func() { f.enroll("late", p.ID) }}))
		owner, err := f.db.CompanyByID(f.Context(), f.company.ID)
		f.ok(err)
		equal(f, "stop", owner.Settings.Stop, access.Stop{})
	})
}

// A company that is being deleted gets no enterprise, however far its sign-up was.
func TestDeleteCompany_GetsNoEnterprise(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.unconnected()
		begun := company.Signup{State: "s1", CompanyID: f.company.ID, Name: "signupUrls/C1",
			Address: "https://vendor/1", Begun: f.clock.Now()}
		f.ok(f.db.SaveSignup(f.Context(), begun))
		dies, kill := context.WithCancel(f.Context())
		deletes := false
		f.db.OnStatement(func(query string, _ []any) {
			deletes = deletes || strings.HasPrefix(query, "INSERT INTO company_deletions")
			if deletes && strings.HasPrefix(query, "SELECT ") && strings.Contains(query, " LIMIT ") {
				kill() // before the first rows go
			}
		})
		if err := f.db.DeleteCompany(dies, f.company.ID, &keeper{}); err == nil {
			f.Fatal("the deletion was not broken off")
		}
		f.db.OnStatement(func(string, []any) {})
		_, err := f.db.Signup(f.Context(), begun.State)
		f.ok(err)
		f.code(fault.Refused, f.db.KeepSignupToken(f.Context(), begun.State, "t"))
		f.code(fault.Refused, f.db.FinishSignup(f.Context(), begun.State, "enterprises/LCnew"))
		begun.State = "s2"
		f.code(fault.Refused, f.db.SaveSignup(f.Context(), begun))
		owner, err := f.db.CompanyByID(f.Context(), f.company.ID)
		f.ok(err)
		equal(f, "enterprise", owner.Enterprise, "")
		f.clock.Advance(time.Hour)
		f.ok(f.db.FinishDeletions(f.Context()))
		_, err = f.db.CompanyByID(f.Context(), f.company.ID)
		f.code(fault.NotFound, err)
	})
}

// enrolling is an export during which something happens.
type enrolling struct {
	keeper
	then func()
}

func (k *enrolling) Commit() error {
	k.then()
	return k.keeper.Commit()
}

// dying is a process that ends when an export begins.
type dying struct{ durable.RowExporter }

func (dying) Begin() error { panic("killed") }
