package job

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/wait"
)

const (
	// Every is how often a Runner looks for devices that are due.
	Every = 500 * time.Millisecond
	// takenFor is after how long a device is looked after that a process took and did not
	// settle: longer than a channel's longest attempt. It is also how long one waits that was
	// refused for a passing reason.
	takenFor = 2 * time.Minute
)

// Taken is a device that was taken from a job.
type Taken struct {
	JobID, AssetID string
	N              int
	At             time.Time // when
}

// Queue is the store, as the Runner needs it. Each method fails as the database does, and with the
// faults that it names.
type Queue interface {
	// DueJobs returns the running jobs of which a device is due.
	DueJobs(ctx context.Context, now time.Time) ([]Job, error)
	// JobMaker is that of Store: fault.Forbidden if the maker is gone or disabled, fault.NotFound
	// without the company.
	JobMaker(ctx context.Context, j Job) (access.Principal, error)
	// TakeDevices takes up to n devices of a running job whose next device is due at
	// j.NextAt, and puts that off to next; none if another replica did, or the job moved.
	// A job without devices left ends.
	TakeDevices(ctx context.Context, j Job, n int, next, now time.Time) ([]Taken, error)
	// StillTaken fails with fault.Unsupported if a device was given back since, or settled.
	StillTaken(ctx context.Context, d Taken) error
	// SettleDevice notes what became of a device; Waiting gives it back.
	SettleDevice(ctx context.Context, d Taken, status, outcome string) error
	// LookAfter settles the devices that were taken before a time: by their commands and the
	// changes of their assets, or gives them back, as neither was begun.
	LookAfter(ctx context.Context, before time.Time) error
	// MoveJob is that of Store: fault.Unsupported from another status, fault.Refused to resume a
	// job while automation is stopped, fault.NotFound without such a job.
	MoveJob(ctx context.Context, companyID, id string, to Status, why string) (Job, error)
}

// Config is what a Runner needs.
type Config struct {
	Queue      Queue
	Operations *operation.Registry
	Now        func() time.Time
	Log        *slog.Logger
	// Stands is that of the kernel: see operation.Config.
	Stands func(ctx context.Context) error
}

// Runner goes through the jobs that are due. Any number of replicas have one.
type Runner struct {
	Config
	kernel *operation.Kernel
	slots  slots // of the devices that are sent to
	sends  sync.WaitGroup
}

// NewRunner returns a runner. Its kernel has no budgets: the rate of a job takes the place of its maker's.
func NewRunner(c Config) *Runner {
	return &Runner{Config: c,
		kernel: operation.NewKernel(operation.Config{Budgets: operation.Budgets{Uncounted: true}, Stands: c.Stands,
			Log: c.Log, Now: c.Now})}
}

// Run works until the context ends, and returns when what was begun has ended.
func (r *Runner) Run(ctx context.Context) error {
	defer r.Wait()
	ticker := time.NewTicker(Every)
	defer ticker.Stop()
	return wait.Rounds{Name: "jobs", Work: r.Round, Ticks: ticker.C, Now: r.Now, Log: r.Log}.Run(ctx)
}

// Wait returns when what the rounds have begun has ended.
func (r *Runner) Wait() { r.sends.Wait() }

// Round takes the devices that are due and sends to each in the background.
func (r *Runner) Round(ctx context.Context) error {
	now := r.Now()
	if err := r.Queue.LookAfter(ctx, now.Add(-takenFor)); err != nil {
		return err
	}
	due, err := r.Queue.DueJobs(ctx, now)
	if err != nil {
		return err
	}
	var errs []error
	for _, j := range due {
		errs = append(errs, r.advance(ctx, j, now))
	}
	return errors.Join(errs...)
}

// advance takes what is due of one job.
func (r *Runner) advance(ctx context.Context, j Job, now time.Time) error {
	n, next := j.due(now)
	if n = min(n, r.slots.room(j.CompanyID)); n == 0 {
		return nil
	}
	maker, err := r.maker(ctx, j)
	if err != nil {
		return r.hold(ctx, j, err)
	}
	taken, err := r.Queue.TakeDevices(ctx, j, n, next, now)
	for _, d := range taken {
		r.slots.take(j.CompanyID)
		r.sends.Go(func() {
			defer r.slots.leave(j.CompanyID)
			r.send(context.WithoutCancel(ctx), j, maker, d)
		})
	}
	return err
}

// due is how many devices are due, evenly by the rate, and when the next one is. What was
// missed while no replica ran is not made up for, and a time of a clock that was ahead is now.
func (j Job) due(now time.Time) (n int, next time.Time) {
	interval := time.Minute / time.Duration(j.Rate)
	from := j.NextAt
	if late := now.Sub(from); late > 2*Every || late < 0 {
		from = now
	}
	n = 1 + int(now.Sub(from)/interval)
	return n, from.Add(time.Duration(n) * interval)
}

// maker is the maker of a job, if they may act now.
func (r *Runner) maker(ctx context.Context, j Job) (access.Principal, error) {
	p, err := r.Queue.JobMaker(ctx, j)
	if err == nil {
		err = cmp.Or(stops(p.Settings.Stop), j.lost(find(r.Operations, j.Command), p))
	}
	return p, err
}

// hold pauses a job whose maker may not go on. Any other error is returned.
func (r *Runner) hold(ctx context.Context, j Job, why error) error {
	if fault.CodeOf(why) != fault.Forbidden {
		return why
	}
	_, err := r.Queue.MoveJob(access.WithActor(ctx, access.ServiceActor(), ""), j.CompanyID, j.ID, Paused, fault.From(why).Detail)
	if fault.CodeOf(err) == fault.Unsupported { // it moved by itself
		return nil
	}
	return err
}

// send runs the job's operation on one device and settles it.
func (r *Runner) send(ctx context.Context, j Job, maker access.Principal, d Taken) {
	o := find(r.Operations, j.Command)
	permit := access.NewPermit(maker, func(ctx context.Context) (access.Principal, error) {
		if err := r.Queue.StillTaken(ctx, d); err != nil {
			return access.Principal{}, err
		}
		return r.maker(ctx, j)
	})
	meta := operation.Meta{RequestID: RequestID(j.ID), IdempotencyRef: Ref(d.JobID, d.AssetID), Note: j.Note}
	out := r.kernel.Run(access.WithPermit(ctx, permit), o, maker, meta, call(d.AssetID, j.Arguments))
	status, outcome := DeviceSuccess, ""
	if out.Fault != nil {
		status, outcome = DeviceError, "not done: "+out.Fault.Detail
		switch {
		case out.Fault.Code == fault.Forbidden:
			status, outcome = DeviceWaiting, ""
			if err := r.hold(ctx, j, out.Fault); err != nil {
				r.Log.WarnContext(ctx, "cannot pause a job whose maker may not go on", "job", j.ID, "error", err)
			}
		case !out.Reached && out.Fault.MayRetry():
			status, outcome = DeviceWaiting, ""
		case errors.Is(out.Fault, operation.ErrDoubt), out.Fault.Code == fault.Internal, out.Fault.MayRetry():
			return // its command, if there is one, is found later; without one, the device gets another turn
		}
	} else if u, ok := out.Result.(operation.Uncertain); ok && u.Unconfirmed() {
		status = DeviceUnknown
	}
	if err := r.Queue.SettleDevice(ctx, d, status, outcome); err != nil {
		r.Log.WarnContext(ctx, "cannot note the result of a job's device", "job", j.ID, "error", err)
	}
}

// Ref is the name of a device's command in a job, which no second command has.
func Ref(jobID, assetID string) string { return "job:" + jobID + ":" + assetID }

// RequestID is the request id of a job's calls in the activity log. No caller can choose
// one like it: theirs have no slash.
func RequestID(jobID string) string { return "job/" + jobID }
