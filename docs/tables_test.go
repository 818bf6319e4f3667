package docs

import (
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	tableMade  = regexp.MustCompile(`(?m)^CREATE TABLE "?([a-z_]+)"?`)
	tableNamed = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| [^|]+ \\| ([^|]+) \\| [^|]+ \\|$")
)

// TestTables_AreDescribed compares the tables of the schema with docs/tables.md.
func TestTables_AreDescribed(t *testing.T) {
	t.Parallel()
	var made, named []string
	for _, found := range tableMade.FindAllStringSubmatch(read(t, "internal/database/schema.sql"), -1) {
		made = append(made, found[1])
	}
	for _, found := range tableNamed.FindAllStringSubmatch(read(t, "docs/tables.md"), -1) {
		if slices.Contains(named, found[1]) {
			t.Errorf("docs/tables.md describes %s twice", found[1])
		}
		named = append(named, found[1])
		for _, writer := range strings.Split(found[2], ", ") {
			if _, err := os.Stat(path.Join(root, strings.Trim(writer, "`"))); err != nil {
				t.Errorf("docs/tables.md: %s is written by %s, which is not a package", found[1], writer)
			}
		}
	}
	for _, table := range made {
		if !slices.Contains(named, table) {
			t.Errorf("docs/tables.md does not describe %s: add a row with what it is, who writes it, and when its rows go", table)
		}
	}
	for _, table := range named {
		if !slices.Contains(made, table) {
			t.Errorf("docs/tables.md describes %s, which is not a table", table)
		}
	}
	if len(made) < 50 {
		t.Errorf("internal/database/schema.sql has %d tables, want at least 50: the search no longer fits it", len(made))
	}
}
