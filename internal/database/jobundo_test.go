package database_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/job"
)

// forgetful is a store beside a process that is killed before it notes a result.
type forgetful struct{ *database.DB }

// SettleDevice implements job.Queue.
func (forgetful) SettleDevice(context.Context, job.Taken, string, string) error { return nil }

func (f *fixture) jobForAll(r *jobReplica, p access.Principal, command, arguments string) job.Job {
	f.Helper()
	j, err := r.service.Create(f.Context(), p, job.Spec{Command: command, Words: "all=true", Filter: asset.Filter{CompanyID: f.company.ID},
		Arguments: json.RawMessage(arguments)})
	f.ok(err)
	return j
}

// What a job changed of an asset before its process was killed counts as done, and is not
// tried again: an undo that was done finds nothing to undo.
func TestJob_ChangesOverAKill(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.fleetOf(3)
		r := f.jobReplica(f.db, &sender{sent: map[string]int{}}, nil)
		killed := f.jobReplica(f.db, &sender{sent: map[string]int{}}, nil)
		killed.Queue = forgetful{f.db}
		_, p := f.jobMaker()
		tagged := f.goOn(f.jobForAll(r, p, "tags", `{"add":["Aisle 3"]}`), 5, r)
		equal(f, "tagged", f.jobCounts(tagged), "SUCCESS 3")
		undo := f.jobForAll(r, p, "undo", `{"ref":"`+job.RequestID(tagged.ID)+`"}`)
		undo = f.goOn(undo, 5, killed)
		equal(f, "after the kill", f.jobCounts(undo), "IN_PROGRESS 3")
		f.clock.Advance(3 * time.Minute)
		undo = f.goOn(undo, 2, r)
		equal(f, "looked after", string(undo.Status)+": "+f.jobCounts(undo), "DONE: SUCCESS 3")
	})
}

// A process that stood still gives an asset back what it was, after its device was given to
// another: that one is refused, and the device counts as done.
func TestJob_ChangesOfAProcessThatStoodStill(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.fleetOf(2)
		r := f.jobReplica(f.db, &sender{sent: map[string]int{}}, nil)
		_, p := f.jobMaker()
		tagged := f.goOn(f.jobForAll(r, p, "tags", `{"add":["Aisle 3"]}`), 4, r)
		undo := f.jobForAll(r, p, "undo", `{"ref":"`+job.RequestID(tagged.ID)+`"}`)
		still := access.WithActor(f.Context(), p.Actor(), job.RequestID(undo.ID))
		_, err := f.db.UndoEdit(still, f.company.ID, f.jobDevice(undo, 0), job.RequestID(tagged.ID), time.Hour, nil)
		f.ok(err)
		_, err = f.db.EditAsset(f.Context(), f.company.ID, f.jobDevice(undo, 1), asset.Edit{AddTags: []string{"Aisle 4"}})
		f.ok(err)
		undo = f.goOn(undo, 4, r)
		equal(f, "ended", string(undo.Status)+": "+f.jobCounts(undo), "DONE: SUCCESS 1, ERROR 1")
	})
}

// After the undo of a device's first name by a person, its reports go on naming it.
func TestUndoEdit_DevicesOwnName(t *testing.T) {
	withCompany(t, func(f *fixture) {
		a := f.enroll("d1", "")
		as := access.WithActor(f.Context(), access.Actor{Kind: access.User, ID: "u1"}, "r1")
		_, err := f.db.EditAsset(as, f.company.ID, a.ID, asset.Edit{Identification: new("Reception")})
		f.ok(err)
		_, err = f.db.UndoEdit(as, f.company.ID, a.ID, "r1", time.Hour, nil)
		f.ok(err)
		equal(f, "the name after the undo", f.asset(a.ID).Identification, a.Identification)
		f.clock.Advance(time.Minute)
		report := f.observation("d1")
		report.Model = "Tablet 9"
		f.observe(report)
		if now := f.asset(a.ID).Identification; now == a.Identification {
			f.Errorf("the name stays %q, although the device reports another model", now)
		}
	})
}

// An edit of an asset that was archived since cannot be undone.
func TestUndoEdit_ArchivedAsset(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.ok(f.db.ImportAssets(f.Context(), []asset.Asset{{ID: "a1", CompanyID: f.company.ID, Identification: "Shelf"}}))
		as := access.WithActor(f.Context(), access.Actor{Kind: access.User, ID: "u1"}, "r1")
		_, err := f.db.EditAsset(as, f.company.ID, "a1", asset.Edit{AddTags: []string{"Aisle 4"}})
		f.ok(err)
		f.ok(f.db.ArchiveAssets(f.Context(), f.company.ID, []string{"a1"}, true))
		_, err = f.db.UndoEdit(as, f.company.ID, "a1", "r1", time.Hour, nil)
		f.code(fault.Unsupported, err)
		f.ok(f.db.ArchiveAssets(f.Context(), f.company.ID, []string{"a1"}, false))
		undone, err := f.db.UndoEdit(as, f.company.ID, "a1", "r1", time.Hour, nil)
		f.ok(err)
		equal(f, "tags", len(undone.Tags), 0)
	})
}
