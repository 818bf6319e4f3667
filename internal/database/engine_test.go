package database_test

import (
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/database/dbtest"
)

// clock is a hand-set clock that starts at a fixed time.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock {
	return &clock{now: time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)}
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// engine is one of the two databases, empty, for one test.
type engine struct {
	name  string
	url   string
	clock *clock
}

// open opens the test's database, as one more replica would.
func (e *engine) open(tb testing.TB) *database.DB {
	tb.Helper()
	return e.openAs(tb, database.SetUp)
}

func (e *engine) openAs(tb testing.TB, use database.SchemaUse) *database.DB {
	tb.Helper()
	db, err := database.Open(tb.Context(), database.Options{URL: e.url, Now: e.clock.Now, Schema: use})
	if err != nil {
		tb.Fatal(err)
	}
	ran := collect(db)
	tb.Cleanup(func() {
		ran.explain(tb, e, db)
		if err := db.Close(); err != nil {
			tb.Error(err)
		}
	})
	return db
}

func sqliteEngine(tb testing.TB) *engine {
	return &engine{"sqlite", dbtest.SQLite(tb, filepath.Join(tb.TempDir(), "a b%c.db")), newClock()}
}

func postgresEngine(tb testing.TB) *engine {
	return &engine{"postgres", dbtest.Postgres(tb), newClock()}
}

// each runs a test on both engines.
func each(t *testing.T, test func(t *testing.T, e *engine)) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) { t.Parallel(); test(t, sqliteEngine(t)) })
	t.Run("postgres", func(t *testing.T) { t.Parallel(); test(t, postgresEngine(t)) })
}
