package database_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/database/pgtest"
	"github.com/musterhq/muster/internal/proposal"
)

// Replicas whose machines are hours apart agree by the server's clock: on who
// has a lease, and on when a proposal expires.
func TestClock_ReplicasAgree(t *testing.T) {
	t.Parallel()
	url := pgtest.DSN(t)
	replica := func(wrong time.Duration) *database.DB {
		t.Helper()
		db, err := database.Open(t.Context(), database.Options{URL: url, ServerClock: true,
			Now: func() time.Time { return time.Now().Add(wrong) }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
		return db
	}
	slow, fast := replica(-5*time.Hour), replica(7*time.Hour)
	for _, db := range []*database.DB{slow, fast} {
		if off := time.Since(db.Now()).Abs(); off > 10*time.Second {
			t.Errorf("the clock is %s off", off)
		}
	}
	if got, err := slow.Lease(t.Context(), "x", "slow", time.Minute); err != nil || !got {
		t.Fatal(got, err)
	}
	if got, err := fast.Lease(t.Context(), "x", "fast", time.Minute); err != nil || got {
		t.Fatalf("taken over at once: %v, %v", got, err)
	}
	f := &fixture{T: t, engine: &engine{name: "postgres", clock: &clock{now: time.Now()}}, db: slow}
	f.company = f.newCompany("acme")
	made := f.propose(f.newPolicy("Warehouse"), access.Actor{Kind: access.APIKey, ID: "k"})
	if left := time.Until(made.ExpiresAt); left < 9*time.Minute || left > 11*time.Minute {
		t.Errorf("expires in %s", left)
	}
	if p, err := fast.Proposal(t.Context(), f.company.ID, made.ID); err != nil || p.Status != proposal.Pending {
		t.Errorf("seen from the other: %s, %v", p.Status, err)
	}
	if err := fast.Sweep(t.Context(), fast.Now()); err != nil {
		t.Error(err)
	}
}

// SQLite has no server: the time is this machine's.
func TestClock_Embedded(t *testing.T) {
	t.Parallel()
	at := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	db, err := database.Open(t.Context(), database.Options{URL: "sqlite:" + filepath.Join(t.TempDir(), "m.db"), ServerClock: true,
		Now: func() time.Time { return at }})
	if err != nil {
		t.Fatal(err)
	}
	if got := db.Now(); !got.Equal(at) {
		t.Errorf("now is %s", got)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}
