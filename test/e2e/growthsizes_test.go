package e2e_test

import (
	"database/sql"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/test/poll"
)

// Sizes that are no table.
const (
	sizeDatabase   = "kilobytes of the database"
	sizeFiles      = "files of the service"
	sizeAgents     = "kilobytes of the agents' states" // without their logs, which have a limit
	sizeGoroutines = "goroutines"
)

// sizes are the rows of each table, and the sizes above.
func (s *growthSite) sizes() map[string]int64 {
	s.Helper()
	all := map[string]int64{}
	for _, table := range s.tables() {
		all[table] = s.number(`SELECT COUNT(*) FROM "` + table + `"`)
	}
	all["commands of jobs"] = s.number(`SELECT COUNT(*) FROM commands WHERE idempotency_ref LIKE 'job:%'`)
	all["commands"] -= all["commands of jobs"]
	all[sizeDatabase] = s.databaseSize() / 1024
	all[sizeFiles], _ = filesOf(s.T, s.Dir)
	for _, p := range s.phones {
		_, size := filesOf(s.T, p.Options.Dir)
		all[sizeAgents] += size / 1024
	}
	all[sizeGoroutines] = quietGoroutines()
	return all
}

// quietGoroutines is the least number of goroutines until it has not fallen for a second:
// connections that are idle are closed, and what a request began has ended.
func quietGoroutines() int64 {
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	least := runtime.NumGoroutine()
	for waited := 0; waited < 20; waited++ {
		poll.Pause(50 * time.Millisecond)
		if now := runtime.NumGoroutine(); now < least {
			least, waited = now, 0
		}
	}
	return int64(least)
}

// filesOf counts the files below a directory and their bytes.
func filesOf(t *testing.T, dir string) (count, size int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || e.Name() == agent.LogFile {
			return err
		}
		count++
		info, err := e.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return count, size
}

func (s *growthSite) embedded() bool { return strings.HasPrefix(s.Database, "sqlite:") }

// pool opens the database beside the service.
func (s *growthSite) pool() *sql.DB {
	s.Helper()
	driver, source := "pgx", s.Database
	if s.embedded() {
		driver, source = "sqlite", "file:"+strings.TrimPrefix(s.Database, "sqlite:")+"?_pragma=busy_timeout(10000)"
	}
	pool, err := sql.Open(driver, source)
	s.ok(err)
	return pool
}

func (s *growthSite) number(query string) (n int64) {
	s.Helper()
	pool := s.pool()
	defer func() { _ = pool.Close() }()
	s.ok(pool.QueryRowContext(s.Context(), query).Scan(&n))
	return n
}

func (s *growthSite) tables() (all []string) {
	s.Helper()
	query := `SELECT tablename FROM pg_tables WHERE schemaname = current_schema()`
	if s.embedded() {
		query = `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`
	}
	pool := s.pool()
	defer func() { _ = pool.Close() }()
	rows, err := pool.QueryContext(s.Context(), query)
	s.ok(err)
	defer rows.Close()
	for rows.Next() {
		var name string
		s.ok(rows.Scan(&name))
		all = append(all, name)
	}
	s.ok(rows.Err())
	return all
}

// databaseSize is the size of the SQLite file, or of PostgreSQL's tables with their indexes,
// after what a server does by itself every minute of real time.
func (s *growthSite) databaseSize() int64 {
	s.Helper()
	if s.embedded() {
		return s.number(`SELECT page_count * page_size FROM pragma_page_count, pragma_page_size`)
	}
	pool := s.pool()
	defer func() { _ = pool.Close() }()
	_, err := pool.ExecContext(s.Context(), `VACUUM ANALYZE`)
	s.ok(err)
	return s.number(
		`SELECT SUM(pg_total_relation_size(quote_ident(tablename)::regclass)) FROM pg_tables WHERE schemaname = current_schema()`)
}

// reportSizes logs the sizes of all months side by side, without what is always empty.
func reportSizes(t *testing.T, months []map[string]int64) {
	t.Helper()
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(months[len(months)-1])) {
		line, some := fmt.Sprintf("\n%-40s", name), false
		for _, m := range months {
			line += fmt.Sprintf("%9d", m[name])
			some = some || m[name] != 0
		}
		if some {
			text.WriteString(line)
		}
	}
	t.Log(text.String())
}
