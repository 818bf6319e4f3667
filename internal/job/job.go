// Package job does one thing to many devices: a filter is expanded to devices once, when
// the job is created, and the service then goes through them at a chosen rate.
//
// A job is the work of its maker. At each device it is asked what the maker may do now,
// as if they sent the command themselves. A device gets the command at most once, over
// restarts and with several replicas: it is taken from the job by a compare-and-set, and
// the command's intent has a name of its own, which no second one can have.
package job

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/phrase"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/validate"
)

// Status is the state of a job.
//
//	(none) ──create──► RUNNING ◄──resume── PAUSED
//	                    │ │ │                ▲ │
//	                    │ │ └─pause, a stop──┘ │
//	                    │ └──────cancel────────┴──► CANCELED
//	                    └─every device got it, or cannot──► DONE
type Status string

// The statuses. A job that waits for its time is RUNNING in the store, and Scheduled for
// people.
const (
	Running   Status = "RUNNING"
	Scheduled Status = "SCHEDULED"
	Paused    Status = "PAUSED"
	Canceled  Status = "CANCELED"
	Done      Status = "DONE"
)

// ByPerson begins why a job is paused that a person paused; it is followed by who. The reasons
// of the service do not begin like it.
const ByPerson = "by "

// Open reports whether the job may still reach a device.
func (s Status) Open() bool { return s == Running || s == Scheduled || s == Paused }

// Limits of jobs.
const (
	DefaultRate   = 60      // devices a minute
	MaxRate       = 600     // devices a minute
	MaxDevices    = 250_000 // of one job
	MaxOpen       = 20      // of a company
	MaxOpenOfUser = 10      // of these, made by one user
	MaxAhead      = 366 * 24 * time.Hour
	MaxBehind     = 2 * time.Minute // a start that is past by less is now: forms tell minutes
	maxArguments  = 16 << 10        // bytes
	maxWords      = 1000            // characters of the filter as it is shown
	// KeepFor is how long a job that ended is kept.
	KeepFor = 400 * 24 * time.Hour
)

// Job is one command, or change of tags, for many devices.
type Job struct {
	ID        string
	CompanyID string
	Command   string          // the name by which people call it: reboot
	Arguments json.RawMessage // an object
	Filter    string          // the query, or how many devices were selected
	Maker     access.Actor
	Note      access.Note
	Status    Status
	Why       string // it is paused
	Rate      int    // devices a minute
	Total     int
	CreatedAt time.Time
	StartsAt  time.Time
	NextAt    time.Time // when the next device is due
	EndedAt   time.Time // zero: it has not ended
}

// Shown is the status for people at a time.
func (j Job) Shown(now time.Time) Status {
	if j.Status == Running && now.Before(j.StartsAt) {
		return Scheduled
	}
	return j.Status
}

// Sends reports whether the job sends to devices. Else it changes what people say of assets.
func (j Job) Sends() bool { return j.Command != Tags && j.Command != Undo }

// move is the command of a job that moves devices to a policy.
const move = "change-policy"

// MovesTo returns the id of the policy to which the job of a company moves devices, and whether
// it moves any.
func (j Job) MovesTo(slug string) (policyID string, moves bool) {
	var a struct {
		PolicyID string `json:"policyId"`
	}
	if j.Command != move || json.Unmarshal(j.Arguments, &a) != nil {
		return "", false
	}
	policyID, _ = resource.Short(slug, resource.Policies, a.PolicyID)
	return policyID, true
}

// Title is what the job is, for people.
func (j Job) Title() string { return j.Command + ", " + phrase.Count(j.Total, "device", "devices") }

// Takes is about how long the job takes, in words.
func (j Job) Takes() string {
	minutes := (j.Total + j.Rate - 1) / max(j.Rate, 1)
	if minutes <= 1 {
		return "a minute"
	}
	return phrase.Span(time.Duration(minutes) * time.Minute)
}

// The statuses of a device of a job, beside those of the command itself.
const (
	DeviceWaiting  = "WAITING"
	DeviceTaken    = "IN_PROGRESS"
	DeviceSuccess  = "SUCCESS"
	DeviceError    = "ERROR"
	DeviceUnknown  = "UNCONFIRMED"
	DeviceCanceled = "CANCELED" // the job was canceled before its turn
)

// Results are the statuses of devices, in the order of pages.
func Results() []string {
	return []string{DeviceWaiting, DeviceTaken, DeviceSuccess, DeviceError, DeviceUnknown, DeviceCanceled}
}

// Result is what became of one device. Once its command was sent, it is the command's
// own state of now.
type Result struct {
	N       int // its place in the job, from 0
	AssetID string
	Name    string // of the asset, now; empty: it is gone
	Status  string
	Outcome string
}

// Spec is what a person asks for.
type Spec struct {
	ID        string // of the job, if the form was given one; what is no id: a new one
	Command   string
	Arguments json.RawMessage
	Filter    asset.Filter
	Words     string   // the filter as it was asked
	AtMost    int      // devices that may match the filter, as many as a person saw; 0: any number
	Assets    []string // ids, instead of a filter
	Of        string   // another job, instead of a filter: its devices with a result
	Result    string   // one of Results
	At        time.Time
	Rate      int // 0: DefaultRate
	Note      access.Note
}

// Store keeps jobs. Finders return fault.NotFound.
type Store interface {
	// CreateJob stores a job with its devices. If there is one with its id already, it
	// returns that. It fails with fault.Refused above MaxOpen and MaxOpenOfUser, and if its policy is not there.
	CreateJob(ctx context.Context, j Job, assets []string) (Job, error)
	// Jobs returns the jobs of a company that have not ended and then the others, each the newest first, at most limit;
	// makerID, if not empty: those of one maker.
	Jobs(ctx context.Context, companyID, makerID string, limit int) ([]Job, error)
	// Job returns a job of the company, or fault.NotFound.
	Job(ctx context.Context, companyID, id string) (Job, error)
	// JobResults returns up to limit results from a place on; status empty: of any. The company
	// has no such job: none, as of the other methods that count or list devices.
	JobResults(ctx context.Context, companyID, id, status string, from, limit int) ([]Result, error)
	// JobAssets returns the ids of the assets of a job with a result, in the order of the job: those
	// that are not archived, and whose device has one of some policies; nil: any.
	JobAssets(ctx context.Context, companyID, id, status string, policies []string) ([]string, error)
	// JobCounts counts the devices of a job by the status of their results.
	JobCounts(ctx context.Context, companyID, id string) (map[string]int, error)
	// JobFailures counts the devices of jobs of the company, by their ids, whose result is an error
	// or unconfirmed.
	JobFailures(ctx context.Context, companyID string, ids []string) (map[string]int, error)
	// MoveJob pauses, resumes or cancels an open job; fault.Unsupported from another status,
	// fault.Refused to resume one while automation is stopped, fault.NotFound without such a job.
	MoveJob(ctx context.Context, companyID, id string, to Status, why string) (Job, error)
	// JobMaker returns the maker of a job as a caller, as they are now. It fails with
	// fault.Forbidden if they are gone or disabled, and with fault.NotFound without the company.
	JobMaker(ctx context.Context, j Job) (access.Principal, error)
}

// Service creates jobs and moves them.
type Service struct {
	Store      Store
	Assets     asset.Store
	Operations *operation.Registry // see Offer
	Now        func() time.Time
}

// Devices expands a spec: the ids of its devices. It fails with fault.InvalidArguments for a result
// that there is not.
func (s Service) Devices(ctx context.Context, p access.Principal, spec Spec) ([]string, error) {
	if spec.Of != "" {
		if !slices.Contains(Results(), spec.Result) {
			return nil, fault.InvalidField("result", "must be one of "+strings.Join(Results(), ", "))
		}
		return s.Store.JobAssets(ctx, p.CompanyID, spec.Of, spec.Result, p.Policies)
	}
	if spec.Assets != nil {
		found, err := s.Assets.AssetsByID(ctx, p.CompanyID, spec.Assets)
		ids := []string{}
		for _, a := range found {
			if a.VisibleTo(p) {
				ids = append(ids, a.ID)
			}
		}
		return ids, err
	}
	return s.Assets.AssetIDs(ctx, spec.Filter, asset.ByIdentification, false)
}

// Plan returns the devices of a job that can be created. It fails as Create does, but where
// there are none.
func (s Service) Plan(ctx context.Context, p access.Principal, spec Spec) ([]string, error) {
	if _, err := s.check(p, spec); err != nil {
		return nil, err
	}
	return s.Devices(ctx, p, spec)
}

// Create makes a job that starts at its time. It fails with fault.InvalidArguments,
// fault.Forbidden if the maker may not do it now, and fault.Refused for no device, too many, more
// than AtMost, or a policy that is not there.
func (s Service) Create(ctx context.Context, p access.Principal, spec Spec) (Job, error) {
	o, err := s.check(p, spec)
	if err != nil {
		return Job{}, err
	}
	ids, err := s.Devices(ctx, p, spec)
	switch {
	case err != nil:
		return Job{}, err
	case len(ids) == 0:
		return Job{}, fault.New(fault.Refused, "no device matches: nothing is to be done")
	case spec.AtMost > 0 && len(ids) > spec.AtMost:
		return Job{}, fault.New(fault.Refused, "%d devices match now, and %d were shown: look at them again", len(ids), spec.AtMost)
	case len(ids) > MaxDevices:
		return Job{}, fault.New(fault.Refused, "%d devices match: a job takes at most %d", len(ids), MaxDevices)
	}
	now := s.Now()
	j := Job{ID: spec.ID, CompanyID: p.CompanyID, Command: commandOf(o), Arguments: spec.Arguments,
		Filter: validate.Clean(spec.Words, maxWords), Maker: p.Actor(), Note: spec.Note,
		Status: Running, Rate: cmp.Or(spec.Rate, DefaultRate), Total: len(ids), CreatedAt: now, StartsAt: spec.At, NextAt: spec.At}
	if !resource.IsID(j.ID) {
		j.ID = resource.NewID()
	}
	if j.StartsAt.Before(now) {
		j.StartsAt, j.NextAt = now, now
	}
	if to, moves := j.MovesTo(p.CompanySlug); moves && !p.MaySee(to) {
		return Job{}, NoPolicy()
	}
	return s.Store.CreateJob(ctx, j, ids)
}

// NoPolicy is the fault of a job that would move devices to a policy which is not there, or
// which its maker may not see.
func NoPolicy() error {
	return fault.New(fault.Refused, "the policy to which the devices would be moved is not there any more: choose another")
}

// check returns the operation of a spec that can be carried out.
func (s Service) check(p access.Principal, spec Spec) (*operation.Operation, error) {
	o := find(s.Operations, spec.Command)
	if o == nil {
		return nil, fault.Invalid("there is no such command for many devices",
			fault.Field{Field: "command", Message: "must be one of " + names(s.Operations)})
	}
	switch {
	case spec.Rate < 0 || spec.Rate > MaxRate:
		return nil, fault.InvalidField("rate", "must be 1 to 600 devices a minute")
	case spec.At.After(s.Now().Add(MaxAhead)):
		return nil, fault.InvalidField("at", "must be within a year")
	case !spec.At.IsZero() && spec.At.Before(s.Now().Add(-MaxBehind)):
		return nil, fault.InvalidField("at", "must not be in the past: leave it out to start now")
	case len(spec.Arguments) > maxArguments:
		return nil, fault.InvalidField("argument", "must be at most 16 KiB in all")
	}
	if err := o.Check(call("-", spec.Arguments)); err != nil {
		return nil, err
	}
	if err := access.Grant(p, o.Needs, o.Gate); err != nil {
		return nil, err
	}
	return o, stops(p.Settings.Stop)
}

// MayGoOn fails with fault.Forbidden if the maker of a job may not do it any more.
func (s Service) MayGoOn(ctx context.Context, j Job) error {
	p, err := s.Store.JobMaker(ctx, j)
	if err != nil {
		return err
	}
	return j.lost(find(s.Operations, j.Command), p)
}

// Move pauses, resumes or cancels a job; why is kept where it is paused. It fails with fault.Forbidden
// if a job is to be resumed whose maker may not do it any more, and as Store.MoveJob does.
func (s Service) Move(ctx context.Context, j Job, to Status, why string) (Job, error) {
	if to == Running {
		if err := s.MayGoOn(ctx, j); err != nil {
			return j, err
		}
	}
	return s.Store.MoveJob(ctx, j.CompanyID, j.ID, to, why)
}

// lost says which rights the job's maker, as they are now, does not have any more.
func (j Job) lost(o *operation.Operation, maker access.Principal) error {
	missing := o.Needs &^ maker.Permissions
	if missing == 0 {
		return nil
	}
	return fault.New(fault.Forbidden, "its maker, %s, may not %s any more", j.Maker.Name,
		strings.ReplaceAll(strings.ToLower(missing.Title()), ", ", " or "))
}

// stops refuses what a company's stop holds up: jobs, also of people.
func stops(stop access.Stop) error {
	if !stop.On() {
		return nil
	}
	return fault.New(fault.Forbidden, "automation is stopped: %s. Resume it first, then each job", stop.Reason).
		Because(access.ErrStopped)
}
