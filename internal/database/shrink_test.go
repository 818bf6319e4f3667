package database_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/database/firsttest"
)

// A SQLite file gets smaller when rows are removed, also one that was made before files
// could; the upgrade writes that one again.
func TestShrink(t *testing.T) {
	t.Parallel()
	for _, old := range []bool{false, true} {
		t.Run(fmt.Sprintf("made before=%t", old), func(t *testing.T) {
			t.Parallel()
			e := sqliteEngine(t)
			path := strings.TrimPrefix(e.url, "sqlite:")
			size := func() int64 {
				info, err := os.Stat(path)
				if err != nil {
					t.Fatal(err)
				}
				return info.Size()
			}
			f := newFixture(t, e)
			f.ok(f.db.Close())
			firsttest.Exec(t, e.url, `WITH RECURSIVE m (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM m WHERE n < 50000)
				INSERT INTO messages (company_id, id, seen_at) SELECT '`+f.company.ID+`', 'message ' || n, 1 FROM m`)
			if old {
				firsttest.Exec(t, e.url, `PRAGMA auto_vacuum = NONE; VACUUM`)
			}
			db := e.openAs(t, database.Upgrade)
			full := size()
			f.ok(db.Sweep(t.Context(), f.clock.Now()))
			f.ok(db.Close())
			if now := size(); now > full/2 {
				t.Errorf("the file has %d bytes, of %d before", now, full)
			}
		})
	}
}
