package database_test

import (
	"flag"
	"fmt"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/test/poll"
)

// growthMonths is how many months of 30 days TestGrowth_LevelsOff lets pass.
var growthMonths = flag.Int("growth-months", 3, "virtual months of TestGrowth_LevelsOff; 6 for the long run")

// growing are those that grow from month to month, with the reason.
var growing = map[string]string{
	"activity":          "it is kept for 400 days, and what deletes it needs the service's keys",
	"pages of the file": "they have the activity",
}

// growthDevices is how many devices there are.
var growthDevices = flag.Int("growth-devices", 10, "devices of TestGrowth_LevelsOff; 100 for the long run")

// Devices that report each day, get commands and enter lost mode, with all kept for 30 days:
// after the second month, only the tables that are listed grow. The number of goroutines stays.
// It does not run beside other tests, whose goroutines would be counted.
func TestGrowth_LevelsOff(t *testing.T) {
	const day, month = 24 * time.Hour, 30
	f := newFixture(t, sqliteEngine(t))
	_, err := f.db.UpdateCompany(f.Context(), f.company.ID, company.Change(func(c *company.Company) {
		c.KeepCommands, c.KeepPlaces, c.KeepEvents = month*day, month*day, month*day
	}))
	f.ok(err)
	policy := f.newPolicy("p")
	var assets []asset.Asset
	for n := range *growthDevices {
		assets = append(assets, f.enroll(fmt.Sprint("d", n), policy.ID))
	}
	var second map[string]int64
	var goroutines int
	for n := 1; n <= *growthMonths*month; n++ {
		for i, a := range assets {
			device := fmt.Sprint("d", i)
			f.finished(a, 0, command.Succeeded, "")
			o := f.observation(device)
			o.Location = &asset.Location{Latitude: float64(n % 80), ReportedAt: f.clock.Now()}
			f.observe(o)
			f.ok(f.lose(f.Context(), f.db, device, n%2 == 0))
		}
		f.clock.Advance(day)
		_, err := f.db.NumberRound(f.Context())
		f.ok(err)
		f.ok(f.db.Retain(f.Context(), f.clock.Now()))
		f.ok(f.db.Sweep(f.Context(), f.clock.Now()))
		if n == 2*month {
			second, goroutines = f.sizes(), runtime.NumGoroutine()
		}
	}
	for name, now := range f.sizes() {
		if then := second[name]; now > then+then/10+10 && growing[name] == "" {
			t.Errorf("%s grew from %d after month 2 to %d after month %d", name, then, now, *growthMonths)
		}
	}
	f.ok(poll.For(poll.Patience, func() error { // those that end with a statement take a moment
		if now := runtime.NumGoroutine(); now > goroutines+10 {
			return fmt.Errorf("%d goroutines after month 2, %d at the end", goroutines, now)
		}
		return nil
	}))
	if second["events"] == 0 || second["commands"] == 0 || second["asset_places"] == 0 {
		t.Errorf("the months left no rows: %v", second)
	}
}

// sizes are the rows of each table and the pages of the file.
func (f *fixture) sizes() map[string]int64 {
	f.Helper()
	all := map[string]int64{}
	number := func(name, query string) {
		text, err := f.db.Text(f.Context(), query)
		f.ok(err)
		all[name], err = strconv.ParseInt(text[0], 10, 64)
		f.ok(err)
	}
	tables, err := f.db.Text(f.Context(), `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`)
	f.ok(err)
	for _, name := range tables {
		number(name, `SELECT CAST(COUNT(*) AS TEXT) FROM "`+name+`"`)
	}
	number("pages of the file", `SELECT CAST(page_count AS TEXT) FROM pragma_page_count`)
	for _, name := range []string{"activity", "events", "commands", "asset_places", "pages of the file"} {
		f.Logf("%s: %d", name, all[name])
	}
	return all
}
