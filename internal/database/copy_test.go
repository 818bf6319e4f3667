package database_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/database/pgtest"
	"github.com/musterhq/muster/internal/oauth"
)

func TestCopy_ThereAndBack(t *testing.T) {
	t.Parallel()
	f := newFixture(t, sqliteEngine(t))
	a := f.enroll("d1", f.newPolicy("Kiosk “ö”").ID)
	f.begin(a, command.Lock)
	half := f.observation("d1")
	half.StatusReport = json.RawMessage(`{"batteryLevel":12.5}`)
	f.observe(half)
	for range 120 {
		f.observe(f.joined("d"+f.clock.Now().Format("150405"), ""))
	}
	options := database.Options{URL: f.url, Now: f.clock.Now}
	post := pgtest.DSN(t)
	there, err := database.Copy(t.Context(), options, post)
	f.ok(err)
	if len(there) < 30 {
		t.Fatalf("%d tables were copied", len(there))
	}
	equal(t, "rows of assets", rowsOf(there, "assets"), int64(121))
	if _, err := database.Copy(t.Context(), options, post); err == nil || !strings.Contains(err.Error(), "the target is not empty") {
		t.Fatalf("error = %v, want a refusal of a database that is not empty", err)
	}
	lite := emptyEngine(t, "sqlite")
	back, err := database.Copy(t.Context(), database.Options{URL: post, Now: f.clock.Now}, lite.url)
	f.ok(err)
	equal(t, "copy of the copy", back, there)

	g := &fixture{T: t, engine: lite, db: lite.open(t), company: f.company}
	equal(t, "asset", encodeJSON(t, g.asset(a.ID)), encodeJSON(t, f.asset(a.ID)))
	equal(t, "battery below 13", g.finds(asset.Filter{BatteryBelow: 13}), f.finds(asset.Filter{BatteryBelow: 13}))
	g.checkCounts()
	g.checkTerms()
	g.enroll("later", "")
}

func encodeJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func rowsOf(copied []database.TableCopy, table string) int64 {
	for _, c := range copied {
		if c.Name == table {
			return c.Rows
		}
	}
	return -1
}

func TestCopy_Refuses(t *testing.T) {
	t.Parallel()
	f := newFixture(t, sqliteEngine(t))
	options := func(url string) database.Options { return database.Options{URL: url, Now: f.clock.Now} }
	refuse := func(from, to, says string) {
		t.Helper()
		if _, err := database.Copy(t.Context(), options(from), to); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("error = %v, want one that says %q", err, says)
		}
	}
	post := pgtest.DSN(t)
	refuse(f.url, "sqlite:/tmp/other.db", "both databases are of one engine")
	refuse(emptyEngine(t, "sqlite").url, post, "the database is empty")
	old := emptyEngine(t, "sqlite")
	f.ok(database.MigrateTo(t.Context(), old.url, 84))
	refuse(old.url, post, "made by an older Muster")

	serving, stop := context.WithCancel(t.Context())
	spoken := f.speak(serving)
	refuse(f.url, post, "a service works on the source")
	ahead := options(f.url)
	ahead.Now = func() time.Time { return f.clock.Now().Add(50 * time.Second) }
	if _, err := database.Copy(t.Context(), ahead, post); err == nil || !strings.Contains(err.Error(), "a service works on the source") {
		t.Errorf("with a clock that is ahead of the service's: %v", err)
	}
	stop()
	f.ok(<-spoken)
	found, err := database.Inspect(t.Context(), post)
	f.ok(err)
	equal(t, "the target is empty still", found.Empty(), true)
}

// A text from before it was refused, which PostgreSQL cannot keep, is named with its row.
func TestCopy_NamesTheRowThatCannotBeKept(t *testing.T) {
	t.Parallel()
	f := newFixture(t, sqliteEngine(t))
	f.ok(f.db.SaveOAuthClient(t.Context(), oauth.Client{ID: "mc_1", Name: "Helper", CreatedAt: f.clock.Now(),
		ExpiresAt: f.clock.Now().Add(time.Hour)}))
	f.tamper(`UPDATE oauth_clients SET name = 'a' || char(0) || 'b'`)
	_, err := database.Copy(t.Context(), database.Options{URL: f.url, Now: f.clock.Now}, pgtest.DSN(t))
	if err == nil || !strings.Contains(err.Error(), `table oauth_clients: its column name has a text`) ||
		!strings.Contains(err.Error(), `id = "mc_1"`) {
		t.Errorf("the error names neither table, column nor row: %v", err)
	}
}
