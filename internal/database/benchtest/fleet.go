// Package benchtest makes databases with a million assets, and runs on them the
// bare queries that a program with nothing but the driver would run: the floors
// that the goals of docs/performance.md are measured against.
package benchtest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/apikey"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/resource"
)

// Fleet is a database with many assets of one company: 70 % of them ACTIVE, 15 %
// INACTIVE, 5 % SYNCHRONIZING, 8 % PENDING and 2 % DELETED, under ten policies,
// one in a thousand with the agent.
type Fleet struct {
	URL      string
	Company  company.Company
	Policies []string
	Active   int64    // how many assets are ACTIVE
	Some     []string // ids of some that are
	Assets   int
}

// Rows are made by the engines themselves. 48271 generates the numbers below
// the prime 2147483647, so ids are unique, and in no order that helps.
const load = `INSERT INTO assets (id, company_id, status, policy_id, identification, synced_at, created_at, named, serial_key, brand_key,
		epoch, management, ownership, mode, device_name, applied_policy_id, applied_version, enrolled_at,
		api_level, custom_data, tags, specifications, location, status_report, battery, patch, compliant, search_terms)
	WITH RECURSIVE n (i, h) AS (SELECT CAST(? AS BIGINT), CAST(? AS BIGINT) UNION ALL SELECT i + 1, (h * 48271) % 2147483647 FROM n
		WHERE i < ?),
	k AS (SELECT i, h, CASE WHEN h % 100 < 70 THEN 'ACTIVE' WHEN h % 100 < 85 THEN 'INACTIVE' WHEN h % 100 < 90 THEN 'SYNCHRONIZING'
		WHEN h % 100 < 98 THEN 'PENDING' ELSE 'DELETED' END AS status, 'policy00000000000000000000' || ((h / 100) % 10) AS policy,
		CASE WHEN h % 1009 = 0 THEN 'AGENT' ELSE 'PLATFORM' END AS management FROM n)
	SELECT 'asset00000000000' || (10000000000 + h), CAST(? AS TEXT), status, CASE WHEN h % 100 < 90 THEN policy ELSE '' END,
		'Phone ' || (h % 977), CAST(? AS BIGINT) + h, CAST(? AS BIGINT) + (h % 99991), FALSE, 's'
			|| h, 'acme', 1, management, 'COMPANY_OWNED',
		'DEVICE_OWNER', 'enterprises/LC00acme/devices/' || h, policy, 1, CAST(? AS BIGINT), 34,
		'{"department":"Sales ' || (h % 13) || '","location":"Oslo","costCenter":"4711"}', '["shop","rack ' || (h % 5003) || '"]',
		'{"serialNumber":"S' || h || '","model":"Phone 1","manufacturer":"Acme","brand":"Acme",'
			|| '"osVersion":"14","securityPatchLevel":"2026-10-05"}',
		'', '{"reportedAt":"2026-11-20T09:00:00Z","batteryLevel":' || (h % 100) || '}', h % 100, '2026-10-05',
			CASE WHEN h % 501 = 0 THEN 0 ELSE 1 END,
		REPLACE(REPLACE(REPLACE(CASE WHEN management = 'AGENT' THEN CAST(? AS TEXT) ELSE CAST(? AS TEXT) END,
			'` + serial + `', CAST(h AS TEXT)), '` + phone + `', CAST(h % 977 AS TEXT)), '` + rack + `', CAST(h % 5003 AS TEXT)) FROM k`

// loadTerms adds the rows of one of the words that a search finds the assets of one management by.
const loadTerms = `INSERT INTO asset_terms SELECT company_id, REPLACE(REPLACE(REPLACE(CAST(? AS TEXT),
		'` + serial + `', SUBSTR(serial_key, 2)), '` + phone + `', SUBSTR(identification, 7)),
		'` + rack + `', SUBSTR(tags, 15, LENGTH(tags) - 16)) AS term, id FROM assets WHERE management = ? ORDER BY 2, 3
	ON CONFLICT DO NOTHING`

// serial, phone and rack stand for the numbers of an asset in what words returns.
const serial, phone, rack = "1111111", "2222222", "3333333"

// words are the search terms of the assets of a management, as the store keeps them.
func words(b testing.TB, m asset.Management) string {
	b.Helper()
	found, err := database.Searchable{Identification: "Phone " + phone, Tags: `["shop","rack ` + rack + `"]`,
		Specifications: `{"serialNumber":"S` + serial + `","model":"Phone 1"}`, Status: asset.Active, Management: m}.Findable()
	must(b, err)
	return found.Terms
}

// perStatement is how many rows one statement makes.
const perStatement = 50_000

// Load fills the empty database at url with assets, and with the index that
// searches need if searched.
func Load(b testing.TB, url string, assets int, at time.Time, searched bool) *Fleet {
	b.Helper()
	f := &Fleet{URL: url, Assets: assets, Company: company.Company{
		ID: resource.NewID(), Slug: "acme", Name: "Acme", InactiveAfter: 1000 * time.Hour, CreatedAt: at,
	}}
	f.Company.Settings.DeviceCommands = true
	db, err := database.Open(b.Context(), database.Options{URL: url, Now: func() time.Time { return at }})
	must(b, err)
	defer func() { must(b, db.Close()) }()
	must(b, db.CreateCompany(b.Context(), f.Company))
	for n := range 10 {
		f.Policies = append(f.Policies, fmt.Sprint("policy00000000000000000000", n))
		must(b, db.CreatePolicy(b.Context(), policy.Policy{
			ID: f.Policies[n], CompanyID: f.Company.ID, Name: fmt.Sprint("Policy ", n),
			Type: policy.Platform, Document: json.RawMessage(`{}`),
		}, policy.Author{}, ""))
	}
	floor, err := Open(url)
	must(b, err)
	defer func() { must(b, floor.Close()) }()
	f.fill(b, floor, at, searched)
	f.Active, err = db.CountAssets(b.Context(), asset.Filter{CompanyID: f.Company.ID, Status: asset.Active})
	must(b, err)
	f.Some, err = floor.texts(b.Context(), `SELECT id FROM assets WHERE company_id = ? AND status = 'ACTIVE' ORDER BY id LIMIT 1000`,
		f.Company.ID)
	must(b, err)
	return f
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// fill makes the rows: without indexes, except the one that the foreign key of the last contacts
// needs, and the counts are counted at the end.
func (f *Fleet) fill(b testing.TB, floor *Floor, at time.Time, searched bool) {
	b.Helper()
	ctx := b.Context()
	list := `SELECT name || '|' || sql FROM sqlite_master WHERE type = 'index' AND tbl_name = 'assets' AND sql IS NOT NULL`
	if floor.postgres {
		list = `SELECT indexname || '|' || indexdef FROM pg_indexes WHERE tablename = 'assets' AND indexname <> 'assets_pkey'`
	}
	indexes, err := floor.texts(ctx, list)
	must(b, err)
	indexes = slices.DeleteFunc(indexes, func(index string) bool { return strings.HasPrefix(index, "assets_policy_status|") })
	for _, index := range indexes {
		indexName, _, _ := strings.Cut(index, "|")
		must(b, floor.exec(ctx, `DROP INDEX `+indexName))
	}
	ms, h, agent, platform := at.UnixMilli(), int64(1), words(b, asset.Agent), words(b, asset.Platform)
	for from := 0; from < f.Assets; from += perStatement {
		to := min(from+perStatement, f.Assets)
		must(b, floor.exec(ctx, load, from, h, to-1, f.Company.ID, ms, ms, ms, agent, platform))
		for range to - from {
			h = h * 48271 % 2147483647
		}
	}
	for _, index := range indexes {
		_, text, _ := strings.Cut(index, "|")
		must(b, floor.exec(ctx, text))
	}
	must(b, floor.exec(ctx, `INSERT INTO asset_contacts SELECT id, company_id, status, policy_id, synced_at FROM assets`))
	must(b, floor.exec(ctx, `INSERT INTO asset_counts SELECT company_id, status, policy_id, COUNT(*) FROM assets GROUP BY 1, 2, 3`))
	must(b,
		floor.exec(ctx,
			`INSERT INTO patch_counts SELECT company_id, policy_id, '2026-10', COUNT(*) FROM assets WHERE policy_id <> '' GROUP BY 1, 2`))
	if searched {
		for management, all := range map[asset.Management]string{asset.Agent: agent, asset.Platform: platform} {
			for term := range strings.FieldsFuncSeq(all, func(r rune) bool { return r == '\n' }) {
				must(b, floor.exec(ctx, loadTerms, term, string(management)))
			}
		}
	}
	if floor.postgres {
		must(b, floor.exec(ctx, `VACUUM ANALYZE`))
	}
}

// Deep is the number of a page of 20 ACTIVE assets five sevenths down the list:
// 25,000 of 35,000 with a million assets.
func (f *Fleet) Deep() int { return int(f.Active / 20 * 5 / 7) }

// Get reads one of some assets.
func (f *Fleet) Get(floor *Floor) func(ctx context.Context, n int) (Row, error) {
	return func(ctx context.Context, n int) (Row, error) { return floor.Get(ctx, f.Some[n%len(f.Some)]) }
}

// WithAgents gives each of Some an agent, so that commands to it are kept
// without asking the platform.
func (f *Fleet) WithAgents(b testing.TB, floor *Floor) {
	b.Helper()
	for n, id := range f.Some {
		must(b, floor.exec(b.Context(), `UPDATE assets SET management = 'AGENT' WHERE id = ?`, id))
		must(b, floor.exec(b.Context(),
			`INSERT INTO agent_devices (id, company_id, asset_id, epoch, role, key_alg, key_spki, last_sequence, state,
				wiped, capabilities, push_token, open_deliveries, erasing_at, enrolled_at, seen_at)
			VALUES (?, ?, ?, 1, 'manager', 'ed25519', '', 0, 'ACTIVE', FALSE, 'null', '', 0, 0, 1, 1)`,
			fmt.Sprint("agent", n), f.Company.ID, id))
	}
}

// Keys makes API keys and returns their texts.
func (f *Fleet) Keys(b testing.TB, count int, now time.Time) []string {
	b.Helper()
	db, err := database.Open(b.Context(), database.Options{URL: f.URL, Now: func() time.Time { return now }})
	must(b, err)
	defer func() { must(b, db.Close()) }()
	texts := make([]string, count)
	for n := range texts {
		key, text := apikey.New(f.Company.ID, fmt.Sprint("key ", n), "operator", access.All, now, time.Time{})
		must(b, db.CreateKey(b.Context(), key))
		texts[n] = text
	}
	return texts
}
