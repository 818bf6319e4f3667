package database_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/database"
)

var update = flag.Bool("update", false, "write schema.sql again")

const golden = "schema.sql"

// Our own tables and indexes; the rest is the engine's and the migrator's.
const ours = `name NOT LIKE 'sqlite_%' AND tbl_name NOT LIKE 'goose_%'`

func TestSchema_Golden(t *testing.T) {
	t.Parallel()
	got := schemaText(t, sqliteEngine(t).open(t))
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Fatalf("the migrations do not make the tables of %s: if that is meant, run the test with -update and look at the diff", golden)
	}
}

// TestSchema_IndexesLeaveOutWhatDevicesChange holds that no index reads a column that each check-in
// or each command changes: PostgreSQL would write an entry in every index of the table for it.
func TestSchema_IndexesLeaveOutWhatDevicesChange(t *testing.T) {
	t.Parallel()
	db := sqliteEngine(t).open(t)
	for table, columns := range map[string]string{
		"agent_devices": `last_sequence|seen_at|open_deliveries`,
		"api_keys":      `last_used_at`,
		"budgets":       `used`,
	} {
		indexes, err := db.Text(t.Context(),
			`SELECT sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL AND tbl_name = ?`, table)
		if err != nil || len(indexes) == 0 {
			t.Errorf("%s has %d indexes, %v", table, len(indexes), err)
		}
		changing := regexp.MustCompile(`\b(` + columns + `)\b`)
		for _, index := range indexes {
			if changing.MatchString(index) {
				t.Errorf("%s: devices change %s often", index, changing.FindString(index))
			}
		}
	}
}

// schemaText has the tables and indexes of a SQLite database, as the golden file has them.
func schemaText(t *testing.T, db *database.DB) string {
	t.Helper()
	all, err := db.Text(t.Context(), `SELECT sql || ';' FROM sqlite_master WHERE sql IS NOT NULL AND `+ours+
		` ORDER BY tbl_name, type DESC, name`)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("-- The tables as the migrations leave them. Written by go test -run Schema -update.\n-- Schema %d; programs from "+
		"%d may write.\n\n",
		database.SchemaNumber(), database.LowestWriter) + strings.Join(all, "\n") + "\n"
}

func TestSchema_SameOnBothEngines(t *testing.T) {
	t.Parallel()
	lite, post := sqliteEngine(t).open(t), postgresEngine(t).open(t)
	text := func(db *database.DB, query string) []string {
		t.Helper()
		lines, err := db.Text(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range lines {
			lines[i] = strings.ToLower(strings.TrimPrefix(line, "public."))
		}
		slices.Sort(lines)
		return lines
	}
	compare := func(what string, a, b []string) {
		t.Helper()
		if !slices.Equal(a, b) {
			t.Errorf("%s differ:\nSQLite     %s\nPostgreSQL %s", what, strings.Join(a, "\n           "), strings.Join(b, "\n           "))
		}
	}
	compare("columns",
		text(lite, `SELECT m.name || ' ' || c.name || ' ' || c.type || ' ' || (c."notnull" = 1 OR c.pk > 0)
			FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' AND m.name NOT LIKE 'goose_%'`),
		text(post, `SELECT table_name || ' ' || column_name || ' ' || data_type || ' ' || CASE is_nullable WHEN 'NO' THEN 1 ELSE 0 END
			FROM information_schema.columns WHERE table_schema = 'public' AND table_name NOT LIKE 'goose_%'`))
	compare("indexes",
		text(lite, `SELECT name || ' ' || tbl_name FROM sqlite_master WHERE type = 'index' AND `+ours),
		text(post, `SELECT indexname || ' ' || tablename FROM pg_indexes
			WHERE schemaname = 'public' AND tablename NOT LIKE 'goose_%' AND indexname NOT IN (SELECT conname FROM pg_constraint)`))
	for _, line := range text(post,
		`SELECT table_name || '.' || column_name || ' ' || COALESCE(collation_name, '') FROM information_schema.columns
		WHERE table_schema = 'public' AND data_type = 'text' AND table_name NOT LIKE 'goose_%'`) {
		if !strings.HasSuffix(line, " c") {
			t.Errorf("%s: text must compare byte by byte", line)
		}
	}
}

// Migrations that were released are never edited; their names say what they do.
func TestMigrations_AreNumbered(t *testing.T) {
	t.Parallel()
	files, err := os.ReadDir("migrations")
	if err != nil {
		t.Fatal(err)
	}
	shape, seen := regexp.MustCompile(`^\d{4}_[a-z_]+\.sql$`), map[string]string{}
	for _, f := range files {
		if f.Name() == "migrations.go" {
			continue
		}
		if !shape.MatchString(f.Name()) {
			t.Errorf("%s: want a name such as 0042_topic.sql", f.Name())
			continue
		}
		if other := seen[f.Name()[:4]]; other != "" {
			t.Errorf("%s and %s have one number", other, f.Name())
		}
		seen[f.Name()[:4]] = f.Name()
	}
}
