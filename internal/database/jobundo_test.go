package database_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/job"
)

// forgetful is a store beside a process that is killed before it notes a result.
type forgetful struct{ *database.DB }

// SettleDevice implements job.Queue.
func (forgetful) SettleDevice(context.Context, job.Taken, string, string) error { return nil }

// What a job changed of an asset before its process was killed counts as done, and is not
// tried again: an undo that was done finds nothing to undo.
func TestJob_ChangesOverAKill(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.fleetOf(3)
		r := f.jobReplica(f.db, &sender{sent: map[string]int{}}, nil)
		killed := f.jobReplica(f.db, &sender{sent: map[string]int{}}, nil)
		killed.Queue = forgetful{f.db}
		_, p := f.jobMaker()
		create := func(command, arguments string) job.Job {
			j, err := r.service.Create(f.Context(), p, job.Spec{Command: command, Words: "all=true",
				Filter:    asset.Filter{CompanyID: f.company.ID},
				Arguments: json.RawMessage(arguments)})
			f.ok(err)
			return j
		}
		tagged := f.goOn(create("tags", `{"add":["Aisle 3"]}`), 5, r)
		equal(f, "tagged", f.jobCounts(tagged), "SUCCESS 3")
		undo := create("undo", `{"ref":"`+job.RequestID(tagged.ID)+`"}`)
		undo = f.goOn(undo, 5, killed)
		equal(f, "after the kill", f.jobCounts(undo), "IN_PROGRESS 3")
		f.clock.Advance(3 * time.Minute)
		undo = f.goOn(undo, 2, r)
		equal(f, "looked after", string(undo.Status)+": "+f.jobCounts(undo), "DONE: SUCCESS 3")
	})
}
