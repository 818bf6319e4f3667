package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/job"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/phrase"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/validate"
)

// JobCommands manage jobs. The running service carries them out.
type JobCommands struct {
	Create JobCreate `cmd:"" help:"Do one thing to all devices that match now: the running service goes through them."`
	List   JobList   `cmd:"" help:"List a company's jobs, at most 1,000: those that have not ended, then the newest of the others."`
	Show   JobShow   `cmd:"" help:"Show a job with the result of each device."`
	Pause  JobPause  `cmd:"" help:"Pause a job: no further device gets it until it is resumed."`
	Resume JobResume `cmd:"" help:"Resume a job that was paused, also by a stop of automation."`
	Cancel JobCancel `cmd:"" help:"Cancel a job: the devices that still wait never get it."`
}

// JobCreate makes a job.
type JobCreate struct {
	OfCompany
	Filter   string   `name:"filter" xor:"which" placeholder:"QUERY" help:"Which devices, as in asset list: 'tag=store-12&policyBehind=true'; 'all=true' means all. It is looked at once, now."`
	Of       string   `name:"of" xor:"which" placeholder:"JOB" help:"The devices of another job whose result is --result, instead of a filter."`
	Result   string   `name:"result" placeholder:"STATUS" help:"With --of: CANCELED (the job was canceled before their turn), ERROR, UNCONFIRMED, SUCCESS, WAITING or IN_PROGRESS."`
	Command  string   `name:"command" required:"" placeholder:"NAME" help:"What to do: message, lock, reboot, sync-policy, change-policy, status-report or tags."`
	Argument []string `name:"argument" sep:"none" placeholder:"NAME=VALUE" help:"An argument of the command; repeat for more: title=T and body=T of message, policyId=POLICY of change-policy, add=TAG and remove=TAG of tags."`
	At       *string  `name:"at" placeholder:"TIME" help:"When to start (RFC 3339), such as 2026-12-01T02:00:00Z; by default now."`
	Rate     *int     `name:"rate" placeholder:"N" help:"How many devices a minute, 1 to 600, evenly; by default 60."`
	Reason   string   `name:"reason" placeholder:"TEXT" help:"Why, for the activity log; at most 200 characters."`
	Ticket   string   `name:"ticket" placeholder:"TEXT" help:"The ticket it belongs to; at most 100 characters."`
	Plan     bool     `name:"plan" help:"Say how many devices match, and make no job."`
}

// Validate wants a time, if one is given: an empty one would mean now. A result without a job would be
// left out.
func (c *JobCreate) Validate() error {
	if (c.Of != "") != (c.Result != "") || c.Of == "" && c.Filter == "" {
		return errors.New("give --filter, or --of with --result")
	}
	if c.At == nil {
		return nil
	}
	if _, ok := validate.Time(*c.At); !ok {
		return errors.New("--at: write a time such as 2026-12-01T02:00:00Z")
	}
	return nil
}

// arguments are those of --argument as an object.
func (c *JobCreate) arguments(ctx context.Context, admin *Admin, owner company.Company) (json.RawMessage, error) {
	members := map[string]any{}
	for _, pair := range c.Argument {
		name, value, found := strings.Cut(pair, "=")
		list, isList := members[name].([]string)
		switch {
		case !found || name == "":
			return nil, &ExitError{Code: ExitUsage, Text: fmt.Sprintf("--argument %q: write NAME=VALUE", pair)}
		case c.Command == job.Tags:
			members[name] = append(list, value)
		case members[name] != nil || isList:
			return nil, &ExitError{Code: ExitUsage, Text: "--argument " + name + " is given twice"}
		case name == "policyId":
			under, err := admin.policy(ctx, owner, value)
			if err != nil {
				return nil, err
			}
			members[name] = resource.Of(owner.Slug, resource.Policies, under.ID)
		default:
			members[name] = value
		}
	}
	return json.Marshal(members)
}

// spec is what the flags ask for.
func (c *JobCreate) spec(ctx context.Context, env *Env, admin *Admin, owner company.Company, operator access.Principal) (
	spec job.Spec, err error) {
	if c.Of != "" {
		of, err := admin.job(ctx, owner, c.Of)
		if err != nil {
			return spec, err
		}
		spec = job.Spec{Of: of.ID, Result: strings.ToUpper(c.Result), Words: "job=" + of.ID + "&result=" + strings.ToUpper(c.Result)}
	} else {
		args, err := parseFilter(env, c.Filter)
		if err == nil {
			err = admin.underPolicy(ctx, owner, &args)
		}
		if err != nil {
			return spec, err
		}
		spec.Words = c.Filter
		spec.Filter, _ = args.Filter(operator, true) // its policy is there
	}
	note, wrong := operation.NoteFields{Reason: "--reason", Ticket: "--ticket"}.Read(c.Reason, c.Ticket)
	if wrong != nil {
		return spec, &ExitError{Code: ExitUsage, Text: Message(wrong)}
	}
	spec.Command, spec.Note = c.Command, note
	spec.At, _ = validate.Time(deref(c.At))
	if spec.Rate = deref(c.Rate); c.Rate != nil && spec.Rate < 1 {
		return spec, &ExitError{Code: ExitUsage, Text: "--rate must be 1 to 600 devices a minute"}
	}
	return spec, nil
}

// Run makes the job, or only its plan.
func (c *JobCreate) Run(env *Env) error {
	return c.run(env, func(ctx context.Context, admin *Admin, owner company.Company) (answer, error) {
		operator := env.operator(owner)
		operator.Permissions, operator.Settings = access.All, owner.Settings
		spec, err := c.spec(ctx, env, admin, owner, operator)
		if err == nil {
			spec.Arguments, err = c.arguments(ctx, admin, owner)
		}
		if err != nil {
			return answer{}, err
		}
		ids, err := admin.Jobs.Plan(ctx, operator, spec)
		if err != nil {
			return answer{}, usage(err)
		}
		if c.Plan {
			return answerf(map[string]int{"devices": len(ids)}, "%s of %s.\n", phrase.Count(len(ids), "device", "devices"),
				owner.PathName()), nil
		}
		made, err := admin.Jobs.Create(access.WithNote(ctx, spec.Note), operator, spec)
		if err != nil {
			return answer{}, err
		}
		view, err := admin.jobView(ctx, owner, made, env.Now())
		return answerf(view, "Job %s: %s of %s, %d a minute, from %s: about %s in all.\n", made.ID, made.Title(), owner.PathName(),
			made.Rate, day(made.StartsAt), made.Takes()), err
	})
}

// usage is an error about arguments, as a mistake on the command line.
func usage(err error) error {
	if fault.CodeOf(err) == fault.InvalidArguments {
		return &ExitError{Code: ExitUsage, Text: Message(err)}
	}
	return err
}

// JobView is the JSON of a job.
type JobView struct {
	ID      string          `json:"id"`
	Status  job.Status      `json:"status"`
	Total   int             `json:"total"`
	Results []jobResultView `json:"results"`
}

type jobResultView struct {
	AssetID string `json:"assetId"`
	Status  string `json:"status"`
	Outcome string `json:"outcome"`
}

// jobView reads a job with all of its results.
func (a *Admin) jobView(ctx context.Context, owner company.Company, j job.Job, now time.Time) (JobView, error) {
	view := JobView{ID: j.ID, Status: j.Shown(now), Total: j.Total, Results: make([]jobResultView, 0, j.Total)}
	for {
		some, err := a.Jobs.Store.JobResults(ctx, owner.ID, j.ID, "", len(view.Results), resultPage)
		for _, r := range some {
			view.Results = append(view.Results, jobResultView{resource.Of(owner.Slug, resource.Assets, r.AssetID), r.Status, r.Outcome})
		}
		if err != nil || len(some) < resultPage {
			return view, err
		}
	}
}

const resultPage = 1000

// JobList lists jobs.
type JobList struct{ OfCompany }

// listedJob is the JSON of a job in a list. It has no results: a job has up to job.MaxDevices, and job show lists them.
type listedJob struct {
	ID        string              `json:"id"`
	Status    job.Status          `json:"status"`
	Total     int                 `json:"total"`
	Command   string              `json:"command"`
	Filter    string              `json:"filter"`
	StartsAt  operation.Timestamp `json:"startsAt"`
	CreatedBy string              `json:"createdBy"`
}

const listedJobs = 1000

// Run prints the list.
func (c *JobList) Run(env *Env) error {
	return c.reading(env, func(ctx context.Context, admin *Admin, owner company.Company) (answer, error) {
		all, err := admin.Jobs.Store.Jobs(ctx, owner.ID, "", listedJobs)
		now := env.Now()
		return list(all, func(j job.Job) listedJob {
			return listedJob{j.ID, j.Shown(now), j.Total, j.Command, j.Filter, operation.Timestamp{Time: j.StartsAt}, j.Maker.Name}
		}, []string{"ID", "STATUS", "COMMAND", "DEVICES", "STARTS", "CREATED BY", "FILTER"}, func(j job.Job) []string {
			return []string{j.ID, string(j.Shown(now)), j.Command, fmt.Sprint(j.Total), day(j.StartsAt), j.Maker.Name, j.Filter}
		}), err
	})
}

// jobOf is one job of a company.
type jobOf struct {
	OfCompany
	ID string `arg:"" name:"job" help:"The job's id."`
}

// job finds a company's job by its id.
func (a *Admin) job(ctx context.Context, owner company.Company, id string) (job.Job, error) {
	j, err := a.Jobs.Store.Job(ctx, owner.ID, id)
	return j, missing(err, owner.Slug, "job", id)
}

// JobShow shows a job.
type JobShow struct{ jobOf }

// Run shows it.
func (c *JobShow) Run(env *Env) error {
	return c.reading(env, on((*Admin).job, c.ID, func(ctx context.Context, admin *Admin, owner company.Company, j job.Job) (answer, error) {
		view, err := admin.jobView(ctx, owner, j, env.Now())
		return answer{view, func(w io.Writer) {
			fmt.Fprintf(w, "%s: %s\n", j.Title(), strings.TrimSuffix(string(view.Status)+", "+j.Why, ", "))
			row(w, "ASSET", "STATUS", "OUTCOME")
			for _, r := range view.Results {
				row(w, r.AssetID, r.Status, orDash(r.Outcome))
			}
		}}, err
	}))
}

// JobPause pauses a job.
type JobPause struct{ jobOf }

// JobResume resumes one.
type JobResume struct{ jobOf }

// JobCancel cancels one.
type JobCancel struct{ jobOf }

// Run pauses.
func (c *JobPause) Run(env *Env) error { return c.move(env, job.Paused, job.ByPerson+"the operator") }

// Run resumes.
func (c *JobResume) Run(env *Env) error { return c.move(env, job.Running, "") }

// Run cancels.
func (c *JobCancel) Run(env *Env) error { return c.move(env, job.Canceled, "") }

func (c *jobOf) move(env *Env, to job.Status, why string) error {
	return c.run(env, on((*Admin).job, c.ID, func(ctx context.Context, admin *Admin, owner company.Company, j job.Job) (answer, error) {
		j, err := admin.Jobs.Move(ctx, j, to, why)
		if err != nil {
			return answer{}, missing(err, owner.Slug, "job", c.ID)
		}
		view, err := admin.jobView(ctx, owner, j, env.Now())
		return answerf(view, "Job %s is %s.\n", j.ID, strings.ToLower(string(view.Status))), err
	}))
}
