package database_test

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/musterhq/muster/internal/database"
)

// Every statement that any test of this package runs is explained by its
// engine, once, when the test ends. A full scan of a table fails the test,
// unless the statement is listed here with its reason.
var mayScan = map[string]string{
	`FROM companies c ORDER BY c.slug`:                                           "the command line lists all companies",
	`FROM companies c CROSS JOIN events e`:                                       "each company keeps its events for a time of its own",
	`FROM companies o CROSS JOIN policies p`:                                     "each company's newest policies are sought in an index",
	`DELETE FROM leases WHERE name IN`:                                           "there are a few leases",
	`SELECT name FROM leases`:                                                    "there are a few leases",
	`DELETE FROM leases WHERE name LIKE`:                                         "once at start",
	`FROM oauth_clients c WHERE c.last_used_at <`:                                "swept once a day",
	`CASE WHEN p.push_error <> '' THEN 1`:                                        "the index holds only policies that are behind",
	`ORDER BY p.push_tried_at, p.id LIMIT`:                                       "the index holds only policies that are behind",
	`FROM activity e WHERE e.seq = 0`:                                            "the index holds only entries of the last seconds",
	`FROM oauth_connections c WHERE c.user_id = ?`:                               "an operator deletes a user",
	`DELETE FROM oauth_connections WHERE user_id`:                                "an operator deletes a user",
	`DELETE FROM saved_views WHERE user_id`:                                      "an operator deletes a user",
	`UPDATE claims SET leased_until = 0`:                                         "once at start",
	`WHERE EXISTS (SELECT 1 FROM event_heads)`:                                   "once for a database, and one row is enough",
	`JOIN policies p ON p.company_id = c.id WHERE NOT p.deleted ORDER BY c.slug`: "doctor looks at the names of all policies",

	`(SELECT id FROM policies WHERE company_id = ? AND type = 'PLATFORM')`: "an operator disconnects a company",
	`pushed_at = 0 WHERE company_id = ? AND type = 'PLATFORM'`:             "an operator disconnects a company",
	`FROM (SELECT company_id FROM lost_enterprises UNION`:                  "few companies lose an enterprise or are disconnected",
	`DELETE FROM foreign_enterprises WHERE last_at`:                        "at most 100 rows",
	`FROM foreign_enterprises f WHERE last_at >=`:                          "doctor looks at at most 100 rows, and at all companies",

	"WHERE c.id > ? AND c.id IN ( SELECT z.company_id": "the indexes hold only what waits for a person",

	"FROM agent_rollouts o ORDER BY":         "one row for each of a few dozen releases",
	"UPDATE agent_rollouts SET":              "one row for each of a few dozen releases",
	"FROM agent_releases r ORDER BY":         "a few dozen releases",
	"FROM agent_releases r WHERE NOT EXISTS": "a few dozen releases",

	"FROM agent_tokens WHERE company_id = ?":          "an operator deletes a company; the table is small",
	"FROM companion_tokens WHERE company_id = ?":      "an operator deletes a company; the table is small",
	"FROM disconnections WHERE company_id = ?":        "an operator deletes a company; the table is small",
	"FROM asset_edits WHERE company_id = ?":           "an operator deletes a company; the table is small",
	"FROM policies p WHERE p.company_id = ?)":         "an operator deletes a company; the table is small",
	"FROM policies WHERE company_id = ?":              "an operator deletes a company; the table is small",
	"FROM signin_steps WHERE company_id = ?":          "an operator deletes a company; the table is small",
	"FROM oauth_codes WHERE company_id = ?":           "an operator deletes a company; the table is small",
	"FROM mail_letters WHERE company_id = ?":          "an operator deletes a company; the table is small",
	`UPDATE sessions SET seen_at = CASE`:              "swept every few minutes; a few rows a user",
	`SET created_at = ? WHERE state = 'WAITING' AND`:  "the index holds only calls that no person decided about in 30 days",
	`SET next_at = ? WHERE next_at > 0 AND`:           "swept every few minutes; the tables are small or have an index",
	`SET expires_at = ? WHERE expires_at > 0 AND`:     "swept every few minutes; there are a few leases",
	`DELETE FROM mail_told WHERE item_id IN`:          "once, after a restore",
	`SET begun_at = ? WHERE begun_at > 0 AND`:         "swept every few minutes; few companies are being deleted",
	`WHERE erasing_at <> 0 AND`:                       "the index holds only devices that set out to erase themselves",
	`SET told = ? WHERE told > 0 AND`:                 "swept every few minutes; two rows",
	`SET last_used_at = ? WHERE last_used_at > 0 AND`: "swept every few minutes; a few keys and connections",
	`SET claim_until = ? WHERE claim_until > 0 AND`:   "swept every few minutes; a few webhooks",
	`SET moved_at = ? WHERE moved_at > 0 AND`:         "swept every few minutes; a few webhooks",
	`SET filled_at = ? WHERE filled_at > 0 AND`:       "swept every few minutes; one row a project",
	`SET paused_until = ? WHERE paused_until > 0 AND`: "swept every few minutes; one row a project",

	"SET expires_at = 0 WHERE company_id = ?":   "an operator deletes a company; the table is small",
	"SELECT name FROM sqlite_master":            "a test lists the tables",
	"FROM company_deletions d WHERE d.begun_at": "companies that are being deleted",
	"AND (next_at <= ? OR next_at > ? AND":      "the index holds only jobs that run: at most 20 of a company",
	"AND (taken_at < ? OR taken_at > ? AND":     "the index holds only devices of jobs that are sent to: a few a replica",
	"FROM companies c LEFT JOIN retentions r":   "all companies, every few minutes",
	"FROM companies WHERE enterprise <> ''":     "all companies, once for each outage of the platform",

	"FROM event_heads LIMIT 1":                        "the first row",
	"DELETE FROM push_retries":                        "once after a restore",
	"push_tried_at = 0 WHERE type = 'PLATFORM'":       "once after a restore",
	"ELSE 0 END WHERE type <> 'PLATFORM'":             "once after a restore",
	"FROM policies WHERE type <> 'PLATFORM') AND rev": "once after a restore",

	"FROM service_keys WHERE lost_at = 0":      "two rows, and two more with each rotation",
	"FROM service_keys k WHERE k.lost_at >= (": "two rows, and two more with each rotation",
	"FROM leases WHERE name LIKE":              "one row a replica and loop, looked at while the tables change",
}

// explained remembers what was explained, over all tests of the process.
var explained sync.Map

// statements collects what one database ran.
type statements struct {
	mu  sync.Mutex
	all map[string]int // the number of arguments
	// crossed are the statements that cross companies, by their entry in crossing.txt.
	crossed map[string]string
}

func collect(db *database.DB) *statements {
	s := &statements{all: map[string]int{}, crossed: map[string]string{}}
	postgres := db.Bound("?") != "?"
	db.OnStatement(func(query string, args []any) {
		var crossed []string
		if postgres {
			crossed = crossList.entries(query)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all[query] = len(args)
		for _, entry := range crossed {
			s.crossed[entry] = query
		}
	})
	return s
}

// unlisted are the statements that cross companies and are not listed.
func (s *statements) unlisted(listed map[string]string) map[string]string {
	all := maps.Clone(s.crossed)
	maps.DeleteFunc(all, func(entry, _ string) bool { _, known := listed[entry]; return known })
	return all
}

// soFar is what ran until now: the database goes on in the background.
func (s *statements) soFar() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.all)
}

// explain checks what was not checked before.
func (s *statements) explain(tb testing.TB, e *engine, db *database.DB) {
	tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for entry, query := range s.unlisted(crossList.listed) {
		tb.Errorf("not confined to one company, and not in %s: %s\n%.2000s", crossingFile, entry, query)
	}
	fresh := map[string]int{}
	for query, n := range s.all {
		if _, known := explained.LoadOrStore(e.name+query, true); !known {
			fresh[query] = n
		}
	}
	if len(fresh) == 0 {
		return
	}
	planner := e.planner(tb, db)
	for query, n := range fresh {
		if valueInText.MatchString(query) {
			tb.Errorf("has a value in its text, so that it is prepared for each:\n%.2000s", query)
		}
		plan := planner(query, n)
		if scanned := fullScan(query, plan); scanned != "" && !exempt(query) {
			tb.Errorf("%s scans all of %s:\n%.2000s\n\n%s", e.name, scanned, query, strings.Join(plan, "\n"))
		}
	}
}

// valueInText matches a time in milliseconds.
var valueInText = regexp.MustCompile(`\b[0-9]{13}\b`)

func exempt(query string) bool {
	query = strings.Join(strings.Fields(query), " ")
	for text := range mayScan {
		if strings.Contains(query, text) {
			return true
		}
	}
	return false
}

// planner returns what asks the engine for its plan. PostgreSQL is asked for
// the plan of a prepared statement, and told that sequential scans cost the
// earth: one that is left has no index to use instead, however few the rows.
func (e *engine) planner(tb testing.TB, db *database.DB, settings ...string) func(query string, args int) []string {
	tb.Helper()
	ctx := context.Background()
	if e.name == "sqlite" {
		pool, err := sql.Open("sqlite", strings.TrimPrefix(e.url, "sqlite:"))
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { _ = pool.Close() })
		return func(query string, args int) []string {
			lines, err := database.Text(ctx, pool, "EXPLAIN QUERY PLAN "+query, make([]any, args)...)
			if err != nil {
				tb.Errorf("cannot explain: %v\n%.2000s", err, query)
			}
			return lines
		}
	}
	c, err := pgx.Connect(ctx, e.url)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = c.Close(ctx) })
	for _, set := range append(settings, "enable_seqscan = off", "plan_cache_mode = force_generic_plan") {
		if _, err := c.Exec(ctx, "SET "+set); err != nil {
			tb.Fatal(err)
		}
	}
	return func(query string, args int) []string {
		lines, err := explainPostgres(ctx, c, db.Bound(query), args)
		if err != nil {
			tb.Errorf("cannot explain: %v\n%.2000s", err, query)
		}
		return lines
	}
}

func explainPostgres(ctx context.Context, c *pgx.Conn, query string, args int) ([]string, error) {
	if _, err := c.Exec(ctx, "PREPARE explained AS "+query); err != nil {
		return nil, err
	}
	nulls := ""
	if args > 0 {
		nulls = "(" + strings.TrimSuffix(strings.Repeat("NULL, ", args), ", ") + ")"
	}
	rows, err := c.Query(ctx, "EXPLAIN EXECUTE explained"+nulls, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		return nil, err
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, err
	}
	_, err = c.Exec(ctx, "DEALLOCATE explained")
	return lines, err
}

var (
	tableInQuery = regexp.MustCompile(`(?i)\b(?:FROM|JOIN|UPDATE|INTO)\s+(\w+)(?:\s+(?:AS\s+)?(\w+))?`)
	scanInPlan   = regexp.MustCompile(`\|SCAN (\w+)|Seq Scan on (\w+)`)
)

// fullScan returns the table that a plan reads from end to end, if any. Of the
// two engines SQLite is the strict one: it owns up to reading a whole index.
func fullScan(query string, plan []string) string {
	tables := map[string]bool{}
	for _, m := range tableInQuery.FindAllStringSubmatch(query, -1) {
		tables[m[1]], tables[m[2]] = true, true
	}
	for _, line := range plan {
		if m := scanInPlan.FindStringSubmatch(line); m != nil {
			if name := m[1] + m[2]; tables[name] && name != "page" && name != "v" {
				return name
			}
		}
		if strings.Contains(line, "USING AUTOMATIC ") {
			return "a table, which no index joins to the rest"
		}
	}
	return ""
}

func TestPlans_CheckFindsScans(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		db := e.open(t)
		plan := e.planner(t, db)
		for query, want := range map[string]string{
			`UPDATE assets SET tags = ? WHERE tags = 'x'`:         "assets",
			`SELECT p.id FROM policies p WHERE p.description = ?`: "policies",
			`SELECT id FROM assets WHERE id = ?`:                  "",
			`UPDATE activity SET seq = 1 FROM (VALUES (CAST(? AS BIGINT), ?)` + strings.Repeat(`, (CAST(? AS BIGINT), ?)`, 63) + `) p
				WHERE company_id = ? AND at = p.column1 AND id = p.column2`: map[string]string{"sqlite": "a table"}[e.name],
			`SELECT id FROM commands WHERE asset_id = ? ORDER BY created_at DESC`: "",
		} {
			got := fullScan(query, plan(query, strings.Count(query, "?")))
			if (got == "") != (want == "") {
				t.Errorf("%s: scans %q, want %q\n%s", query, got, want, fmt.Sprint(plan(query, strings.Count(query, "?"))))
			}
		}
	})
}
