package e2e_test

import (
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/database"
)

// firstCopy is the first number in the serial numbers of the copies.
const firstCopy = 1_000_000

// copies says how the rows of the agent that enrolled become those of copy n, by table and
// column; every other column stays as it is. Devices were in touch within the last 15 minutes
// and enrolled within the last 300 days. The copies have the key of the agent.
var copies = []struct {
	table, of string // of: selects the agent's row
	columns   map[string]string
}{
	{"assets", "id = $1", map[string]string{
		"id": assetOfCopy, "device_name": deviceOfCopy, "serial_key": `'load-' || n`, "identification": `'Load 1 ' || RIGHT('' || n, 4)`,
		"specifications": `REPLACE(r.specifications, 'LOAD-0"', 'LOAD-' || n || '"')`,
		"search_terms":   `E'\n@agent\nload\n1\n' || RIGHT('' || n, 4) || E'\n' || n || E'\n'`,
		"created_at":     `r.created_at - ` + longAgo, "enrolled_at": `r.enrolled_at - ` + longAgo,
		"synced_at": `r.synced_at - ` + lately,
	}},
	{"asset_contacts", "asset_id = $1", map[string]string{"asset_id": assetOfCopy, "at": `r.at - ` + lately}},
	{"agent_devices", "asset_id = $1", map[string]string{
		"id": deviceOfCopy, "asset_id": assetOfCopy, "last_sequence": "2",
		"enrolled_at": `r.enrolled_at - ` + longAgo, "daily_since": `r.enrolled_at - ` + longAgo, "seen_at": `r.seen_at - ` + lately,
	}},
	{"device_names", "asset_id = $1", map[string]string{"name": deviceOfCopy, "asset_id": assetOfCopy}},
}

// The identifiers of copy n, as idOf makes them, and times in milliseconds.
const (
	assetOfCopy  = `LEFT(MD5('asset' || n), 26)`
	deviceOfCopy = `LEFT(MD5('device' || n), 26)`
	lately       = `n * 7919 % 900000`
	longAgo      = `n * 48271 % 25920000000`
)

func idOf(what string, n int) string {
	sum := md5.Sum(fmt.Appendf(nil, "%s%d", what, n))
	return hex.EncodeToString(sum[:])[:26]
}

// stored is what the database has at a moment.
type stored struct {
	dead, vacuums map[string]float64 // dead rows, and runs of autovacuum, by table
	wal, size     float64            // bytes: since the server began, and of the database
}

// fill makes the other agents: their rows, what they are found by, and the counts.
func (m *million) fill(t *testing.T) {
	t.Helper()
	began := time.Now()
	must := func(query string, args ...any) {
		t.Helper()
		if _, err := m.pool.ExecContext(t.Context(), query, args...); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
	for _, c := range copies {
		must(m.copyStatement(t, c.table, c.of, c.columns), m.replicas[0].agents[0].asset, firstCopy, firstCopy+*millionAgents-2)
	}
	must(`INSERT INTO asset_terms (company_id, term, asset_id)
		SELECT company_id, UNNEST(STRING_TO_ARRAY(BTRIM(search_terms, E'\n'), E'\n')), id FROM assets ORDER BY 1, 2, 3 ON CONFLICT DO NOTHING`)
	db, err := database.Open(t.Context(), database.Options{URL: m.url, Now: time.Now})
	if err == nil {
		_, err = db.Recount(t.Context())
		err = errors.Join(err, db.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	must(`VACUUM ANALYZE`)
	must(`CHECKPOINT`)
	t.Logf("%d agents made in %.0f s; the database has %.0f MB", *millionAgents, time.Since(began).Seconds(), mb(m.storage(t).size))
	// What the figures depend on.
	t.Logf("PostgreSQL with %s", strings.Join(m.texts(t, `SELECT name || ' = ' || current_setting(name) FROM pg_settings
		WHERE name IN ('server_version', 'fsync', 'full_page_writes', 'synchronous_commit', 'shared_buffers', 'max_wal_size',
			'checkpoint_timeout', 'autovacuum_naptime', 'autovacuum_vacuum_scale_factor') ORDER BY name`), ", "))
}

// copyStatement copies the row that has the text $1, to the numbers from $2 to $3.
func (m *million) copyStatement(t *testing.T, table, of string, columns map[string]string) string {
	t.Helper()
	names := m.texts(t, `SELECT column_name FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = $1`,
		table)
	values, others := make([]string, len(names)), 0
	for i, name := range names {
		value, another := columns[name]
		if values[i] = value; another {
			others++
		} else {
			values[i] = "r." + name
		}
	}
	if others != len(columns) {
		t.Fatalf("the table %s has other columns: %v", table, names)
	}
	return fmt.Sprintf(`INSERT INTO %s (%s) SELECT %s FROM %s r, generate_series(CAST($2 AS BIGINT), $3) n WHERE r.%s`,
		table, strings.Join(names, ", "), strings.Join(values, ", "), table, of)
}

// texts reads the one column of a query.
func (m *million) texts(t *testing.T, query string, args ...any) (all []string) {
	t.Helper()
	rows, err := m.pool.QueryContext(t.Context(), query, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var one string
		if err := rows.Scan(&one); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	if rows.Err() != nil {
		t.Fatal(rows.Err())
	}
	return all
}

// watched are the tables whose dead rows are measured.
func watched() []string {
	return []string{"agent_devices", "assets", "asset_contacts", "agent_deliveries", "commands", "events"}
}

// storage reads the statistics of the server.
func (m *million) storage(t *testing.T) stored {
	t.Helper()
	s := stored{dead: map[string]float64{}, vacuums: map[string]float64{}}
	err := m.pool.QueryRowContext(t.Context(), `SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0'), pg_database_size(current_database())`).
		Scan(&s.wal, &s.size)
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range watched() {
		var dead, vacuums float64
		err := m.pool.QueryRowContext(t.Context(), `SELECT n_dead_tup, autovacuum_count FROM pg_stat_user_tables
			WHERE schemaname = current_schema() AND relname = $1`, table).Scan(&dead, &vacuums)
		if err != nil {
			t.Fatalf("%s: %v", table, err)
		}
		s.dead[table], s.vacuums[table] = dead, vacuums
	}
	return s
}
