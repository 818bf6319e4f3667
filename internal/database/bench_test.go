package database_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/database/pgtest"
	"github.com/musterhq/muster/internal/enrolment"
	"github.com/musterhq/muster/internal/name"
	"github.com/musterhq/muster/internal/policy"
)

// The benchmarks answer for goals P2 and P6 to P9: each figure stands beside
// the floor of the same engine, taken in the same run. A run worth quoting is
//
//	go test ./internal/database -run '^$' -bench . -assets 1000000 -benchtime 2s
var size = flag.Int("assets", 20_000, "assets in the benchmarks' database")

// fleet is a database with many assets of one company.
type fleet struct {
	*engine
	db       *database.DB
	company  company.Company
	policies []string
	active   int64
	page     int // a deep one: half way through the active assets
	some     []string
}

// Rows are made by the engines themselves. 48271 generates the numbers below
// the prime 2147483647, so ids are unique, and in no order that helps.
const load = `INSERT INTO assets (id, company_id, status, policy_id, identification, synced_at, created_at, named, serial_key, brand_key,
		epoch, management, ownership, mode, device_name, applied_policy_id, applied_version, enrolled_at, last_seen_at,
		api_level, custom_data, tags, specifications, location, status_report)
	WITH RECURSIVE n (i, h) AS (SELECT CAST(? AS BIGINT), CAST(? AS BIGINT) UNION ALL SELECT i + 1, (h * 48271) % 2147483647 FROM n WHERE i < ?),
	k AS (SELECT i, h, CASE WHEN h % 100 < 70 THEN 'ACTIVE' WHEN h % 100 < 85 THEN 'INACTIVE' WHEN h % 100 < 90 THEN 'SYNCHRONIZING'
		WHEN h % 100 < 98 THEN 'PENDING' ELSE 'DELETED' END AS status, 'policy00000000000000000000' || ((h / 100) % 10) AS policy FROM n)
	SELECT 'asset00000000000' || (10000000000 + h), CAST(? AS TEXT), status, CASE WHEN h % 100 < 90 THEN policy ELSE '' END,
		'Phone ' || (h % 977), CAST(? AS BIGINT) + h, CAST(? AS BIGINT) + (h % 99991), FALSE, 's' || h, 'acme', 1, 'PLATFORM', 'COMPANY_OWNED',
		'DEVICE_OWNER', 'enterprises/LC00acme/devices/' || h, policy, 1, CAST(? AS BIGINT), CAST(? AS BIGINT) + h, 34,
		'{"department":"Sales ' || (h % 13) || '","location":"Oslo","costCentre":"4711"}', '["shop","floor ' || (h % 5) || '"]',
		'{"serialNumber":"S' || h || '","model":"Phone 1","manufacturer":"Acme","brand":"Acme","osVersion":"14","securityPatchLevel":"2026-10-05"}',
		'', '{"reportedAt":"2026-11-20T09:00:00Z","batteryLevel":' || (h % 100) || '}' FROM k`

// perStatement is how many rows one statement makes.
const perStatement = 50_000

// newFleet fills a database: indexes go for the while, and the counts are
// counted at the end.
func newFleet(b *testing.B, e *engine) *fleet {
	b.Helper()
	f := &fleet{engine: e, company: company.Company{ID: name.NewID(), Slug: "acme", Name: "Acme", InactiveAfter: time.Hour, CreatedAt: e.clock.Now()}}
	db, err := database.Open(b.Context(), database.Options{URL: e.url, Now: e.clock.Now})
	f.must(b, err)
	f.db = db
	b.Cleanup(func() { f.must(b, db.Close()) })
	f.must(b, db.CreateCompany(b.Context(), f.company))
	for n := range 10 {
		f.policies = append(f.policies, fmt.Sprint("policy00000000000000000000", n))
		f.must(b, db.CreatePolicy(b.Context(), policy.Policy{ID: f.policies[n], CompanyID: f.company.ID, Name: fmt.Sprint("Policy ", n),
			Type: policy.Platform, Document: json.RawMessage(`{}`)}, policy.Author{}, ""))
	}
	f.load(b)
	f.active, err = db.CountAssets(b.Context(), asset.Filter{CompanyID: f.company.ID, Status: asset.Active})
	f.must(b, err)
	f.page = int(f.active / 20 * 5 / 7) // 25,000 of 35,000 with a million assets
	f.some, err = db.Text(b.Context(), `SELECT id FROM assets WHERE company_id = ? AND status = 'ACTIVE' ORDER BY id LIMIT 1000`, f.company.ID)
	f.must(b, err)
	return f
}

func (f *fleet) must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func (f *fleet) load(b *testing.B) {
	b.Helper()
	indexes := `SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name = 'assets' AND sql IS NOT NULL`
	if f.name == "postgres" {
		indexes = `SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'assets' AND indexname <> 'assets_pkey'`
	}
	all, err := f.db.Text(b.Context(), indexes)
	f.must(b, err)
	for _, index := range all {
		indexName, _, _ := strings.Cut(index, "|")
		f.must(b, f.db.Exec(b.Context(), `DROP INDEX `+indexName))
	}
	at, h := f.clock.Now().UnixMilli(), int64(1)
	for from := 0; from < *size; from += perStatement {
		to := min(from+perStatement, *size)
		f.must(b, f.db.Exec(b.Context(), load, from, h, to-1, f.company.ID, at, at, at, at))
		for range to - from {
			h = h * 48271 % 2147483647
		}
	}
	for _, index := range all {
		_, text, _ := strings.Cut(index, "|")
		f.must(b, f.db.Exec(b.Context(), text))
	}
	f.must(b, f.db.Exec(b.Context(), `INSERT INTO asset_counts SELECT company_id, status, policy_id, COUNT(*) FROM assets GROUP BY 1, 2, 3`))
	if f.name == "postgres" {
		f.must(b, f.db.Exec(b.Context(), `VACUUM ANALYZE`))
	}
}

// onFleets runs benchmarks on both engines, SQLite first.
func onFleets(b *testing.B, run func(b *testing.B, f *fleet)) {
	b.Run("sqlite", func(b *testing.B) {
		run(b, newFleet(b, &engine{"sqlite", "sqlite:" + filepath.Join(b.TempDir(), "fleet.db"), newClock()}))
	})
	b.Run("postgres", func(b *testing.B) {
		run(b, newFleet(b, &engine{"postgres", pgtest.DSN(b), newClock()}))
	})
}

// each measures one call.
func (f *fleet) measure(b *testing.B, what string, call func(ctx context.Context, n int) error) {
	b.Helper()
	b.Run(what, func(b *testing.B) {
		ctx := b.Context()
		if err := call(ctx, 0); err != nil { // prepares the statements
			b.Fatal(err)
		}
		n, before := 0, cpu(b)
		for b.Loop() {
			if err := call(ctx, n); err != nil {
				b.Fatal(err)
			}
			n++
		}
		b.ReportMetric(float64(cpu(b)-before)/float64(n), "cpu-ns/op")
	})
}

// cpu is the time that this process has computed: steadier than the clock on a
// busy machine, but blind to what PostgreSQL's own processes do.
func cpu(b *testing.B) int64 {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

func (f *fleet) list(q asset.Query, pages func(n int) int) func(ctx context.Context, n int) error {
	q.CompanyID, q.Page.Size = f.company.ID, 20
	return func(ctx context.Context, n int) error {
		q := q
		q.Page.Page = pages(n)
		page, total, err := f.db.Assets(ctx, q)
		if err == nil && (len(page) != 20 || total < 20) {
			err = fmt.Errorf("a page of %d, of %d", len(page), total)
		}
		return err
	}
}

// rawRow is what the floors read of an asset.
type rawRow struct{ id, status, identification, custom, tags, specifications string }

// raw is the query that a program with nothing but the driver would make.
func (f *fleet) raw(b *testing.B, where string, limit string, args ...any) func(ctx context.Context, extra ...any) error {
	statement, err := f.db.Pool().PrepareContext(b.Context(), f.db.Bound(
		`SELECT id, status, identification, custom_data, tags, specifications, synced_at, created_at FROM assets WHERE `+where+limit))
	f.must(b, err)
	b.Cleanup(func() { _ = statement.Close() })
	return func(ctx context.Context, extra ...any) error {
		rows, err := statement.QueryContext(ctx, append(args[:len(args):len(args)], extra...)...)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		n := 0
		for rows.Next() {
			var r rawRow
			var synced, created int64
			if err := rows.Scan(&r.id, &r.status, &r.identification, &r.custom, &r.tags, &r.specifications, &synced, &created); err != nil {
				return err
			}
			n++
		}
		if n == 0 {
			return sql.ErrNoRows
		}
		return rows.Err()
	}
}

func firstPages(n int) int { return n % 50 }

func BenchmarkAssets(b *testing.B) {
	onFleets(b, func(b *testing.B, f *fleet) {
		order := ` ORDER BY synced_at DESC, id DESC LIMIT 20 OFFSET ?`
		page := f.raw(b, `company_id = ? AND status = ?`, order, f.company.ID, "ACTIVE")
		byStatus := asset.Filter{Status: asset.Active}
		newest := asset.Query{Filter: byStatus, Order: asset.BySyncedAt, Descending: true}

		f.measure(b, "P6/floor", func(ctx context.Context, n int) error { return page(ctx, firstPages(n)*20) })
		f.measure(b, "P6/page", f.list(newest, firstPages))
		for what, filter := range map[string]asset.Filter{"all": {}, "status": byStatus, "policy": {PolicyID: f.policies[3]},
			"both": {Status: asset.Active, PolicyID: f.policies[3]}, "three policies": {Policies: f.policies[:3]}} {
			for _, o := range []asset.Order{asset.BySyncedAt, asset.ByIdentification, asset.ByStatus, asset.ByCreatedAt} {
				f.measure(b, fmt.Sprintf("page/%s by %s", what, o), f.list(asset.Query{Filter: filter, Order: o}, firstPages))
			}
		}
		f.measure(b, "P7/floor get", f.get(f.raw(b, `id = ?`, ``)))
		f.measure(b, "P7/floor count(*)", f.rawCount)
		for what, filter := range map[string]asset.Filter{"status": byStatus, "policy": {PolicyID: f.policies[3]},
			"both": {Status: asset.Active, PolicyID: f.policies[3]}, "all": {}} {
			f.measure(b, "P7/count "+what, func(ctx context.Context, _ int) error {
				filter := filter
				filter.CompanyID = f.company.ID
				_, err := f.db.CountAssets(ctx, filter)
				return err
			})
		}
		f.measure(b, "P8/floor", func(ctx context.Context, n int) error { return page(ctx, f.page*20) })
		f.measure(b, "P8/deep page", f.list(newest, func(int) int { return f.page }))
		f.measure(b, "P8/page half way", f.list(newest, func(int) int { return int(f.active / 40) }))
		f.measure(b, "P8/all, half way", f.list(asset.Query{Order: asset.BySyncedAt}, func(int) int { return *size / 40 }))
		f.measure(b, "P9/floor", f.get(f.raw(b, `id = ?`, ``)))
		f.measure(b, "P9/get", func(ctx context.Context, n int) error {
			_, err := f.db.Asset(ctx, f.company.ID, f.some[n%len(f.some)])
			return err
		})
	})
}

func (f *fleet) get(raw func(ctx context.Context, extra ...any) error) func(ctx context.Context, n int) error {
	return func(ctx context.Context, n int) error { return raw(ctx, f.some[n%len(f.some)]) }
}

func (f *fleet) rawCount(ctx context.Context, _ int) error {
	_, err := f.db.Text(ctx, `SELECT COUNT(*) FROM assets WHERE company_id = ? AND status = 'ACTIVE'`, f.company.ID)
	return err
}

func BenchmarkWrites(b *testing.B) {
	*size = min(*size, 20_000) // the size of the table is not the matter here
	onFleets(b, func(b *testing.B, f *fleet) {
		f.must(b, f.db.Exec(b.Context(), `CREATE TABLE floor (id TEXT PRIMARY KEY, state TEXT NOT NULL, at BIGINT NOT NULL)`))
		f.measure(b, "P2/floor insert+commit", func(ctx context.Context, _ int) error { return f.insert(ctx) })
		f.measure(b, "P2/begin+take", f.send)
		f.together(b, "P2/floor insert+commit, 32 callers", func(ctx context.Context, _ int) error { return f.insert(ctx) })
		f.together(b, "P2/begin+take, 32 callers", f.send)
		f.together(b, "P2/begin, 32 callers", func(ctx context.Context, n int) error {
			_, _, err := f.db.Begin(ctx, f.intent(n))
			return err
		})
		f.together(b, "P2/spend, 32 callers", func(ctx context.Context, n int) error {
			_, _, _, err := f.db.Spend(ctx, fmt.Sprint("key", n%1000), 10, time.Minute, f.clock.Now())
			return err
		})
		k, _ := access.NewKey(f.company.ID, "k", "operator", access.All, f.clock.Now(), time.Time{})
		f.must(b, f.db.CreateKey(b.Context(), k))
		f.measure(b, "key by prefix", func(ctx context.Context, _ int) error {
			_, _, err := f.db.KeyByPrefix(ctx, k.Prefix)
			return err
		})
		f.measure(b, "observe a report", f.report)
		f.together(b, "observe a report, 32 callers", f.report)
	})
}

// together measures one call made by 32 callers at once.
func (f *fleet) together(b *testing.B, what string, call func(ctx context.Context, n int) error) {
	b.Helper()
	b.Run(what, func(b *testing.B) {
		b.SetParallelism(16)
		b.RunParallel(func(pb *testing.PB) {
			// Callers begin at different numbers.
			for n := int(time.Now().UnixNano() % 1000); pb.Next(); n++ {
				if err := call(context.Background(), n); err != nil {
					b.Error(err)
					return
				}
			}
		})
	})
}

// insert is the floor of a durable write. SQLite's has the writer's one
// connection, as the driver has no other way.
func (f *fleet) insert(ctx context.Context) error {
	return f.db.Exec(ctx, `INSERT INTO floor (id, state, at) VALUES (?, 'PREPARED', ?)`, name.NewID(), int64(1))
}

func (f *fleet) intent(n int) command.Command {
	return command.Command{ID: name.NewID(), CompanyID: f.company.ID, AssetID: f.some[n%len(f.some)], Epoch: 1, Type: command.Lock,
		State: command.Prepared, CreatedAt: f.clock.Now(), Actor: command.Actor{Kind: access.APIKey, ID: "key", Prefix: "prefix"}}
}

func (f *fleet) send(ctx context.Context, n int) error {
	c, _, err := f.db.Begin(ctx, f.intent(n))
	if err != nil {
		return err
	}
	_, _, err = f.db.Take(ctx, c.ID, command.Step{From: []command.State{command.Prepared}, To: command.Sent, Ref: "op" + c.ID})
	return err
}

// report is one more word of a device that has joined.
func (f *fleet) report(ctx context.Context, n int) error {
	f.clock.Advance(time.Millisecond)
	_, err := f.db.Observe(ctx, enrolment.Observation{CompanyID: f.company.ID, Device: fmt.Sprint("bench", n%1000), Management: asset.Platform,
		ReportedAt: f.clock.Now(), ObservedAt: f.clock.Now(), MessageID: name.NewID(),
		Specifications: map[string]string{"osVersion": "15"}, StatusReport: json.RawMessage(`{"batteryLevel":50}`)})
	return err
}
