package pgtest

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx
	_ "modernc.org/sqlite"             // the driver sqlite
)

// Dump reads every row of every table of a database of either engine, as
// MUSTER_DATABASE names it: texts, sorted, by table.
func Dump(tb testing.TB, database string) map[string][]string {
	tb.Helper()
	driver, source, names := "pgx", database, `SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()`
	if file, embedded := strings.CutPrefix(database, "sqlite:"); embedded {
		driver, source, names = "sqlite", file, `SELECT name FROM sqlite_master WHERE type = 'table'`
	}
	pool, err := sql.Open(driver, source)
	if err != nil {
		tb.Fatal(err)
	}
	defer pool.Close()
	tables := map[string][]string{}
	for _, table := range column(tb, pool, names) {
		tables[table] = column(tb, pool, `SELECT * FROM "`+table+`"`)
	}
	return tables
}

// column reads the rows of a query, each as one text.
func column(tb testing.TB, pool *sql.DB, query string) []string {
	tb.Helper()
	rows, err := pool.QueryContext(tb.Context(), query)
	if err != nil {
		tb.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		tb.Fatal(err)
	}
	var all []string
	for rows.Next() {
		values, targets := make([]any, len(names)), make([]any, len(names))
		for i := range values {
			targets[i] = &values[i]
		}
		if err := rows.Scan(targets...); err != nil {
			tb.Fatal(err)
		}
		text := fmt.Sprint(values[0])
		for _, value := range values[1:] {
			text += fmt.Sprintf(" %v", value)
		}
		all = append(all, text)
	}
	if err := rows.Err(); err != nil {
		tb.Fatal(err)
	}
	slices.Sort(all)
	return all
}
