package database_test

import (
	"encoding/json"
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
	"github.com/musterhq/muster/internal/enrollment"
	"github.com/musterhq/muster/internal/fault"
)

// checkCounts compares the kept counts with the assets.
func (f *fixture) checkCounts() {
	f.Helper()
	kept, err := f.db.Text(f.Context(), `SELECT company_id, status, policy_id, count FROM asset_counts WHERE count <> 0 ORDER BY 1, 2, 3`)
	f.ok(err)
	counted, err := f.db.Text(f.Context(), `SELECT company_id, status, policy_id, COUNT(*) FROM assets GROUP BY 1, 2, 3 ORDER BY 1, 2, 3`)
	f.ok(err)
	equal(f, "kept counts", kept, counted)
	kept, err = f.db.Text(f.Context(), `SELECT company_id, policy_id, month, count FROM patch_counts WHERE count <> 0 ORDER BY 1, 2, 3`)
	f.ok(err)
	reported, err := f.db.Text(f.Context(),
		`SELECT company_id, policy_id, specifications FROM assets WHERE status IN ('ACTIVE', 'INACTIVE', 'SYNCHRONIZING')`)
	f.ok(err)
	months := map[string]int{}
	for _, line := range reported {
		parts := strings.SplitN(line, "|", 3)
		facts := map[string]string{}
		if parts[2] != "" {
			f.ok(json.Unmarshal([]byte(parts[2]), &facts))
		}
		month := ""
		if at, err := time.Parse("2006-01-02", facts["securityPatchLevel"]); err == nil {
			month = at.Format("2006-01")
		}
		months[parts[0]+"|"+parts[1]+"|"+month]++
	}
	counted = nil
	for key, n := range months {
		counted = append(counted, fmt.Sprint(key, "|", n))
	}
	slices.Sort(counted)
	slices.Sort(kept)
	equal(f, "kept patch levels", kept, counted)
}

// Whatever devices say, there are few cells; and who is limited to policies
// sees only theirs.
func TestCounts_PatchLevels(t *testing.T) {
	withCompany(t, func(f *fixture) {
		a, b := f.newPolicy("a").ID, f.newPolicy("b").ID
		for n, level := range []string{"2026-10-05", "2026-10-01", "2026-09-05", "", "tomorrow", "1999-01-01", "2026-13-01", "2026-1",
			"2026x10-01", `"securityPatchLevel":"2026-08-01`} {
			o := f.joined(fmt.Sprint("p", n), []string{a, b}[n%2])
			o.Specifications = map[string]string{"securityPatchLevel": level}
			f.observe(o)
		}
		f.checkPatches(nil, "2026-10=2 2026-09=1 =7")
		f.checkPatches([]string{b}, "2026-10=1 =4")
		f.checkPatches([]string{}, "")
		o := f.observation("p0")
		o.Specifications = map[string]string{"securityPatchLevel": "2026-11-05"}
		f.observe(o)
		f.checkPatches(nil, "2026-11=1 2026-10=1 2026-09=1 =7")
		f.observe(enrollment.Observation{CompanyID: f.company.ID, Device: o.Device, Gone: true, ObservedAt: f.clock.Now()})
		f.checkPatches(nil, "2026-10=1 2026-09=1 =7")
	})
}

func (f *fixture) checkPatches(policies []string, want string) {
	f.Helper()
	levels, err := f.db.PatchLevels(f.Context(), f.company.ID, policies)
	f.ok(err)
	var got []string
	for _, l := range levels {
		got = append(got, fmt.Sprint(l.Month, "=", l.Devices))
	}
	equal(f, "patch levels", strings.Join(got, " "), want)
}

// change makes one random change to a company's assets.
func (f *fixture) change(r *rapid.T, c company.Company, policies []string) error {
	device := fmt.Sprint(c.Slug, "-d", rapid.IntRange(0, 5).Draw(r, "device"))
	o := f.observation(device)
	o.CompanyID = c.ID
	o.PolicyID = rapid.SampledFrom(append(policies, "")).Draw(r, "policy")
	o.Specifications = map[string]string{"securityPatchLevel": rapid.SampledFrom([]string{"", "2026-10-05", "2026-09-01", "never"}).Draw(r,
		"patch")}
	if rapid.Bool().Draw(r, "located") {
		o.Location = &asset.Location{Latitude: 52.5, Longitude: 13.4, AccuracyMeters: 20, ReportedAt: o.ObservedAt}
	}
	o.AppliedPolicy = rapid.SampledFrom(append(policies, "")).Draw(r, "applied")
	o.AppliedVersion = rapid.IntRange(0, 3).Draw(r, "version")
	o.Management = rapid.SampledFrom([]asset.Management{asset.Platform, asset.Platform, asset.Agent}).Draw(r, "management")
	o.StatusReport = json.RawMessage(rapid.SampledFrom([]string{"", `{}`, `{"batteryLevel":14.5,"policyCompliant":true}`,
		`{"batteryLevel":80,"policyCompliant":false,"applications":[{"packageName":"com.a","versionCode":1},{"packageName":"com.b"}]}`,
		`{"applications":[{"packageName":"com.a","versionCode":2}]}`, `{"applications":[{"packageName":"com.a"}]}`}).Draw(r, "report"))
	if rapid.Bool().Draw(r, "lost") {
		o.LostMode = new(true)
	}
	switch rapid.IntRange(0, 7).Draw(r, "change") {
	case 0:
		return f.db.ImportAssets(f.Context(), []asset.Asset{{ID: fmt.Sprint(c.Slug, f.clock.Now().UnixNano()), CompanyID: c.ID,
			Tags: []string{"shop", "Floor 3"}[:rapid.IntRange(0, 2).Draw(r, "tags")], CustomData: map[string]string{"user": "Ada L."},
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
	if fault.CodeOf(err) == fault.Refused { // an agent is not moved to a policy of another company
		return nil
	}
	return err
}

func TestCounts_EqualTheAssets(t *testing.T) {
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
func TestCounts_EqualTheAssetsUnderContention(t *testing.T) {
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
		duplicates, err := f.db.Text(f.Context(), `SELECT serial_key FROM assets GROUP BY serial_key HAVING COUNT(*) > 1`)
		f.ok(err)
		equal(f, "devices with two assets", duplicates, []string(nil))
	})
}
