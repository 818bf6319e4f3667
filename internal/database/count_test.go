package database_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/company"
)

// checkCounts compares the kept counts with the assets.
func (f *fixture) checkCounts() {
	f.Helper()
	kept, err := f.db.Text(f.Context(), `SELECT company_id, status, policy_id, count FROM asset_counts WHERE count <> 0 ORDER BY 1, 2, 3`)
	f.ok(err)
	counted, err := f.db.Text(f.Context(), `SELECT company_id, status, policy_id, COUNT(*) FROM assets GROUP BY 1, 2, 3 ORDER BY 1, 2, 3`)
	f.ok(err)
	if !slices.Equal(kept, counted) {
		f.Fatalf("kept counts %v, want %v", kept, counted)
	}
}

// change makes one random change to a company's assets.
func (f *fixture) change(r *rapid.T, c company.Company, policies []string) error {
	device := fmt.Sprint(c.Slug, "-d", rapid.IntRange(0, 5).Draw(r, "device"))
	o := f.seen(device)
	o.CompanyID = c.ID
	o.PolicyID = rapid.SampledFrom(append(policies, "")).Draw(r, "policy")
	o.AppliedPolicy = rapid.SampledFrom(append(policies, "")).Draw(r, "applied")
	switch rapid.IntRange(0, 7).Draw(r, "change") {
	case 0:
		return f.db.ImportAssets(f.Context(), []asset.Asset{{ID: fmt.Sprint(c.Slug, f.clock.Now().UnixNano()), CompanyID: c.ID,
			Specifications: map[string]string{"serialNumber": fmt.Sprint("S", rapid.IntRange(0, 5).Draw(r, "serial"))}}})
	case 1, 2:
		o.Enrolling, o.EnrolledAt = true, o.ObservedAt
		o.SerialNumber, o.Brand = fmt.Sprint("S", rapid.IntRange(0, 5).Draw(r, "serial")), "b"
		o.Previous = []string{fmt.Sprint(c.Slug, "-d", rapid.IntRange(0, 5).Draw(r, "previous"))}
	case 3:
		o.Gone = true
	case 4:
		o.ObservedAt = o.ObservedAt.Add(-time.Duration(rapid.IntRange(0, 20).Draw(r, "late")) * time.Second)
	case 5:
		_, err := f.db.MarkInactive(f.Context(), c.ID, f.clock.Now().Add(-5*time.Second), rapid.IntRange(0, 5).Draw(r, "limit"))
		return err
	case 6:
		ids, err := f.db.Text(f.Context(), `SELECT id, epoch FROM assets WHERE company_id = ? ORDER BY id`, c.ID)
		if err != nil || len(ids) == 0 {
			return err
		}
		id, text, _ := strings.Cut(rapid.SampledFrom(ids).Draw(r, "asset"), "|")
		epoch, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		return f.db.MarkDeleted(f.Context(), id, epoch, f.clock.Now())
	}
	_, err := f.db.Observe(f.Context(), o)
	return err
}

func TestKeptCountsEqualTheAssets(t *testing.T) {
	withCompany(t, func(f *fixture) {
		policies := []string{f.newPolicy("a").ID, f.newPolicy("b").ID}
		round := 0
		rapid.Check(f, func(r *rapid.T) {
			round++
			c := f.newCompany(fmt.Sprint("c", round))
			for range rapid.IntRange(1, 25).Draw(r, "changes") {
				if err := f.change(r, c, policies); err != nil {
					r.Fatal(err)
				}
			}
			f.checkCounts()
		})
	})
}

// The same under contention: observations of the same devices from many
// goroutines over two replicas.
func TestKeptCountsEqualTheAssetsUnderContention(t *testing.T) {
	withCompany(t, func(f *fixture) {
		second := f.open(f)
		policies := []string{f.newPolicy("a").ID, f.newPolicy("b").ID}
		var all sync.WaitGroup
		for n := range 8 {
			db := f.db
			if n%2 == 1 {
				db = second
			}
			all.Go(func() {
				for step := range 30 {
					o := f.joined(fmt.Sprint("d", (n+step)%5), policies[step%2])
					o.Enrolling = step%3 == 0
					o.Gone = step%7 == 6
					if step%4 == 0 {
						o.AppliedPolicy = policies[(step+1)%2]
					}
					if _, err := db.Observe(f.Context(), o); err != nil {
						f.Error(err)
					}
				}
			})
		}
		all.Wait()
		f.checkCounts()
		// And one device has one asset, however often it was announced at once.
		twins, err := f.db.Text(f.Context(), `SELECT serial_key FROM assets GROUP BY serial_key HAVING COUNT(*) > 1`)
		f.ok(err)
		equal(f, "devices with two assets", twins, []string(nil))
	})
}
