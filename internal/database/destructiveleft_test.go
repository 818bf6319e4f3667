package database_test

import (
	"testing"
	"time"

	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/test/expect"
)

// What is left of the company's limit, and when another device leaves its window.
func TestBegin_DestructiveLeft(t *testing.T) {
	withCompany(t, func(f *fixture) {
		devices := f.fleet(3)
		check := func(when string, remaining int, frees time.Duration, limited bool) {
			t.Helper()
			left, after, on, err := f.db.DestructiveLeft(f.Context(), f.company.ID)
			expect.Equal(t, when, expect.Values{"error": {err, error(nil)}, "remaining": {left, remaining}, "frees": {after, frees},
				"limited": {on, limited}})
		}
		f.setLimit(0, 0)
		check("without a limit", 0, 0, false)
		f.begin(devices[0], command.WipeCompanyData)
		check("without a limit, after a wipe", 0, 0, false)
		f.setLimit(3, 60)
		check("one of three counts", 2, time.Hour, true)
		f.clock.Advance(10 * time.Minute)
		f.begin(devices[1], command.WipeCompanyData)
		check("two of three count", 1, 50*time.Minute, true)
		f.begin(devices[2], command.WipeCompanyData)
		check("all count", 0, 50*time.Minute, true)
		f.setLimit(1, 60)
		check("the limit was lowered", 0, time.Hour, true)
		f.clock.Advance(50 * time.Minute)
		check("the first has left", 0, 10*time.Minute, true)
		f.clock.Advance(10 * time.Minute)
		check("all have left", 1, 0, true)
	})
}
