package database_test

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/database"
)

// fromVersion upgrades a database of an older version with rows of the companies c1 and c2.
func fromVersion(t *testing.T, name string, version int64, rows func(e *engine) []string) *fixture {
	t.Helper()
	e := emptyEngine(t, name)
	second := strings.NewReplacer("'c1'", "'c2'", "'acme'", "'other'", "'enterprises/LC1'", "''").Replace(firstRows[0])
	f := &fixture{T: t, engine: e}
	all := append(slices.Clone(firstRows), second)
	for _, since := range slices.Sorted(maps.Keys(laterRows)) {
		if version >= since {
			all = append(all, laterRows[since]...)
		}
	}
	f.ok(database.MigrateTo(t.Context(), e.url, version, append(all, rows(e)...)...))
	f.db = e.openAs(t, database.Upgrade)
	var err error
	f.company, err = f.db.CompanyBySlug(t.Context(), "acme")
	f.ok(err)
	return f
}

func (f *fixture) text(query string) string {
	f.Helper()
	rows, err := f.db.Text(f.Context(), query)
	f.ok(err)
	return strings.Join(rows, " ")
}

// A token of a code for several devices that a confirmed request had bound enrolls other devices
// again, also where the device has enrolled since. That of a code for one device stays.
func TestMigration_FreesTokensForSeveralDevices(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"sqlite", "postgres"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := fromVersion(t, name, 370, func(e *engine) []string {
				expires := e.clock.Now().Add(24 * time.Hour).UnixMilli()
				rows := []string{`INSERT INTO policies (id, company_id, name, name_key, type, vr_only, version, description, labels, group_name,
					created_at, updated_at, document)
				 VALUES ('pa', 'c1', 'Agents', 'agents', 'AGENT', FALSE, 1, '', '[]', '', 1700000000000, 1700000000000, '{}')`}
				for n, devices := range map[string]int{"1": 1, "5": 5} {
					rows = append(rows, fmt.Sprintf(`INSERT INTO enrollment_codes (id, company_id, policy_id, management, personal_usage,
						maker_kind, maker_id, maker_name, tags, max_devices, devices, created_at, expires_at, revoked_at, ref, drop_at)
					 VALUES ('code-%s', 'c1', 'pa', 'AGENT', '', 'OPERATOR', '', 'ada', '[]', %d, 0, 1700000000000, %d, 0, '', 0)`,
						n, devices, expires),
						fmt.Sprintf(`INSERT INTO agent_tokens (hash, company_id, policy_id, expires_at, device_id, spent_at, asset_id, epoch, code_id)
					 VALUES ('%x', 'c1', 'p1', %d, '', 0, 'a1', 1, 'code-%s')`, sha256.Sum256([]byte("t"+n)), expires+1, n))
				}
				return rows
			})
			equal(f, "tokens", f.text(`SELECT code_id, asset_id, epoch, policy_id FROM agent_tokens ORDER BY code_id`),
				"code-1|a1|1|p1 code-5||0|pa")
			got, err := f.enrolls(f.Context(), f.db, "t5", "k1", "SN-9", false)
			f.ok(err)
			equal(f, "policy of another device", f.asset(got.AssetID).Device.PolicyID, "pa")
		})
	}
}

// Places that no version before deleted stay for 30 days after the upgrade, and the log says so,
// also where the notice of the version before is over.
func TestMigration_AnnouncesTheDeletionOfLonePlaces(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"sqlite", "postgres"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var next int64
			f := fromVersion(t, name, 380, func(e *engine) []string {
				next = e.clock.Now().Add(-time.Hour).UnixMilli()
				reported := e.clock.Now().Add(-company.DefaultKeepPlaces - time.Hour).Format(time.RFC3339)
				return []string{
					`UPDATE assets SET location = '{"latitude":28.1,"longitude":-15.4,"accuracyMeters":5,"reportedAt":"` +
						reported + `"}' WHERE id = 'a1'`,
					fmt.Sprintf(`INSERT INTO retentions (company_id, next_at, commands, places) VALUES ('c1', %d, 0, 0), ('c2', %[1]d, 0, 0)`, next),
				}
			})
			equal(f, "due", f.text(`SELECT company_id, next_at FROM retentions ORDER BY company_id`), fmt.Sprintf("c1|-1 c2|%d", next))
			f.ok(f.db.Retain(f.Context(), f.clock.Now()))
			f.clock.Advance(company.RetentionNotice - time.Minute)
			f.ok(f.db.Retain(f.Context(), f.clock.Now()))
			equal(f, "announced", f.recorded(activity.RetentionAnnounced), 1)
			if f.asset("a1").Device.Location == nil {
				t.Error("the place was deleted before the notice was over")
			}
			f.clock.Advance(2 * time.Minute)
			f.ok(f.db.Retain(f.Context(), f.clock.Now()))
			if f.asset("a1").Device.Location != nil {
				t.Error("the place was not deleted")
			}
		})
	}
}
