package database_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/job"
	sent "github.com/musterhq/muster/internal/outcome"
)

// spare imports an asset without a device.
func (f *fixture) spare(name string) string {
	f.Helper()
	_, err := f.db.Import(f.Context(), f.company.ID, []asset.Line{{Number: 2, Identification: name}}, asset.ImportOptions{})
	f.ok(err)
	ids, err := f.db.AssetIDs(f.Context(), asset.Filter{CompanyID: f.company.ID, Text: name}, asset.ByIdentification, false)
	f.ok(err)
	return ids[0]
}

// slowJob reboots all devices, one in ten seconds.
func (f *fixture) slowJob(r *jobReplica, p access.Principal) job.Job {
	f.Helper()
	j, err := r.service.Create(f.Context(), p, job.Spec{Command: "reboot", Words: "all=true", Rate: 6,
		Filter: asset.Filter{CompanyID: f.company.ID}})
	f.ok(err)
	return j
}

// A device that had its turn in a job, and became that of another asset of the job, does not
// get the command once more; one that had not gets it as the kept asset.
func TestJob_AtMostOnceOverAMerge(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.fleetOf(2)
		spare := f.spare("ZZZ old")
		s := &sender{sent: map[string]int{}}
		r := f.jobReplica(f.db, s, nil)
		_, p := f.jobMaker()
		sends := f.slowJob(r, p)
		tags := f.jobForAll(r, p, "tags", `{"add":["Aisle 3"]}`)
		sends = f.goOn(sends, 1, r)
		equal(f, "before", f.jobCounts(sends), "WAITING 2, SUCCESS 1")
		done, waits := f.jobDevice(sends, 0), f.jobDevice(sends, 1)
		f.ok(f.db.MergeAssets(f.Context(), f.company.ID, spare, done, nil))
		sends = f.goOn(sends, 40, r)
		results, err := f.db.JobResults(f.Context(), f.company.ID, sends.ID, "", 0, 10)
		f.ok(err)
		equal(f, "ended", string(sends.Status)+": "+f.jobCounts(sends), "DONE: SUCCESS 2, ERROR 1")
		equal(f, "the kept asset", results[2].Outcome, "not done: the device had its turn as the asset that was merged into this one")
		equal(f, "sent", fmt.Sprint(s.sent), fmt.Sprint(map[string]int{done: 1, waits: 1}))
		equal(f, "tags of both", fmt.Sprint(f.goOn(tags, 1, r).Status, f.jobCounts(tags), f.asset(spare).Tags), "DONESUCCESS 3[Aisle 3]")

		next := f.spare("AAA old")
		again := f.slowJob(r, p) // of which neither had its turn
		f.ok(f.db.MergeAssets(f.Context(), f.company.ID, next, spare, nil))
		again = f.goOn(again, 40, r)
		equal(f, "ended again", string(again.Status)+": "+f.jobCounts(again), "DONE: SUCCESS 2, ERROR 2")
		equal(f, "sent in all", fmt.Sprint(s.sent), fmt.Sprint(map[string]int{done: 1, waits: 2, next: 1}))
	})
}

// A device that had its turn, and went through assets outside the job, does not get the command as
// that of another asset of the job.
func TestJob_AtMostOnceOverMergesOutside(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.fleetOf(2)
		last := f.spare("ZZZ old")
		s := &sender{sent: map[string]int{}}
		r := f.jobReplica(f.db, s, nil)
		_, p := f.jobMaker()
		j := f.goOn(f.slowJob(r, p), 1, r)
		done, waits := f.jobDevice(j, 0), f.jobDevice(j, 1)
		first, second := f.spare("outside 1"), f.spare("outside 2")
		f.ok(f.db.MergeAssets(f.Context(), f.company.ID, first, done, nil))
		f.ok(f.db.MergeAssets(f.Context(), f.company.ID, second, first, nil))
		f.ok(f.db.MergeAssets(f.Context(), f.company.ID, last, second, nil))
		j = f.goOn(j, 40, r)
		equal(f, "ended", string(j.Status)+": "+f.jobCounts(j), "DONE: SUCCESS 2, ERROR 1")
		equal(f, "sent", fmt.Sprint(s.sent), fmt.Sprint(map[string]int{done: 1, waits: 1}))
	})
}

// standing is a store beside a process that stands still after it took a device.
type standing struct {
	*database.DB
	taken, goes chan struct{}
}

func (s standing) TakeDevices(ctx context.Context, j job.Job, n int, next, now time.Time) ([]job.Taken, error) {
	taken, err := s.DB.TakeDevices(ctx, j, n, next, now)
	s.taken <- struct{}{}
	<-s.goes
	return taken, err
}

// A process that stood still before it sent does not send to a device that had its turn as the
// asset that was merged since; while the kept asset is its, they are not merged.
func TestJob_AtMostOnceOverAMergeAndAProcessThatStoodStill(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.fleetOf(1)
		spare := f.spare("ZZZ old")
		s := &sender{sent: map[string]int{}}
		r, still := f.jobReplica(f.db, s, nil), f.jobReplica(f.open(f.T), s, nil)
		stands := standing{f.db, make(chan struct{}), make(chan struct{})}
		still.Queue = stands
		_, p := f.jobMaker()
		j := f.goOn(f.slowJob(r, p), 1, r)
		done := f.jobDevice(j, 0)
		f.clock.Advance(10 * time.Second)
		ended := make(chan error, 1)
		go func() { ended <- still.Round(f.Context()) }()
		<-stands.taken
		merge := func() error { return f.db.MergeAssets(f.Context(), f.company.ID, spare, done, nil) }
		f.code(fault.Refused, merge())
		f.clock.Advance(3 * time.Minute)
		f.ok(f.db.LookAfter(f.Context(), f.clock.Now().Add(-2*time.Minute)))
		f.ok(merge())
		close(stands.goes)
		f.ok(<-ended)
		still.Wait()
		j = f.goOn(j, 20, r)
		equal(f, "ended", string(j.Status)+": "+f.jobCounts(j), "DONE: SUCCESS 1, ERROR 1")
		equal(f, "sent", fmt.Sprint(s.sent), fmt.Sprint(map[string]int{done: 1}))
	})
}

// A process that stood still sends after its device was given back: the device had its turn, also
// before another process finds that.
func TestJob_AtMostOnceOverAMergeOfWhatWasGivenBack(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.fleetOf(1)
		spare := f.spare("ZZZ old")
		s := &sender{sent: map[string]int{}}
		r, still := f.jobReplica(f.db, s, nil), f.jobReplica(f.open(f.T), s, nil)
		stands := standing{f.db, make(chan struct{}), make(chan struct{})}
		still.Queue = stands
		_, p := f.jobMaker()
		j := f.slowJob(r, p)
		ended := make(chan error, 1)
		go func() { ended <- still.Round(f.Context()) }()
		<-stands.taken
		f.clock.Advance(3 * time.Minute)
		f.ok(f.db.LookAfter(f.Context(), f.clock.Now().Add(-2*time.Minute)))
		close(stands.goes)
		f.ok(<-ended)
		still.Wait()
		sent := f.jobDevice(j, 0)
		f.ok(f.db.MergeAssets(f.Context(), f.company.ID, spare, sent, nil))
		j = f.goOn(j, 20, r)
		equal(f, "ended", string(j.Status)+": "+f.jobCounts(j), "DONE: SUCCESS 1, ERROR 1")
		equal(f, "sent", fmt.Sprint(s.sent), fmt.Sprint(map[string]int{sent: 1}))
	})
}

// What failed stays failed in a job's results after its asset, or the one that it was merged into, is deleted.
func TestJob_ResultsOutliveAssets(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.fleetOf(3)
		spare := f.spare("ZZZ old")
		r := f.jobReplica(f.db, &sender{sent: map[string]int{}, receipt: command.Receipt{Code: sent.Accepted}}, nil)
		_, p := f.jobMaker()
		j := f.goOn(f.slowJob(r, p), 40, r)
		equal(f, "sent", string(j.Status)+": "+f.jobCounts(j), "DONE: IN_PROGRESS 3, ERROR 1")
		merged := f.jobDevice(j, 0)
		f.ok(f.db.MergeAssets(f.Context(), f.company.ID, spare, merged, nil))
		for _, name := range []string{words("d", 0), words("d", 1)} {
			gone := f.observation(name)
			gone.Gone = true
			f.observe(gone)
		}
		equal(f, "gone", f.jobCounts(j), "IN_PROGRESS 1, ERROR 3")
		before, err := f.db.JobResults(f.Context(), f.company.ID, j.ID, job.DeviceError, 0, 10)
		f.ok(err)
		f.ok(f.db.ArchiveAssets(f.Context(), f.company.ID, []string{spare, f.jobDevice(j, 1)}, true))
		f.ok(f.db.DeleteAssets(f.Context(), f.company.ID, []string{spare, f.jobDevice(j, 1)}, &keeper{}))
		equal(f, "deleted", f.jobCounts(j), "IN_PROGRESS 1, ERROR 3")
		after, err := f.db.JobResults(f.Context(), f.company.ID, j.ID, job.DeviceError, 0, 10)
		f.ok(err)
		for i := range before {
			equal(f, "outcome", after[i].Outcome, before[i].Outcome)
		}
	})
}
