package benchtest_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/database/benchtest"
	"github.com/musterhq/muster/internal/database/pgtest"
	"github.com/musterhq/muster/internal/operation"
)

// TestLoad fills a database as the benchmarks do, which no other test runs, and reads it as the
// service and as the floor.
func TestLoad(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { testLoad(t, "sqlite:"+filepath.Join(t.TempDir(), "load.db")) })
	t.Run("postgres", func(t *testing.T) { testLoad(t, pgtest.DSN(t)) })
}

func testLoad(t *testing.T, url string) {
	const assets = 300
	now := time.Now()
	fleet := benchtest.Load(t, url, assets, now, true)
	floor, err := benchtest.Open(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := floor.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := floor.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := fleet.Get(floor)(t.Context(), 0); err != nil {
		t.Errorf("the floor reads an asset: %v", err)
	}
	fleet.WithAgents(t, floor)
	if keys := fleet.Keys(t, 2, now); len(keys) != 2 || keys[0] == keys[1] {
		t.Errorf("keys %q", keys)
	}
	db, err := database.Open(t.Context(), database.Options{URL: url, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	query := asset.Query{Filter: asset.Filter{CompanyID: fleet.Company.ID}, Order: asset.ByLastSeenAt,
		Page: operation.PageRequest{Size: 20}}
	if page, total, err := db.Assets(t.Context(), query); err != nil || total != assets || len(page) != 20 {
		t.Errorf("a page of %d of %d assets, %v; want 20 of %d", len(page), total, err, assets)
	}
	query.Text = "phone 1 rack"
	if _, total, err := db.Assets(t.Context(), query); err != nil || total != assets {
		t.Errorf("a search finds %d of %d assets, %v", total, assets, err)
	}
	if wrong, err := db.Recount(t.Context()); err != nil || wrong != 0 {
		t.Errorf("%d counts are wrong, %v", wrong, err)
	}
}
