package database_test

import (
	"testing"
	"time"

	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/fault"
)

// What a replica was sending when it died is found soon after, by any other;
// what a living one sends is left alone.
func TestAbandon_CommandsOfADeadReplica(t *testing.T) {
	withCompany(t, func(f *fixture) {
		other := f.open(f)
		f.ok(f.db.Present(f.Context()))
		f.ok(other.Present(f.Context()))
		a := f.enroll("d", "")
		c := f.begin(a, command.Lock)
		long := f.clock.Now().Add(-time.Hour)
		abandoned := func() int {
			found, err := other.Abandoned(f.Context(), long, 10)
			f.ok(err)
			if len(found) > 0 {
				equal(f, "abandoned", found[0].ID, c.ID)
			}
			return len(found)
		}
		for range 6 { // both are alive
			f.clock.Advance(3 * time.Second)
			f.ok(f.db.Present(f.Context()))
			f.ok(other.Present(f.Context()))
			equal(f, "abandoned while its sender lives", abandoned(), 0)
		}
		for range 4 {
			f.clock.Advance(3 * time.Second)
			f.ok(other.Present(f.Context()))
		}
		equal(f, "abandoned by the dead", abandoned(), 1)
	})
}

// A replica that ends takes its replicaLease back, also when a newer program told
// it to end: that program waits for it.
func TestAbsent_TakesBackThePresence(t *testing.T) {
	withCompany(t, func(f *fixture) {
		present := func(want int) {
			f.Helper()
			rows, err := f.db.Text(f.Context(), `SELECT name FROM leases WHERE name LIKE 'replica/%'`)
			f.ok(err)
			equal(f, "replicas that are present", len(rows), want)
		}
		f.ok(f.db.Present(f.Context()))
		present(1)
		f.ok(f.db.Absent(f.Context()))
		present(0)
		f.ok(f.db.Present(f.Context()))
		f.ok(database.SetVersion(f.Context(), f.url, database.SchemaNumber()+1, database.SchemaNumber()+1))
		f.code(fault.Unavailable, f.db.Present(f.Context()))
		present(1)
		f.ok(f.db.Absent(f.Context()))
		present(0)
		f.ok(database.SetVersion(f.Context(), f.url, database.SchemaNumber(), database.LowestWriter))
	})
}
