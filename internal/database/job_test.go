package database_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/job"
	"github.com/musterhq/muster/internal/operation"
	sent "github.com/musterhq/muster/internal/outcome"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/test/poll"
)

// sender is a channel that counts what each device is sent.
type sender struct {
	hangs   chan struct{} // until it is closed, no order is answered; nil: each is at once
	mu      sync.Mutex
	full    bool            // there is no room for an order of a job
	sent    map[string]int  // by asset
	receipt command.Receipt // of each; zero: done
}

func (s *sender) Prepare(_ context.Context, o command.Order) (*agentdevice.Delivery, *command.Receipt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.full && o.Command.OfJob() {
		return nil, &command.Receipt{Code: sent.Throttled}
	}
	return nil, nil
}

func (s *sender) Send(_ context.Context, o command.Order) command.Receipt {
	if s.hangs != nil {
		<-s.hangs
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent[o.AssetID]++
	if s.receipt.Code != "" {
		return s.receipt
	}
	return command.Receipt{Code: sent.Done}
}

// most is how often a device was sent to at most, and how many were at all.
func (s *sender) most() (most, devices int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.sent {
		most = max(most, n)
	}
	return most, len(s.sent)
}

// jobReplica is a process that carries out jobs.
type jobReplica struct {
	*job.Runner
	commands *command.Service
	service  job.Service
}

func (f *fixture) jobReplica(db *database.DB, s *sender, crash func(string)) *jobReplica {
	commands := &command.Service{Store: db, Finder: db, Inventory: db, Now: f.clock.Now, Crash: crash, Log: slog.New(slog.DiscardHandler),
		Channels: map[asset.Management]command.Channel{asset.Platform: s}}
	all, offered := &operation.Registry{}, &operation.Registry{}
	command.Define(all, commands)
	offered.Add(all.Find("reboot_device"))
	offered.Add(all.Find("change_device_policy"))
	job.Offer(offered, db, db)
	return &jobReplica{commands: commands, service: job.Service{Store: db, Assets: db, Operations: offered, Now: f.clock.Now},
		Runner: job.NewRunner(job.Config{Queue: db, Operations: offered, Now: f.clock.Now, Log: slog.New(slog.DiscardHandler),
			Stands: db.PermitStands})}
}

// jobMaker is a user who may do everything, within policies, as a caller.
func (f *fixture) jobMaker(policies ...string) (account.User, access.Principal) {
	f.Helper()
	u := f.person("Ada", false)
	if policies != nil {
		var err error
		u, err = f.db.UpdateUser(f.Context(), f.company.ID, u.ID, func(u *account.User) error { u.Policies = policies; return nil })
		f.ok(err)
	}
	return u, u.Principal("acme", f.company.Settings)
}

// goOn runs rounds until the job has ended or is held up, a second apart.
func (f *fixture) goOn(j job.Job, rounds int, replicas ...*jobReplica) job.Job {
	for range rounds {
		f.clock.Advance(time.Second)
		for _, r := range replicas {
			f.ok(r.Round(f.Context()))
		}
		for _, r := range replicas {
			r.Wait()
		}
	}
	j, err := f.db.Job(f.Context(), f.company.ID, j.ID)
	f.ok(err)
	return j
}

func (f *fixture) jobCounts(j job.Job) string {
	counts, err := f.db.JobCounts(f.Context(), f.company.ID, j.ID)
	f.ok(err)
	failures, err := f.db.JobFailures(f.Context(), f.company.ID, []string{j.ID})
	f.ok(err)
	equal(f, "failures", failures[j.ID], counts[job.DeviceError]+counts[job.DeviceUnknown])
	text := []string{}
	for _, status := range job.Results() {
		if n := counts[status]; n > 0 {
			text = append(text, fmt.Sprint(status, " ", n))
		}
	}
	return strings.Join(text, ", ")
}

func (f *fixture) fleetOf(n int) {
	p := f.newPolicy("Office")
	for i := range n {
		f.enroll(words("d", i), p.ID)
	}
}

func TestJob_ReachesEachDeviceEvenly(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.fleetOf(12)
		s := &sender{sent: map[string]int{}}
		r := f.jobReplica(f.db, s, nil)
		_, p := f.jobMaker()
		start := f.clock.Now().Add(time.Minute)
		j, err := r.service.Create(f.Context(), p,
			job.Spec{Command: "reboot", Words: "all=true", Filter: asset.Filter{CompanyID: f.company.ID}, At: start, Rate: 120})
		f.ok(err)
		f.enroll("late", f.asset(f.jobDevice(j, 0)).Device.PolicyID) // the filter is looked at once
		equal(f, "shown", j.Shown(f.clock.Now()), job.Scheduled)
		j = f.goOn(j, 45, r)
		equal(f, "before its time", f.jobCounts(j), "WAITING 12")
		j = f.goOn(j, 13, r) // until its time
		j = f.goOn(j, 3, r)
		_, devices := s.most()
		if devices < 4 || devices > 8 {
			f.Errorf("%d devices were sent to in three seconds at 120 a minute", devices)
		}
		j = f.goOn(j, 8, r)
		equal(f, "status", j.Status, job.Done)
		equal(f, "results", f.jobCounts(j), "SUCCESS 12")
		most, devices := s.most()
		equal(f, "sent", fmt.Sprint(most, devices), "1 12")
		equal(f, "recorded", fmt.Sprint(f.recorded(activity.JobCreated), f.recorded(activity.JobEnded),
			f.recorded(activity.Command("REBOOT"))), "1 1 12")
		foreign := access.WithActor(f.Context(), access.Actor{Kind: access.APIKey, ID: "k", Name: "ci"}, "job-"+j.ID)
		_, _, err = f.db.Begin(foreign, f.intent(f.asset(f.jobDevice(j, 1)), command.Lock), nil)
		f.ok(err)
		locks, err := f.db.Activity(f.Context(), activity.Filter{CompanyID: f.company.ID, Action: activity.Command("LOCK"), Once: true},
			activity.Cursor{}, 50)
		f.ok(err)
		equal(f, "a caller's request id hides nothing",
			fmt.Sprint(len(locks), resource.RequestID(job.RequestID(j.ID)) == job.RequestID(j.ID)), "1 false")
		folded, err := f.db.Activity(f.Context(), activity.Filter{CompanyID: f.company.ID, Action: activity.Command("REBOOT"), Once: true},
			activity.Cursor{}, 50)
		f.ok(err)
		equal(f, "commands beside the job's entry", len(folded), 0)
	})
}

func (f *fixture) jobDevice(j job.Job, n int) string {
	results, err := f.db.JobResults(f.Context(), f.company.ID, j.ID, "", n, 1)
	f.ok(err)
	return results[0].AssetID
}

// A device is sent to at most once, over two replicas of which one is killed or stands
// still at any step, and the rest is UNCONFIRMED or sent to by the other.
func TestJob_AtMostOnceOverKills(t *testing.T) {
	withCompany(t, func(f *fixture) {
		const size = 500
		f.fleetOf(size)
		s := &sender{sent: map[string]int{}}
		random, dead := rand.New(rand.NewPCG(1, 2)), make(chan struct{}) // a test's choice
		var mu sync.Mutex
		stuck := map[string]int{}
		dies := func(step string) {
			mu.Lock()
			dies, ends := random.IntN(60) == 0 && len(stuck) < 3, random.IntN(2) == 0
			if dies {
				stuck[step]++
			}
			mu.Unlock()
			if dies {
				<-dead // it stands still until the end, and may go on then
				if ends {
					runtime.Goexit()
				}
			}
		}
		other := f.open(f.T)
		a, b := f.jobReplica(f.db, s, dies), f.jobReplica(other, s, nil)
		_, p := f.jobMaker()
		j, err := a.service.Create(f.Context(), p,
			job.Spec{Command: "reboot", Words: "all=true", Filter: asset.Filter{CompanyID: f.company.ID}, Rate: job.MaxRate})
		f.ok(err)
		for range 2000 {
			f.clock.Advance(500 * time.Millisecond)
			f.ok(a.Round(f.Context()))
			f.ok(b.Round(f.Context()))
			b.Wait()
			f.ok(b.commands.Sweep(f.Context()))
			if j, err = f.db.Job(f.Context(), f.company.ID, j.ID); j.Status == job.Done {
				break
			}
		}
		f.ok(err)
		equal(f, "status", j.Status, job.Done)
		close(dead) // who stood still goes on
		a.Wait()
		f.clock.Advance(5 * time.Minute)
		f.ok(b.commands.Sweep(f.Context()))
		most, devices := s.most()
		counts, err := f.db.JobCounts(f.Context(), f.company.ID, j.ID)
		f.ok(err)
		if most > 1 || counts[job.DeviceSuccess]+counts[job.DeviceUnknown] != size || devices < size-len(stuck)*16 {
			f.Errorf("at most %d times to a device, %d devices, %v", most, devices, counts)
		}
		f.Logf("stood still at %v; %v", stuck, counts)
	})
}

func TestJob_ItsMakersRightsAtEachSend(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.fleetOf(20)
		s := &sender{sent: map[string]int{}}
		r := f.jobReplica(f.db, s, nil)
		u, p := f.jobMaker()
		create := func(spec job.Spec) job.Job {
			spec.Words, spec.Filter = "all=true", asset.Filter{CompanyID: f.company.ID}
			j, err := r.service.Create(f.Context(), p, spec)
			f.ok(err)
			return j
		}
		j := create(job.Spec{Command: "reboot"})
		j = f.goOn(j, 2, r)
		for name, c := range map[string]struct {
			change func(*account.User) error
			why    string
		}{
			"without the right": {func(u *account.User) error { u.Rights &^= account.CommandDevices; return nil }, "may not send commands"},
			"disabled":          {func(u *account.User) error { u.Disabled = true; return nil }, "disabled"},
		} {
			sent := len(s.sent)
			_, err := f.db.UpdateUser(f.Context(), f.company.ID, u.ID, c.change)
			f.ok(err)
			j = f.goOn(j, 2, r)
			equal(f, name, j.Status, job.Paused)
			if !strings.Contains(j.Why, c.why) || len(s.sent) != sent {
				f.Errorf("%s: %q, %d of %d sent", name, j.Why, len(s.sent), sent)
			}
			_, err = f.db.UpdateUser(f.Context(), f.company.ID, u.ID, func(u *account.User) error {
				u.Disabled = false
				u.Rights, _ = u.Role.Rights()
				return nil
			})
			f.ok(err)
			_, err = f.db.MoveJob(f.Context(), f.company.ID, j.ID, job.Running, "")
			f.ok(err)
		}
		f.ok(f.settings(func(s *access.Settings) { s.Stop = access.Stop{At: f.clock.Now(), Reason: "an incident"} }))
		j = f.goOn(j, 1, r)
		equal(f, "stopped", fmt.Sprint(j.Status, j.Why), "PAUSEDautomation was stopped: an incident")
		_, err := f.db.MoveJob(f.Context(), f.company.ID, j.ID, job.Running, "")
		f.code(fault.Refused, err)
		f.ok(f.settings(func(s *access.Settings) { s.Stop = access.Stop{} }))
		j = f.goOn(j, 2, r)
		equal(f, "a person resumes it", j.Status, job.Paused)
		_, err = f.db.MoveJob(f.Context(), f.company.ID, j.ID, job.Running, "")
		f.ok(err)
		f.goOn(j, 2, r)
		j, err = f.db.MoveJob(f.Context(), f.company.ID, j.ID, job.Canceled, "")
		f.ok(err)
		before := f.jobCounts(j)
		f.goOn(j, 10, r)
		equal(f, "after it was canceled", f.jobCounts(j), before)
		if !strings.Contains(before, "CANCELED") {
			f.Errorf("nothing was left to cancel: %s", before)
		}
		_, err = f.db.MoveJob(f.Context(), f.company.ID, j.ID, job.Running, "")
		f.code(fault.Unsupported, err)
		other := f.newCompany("other").ID
		_, err = f.db.Job(f.Context(), other, j.ID)
		f.code(fault.NotFound, err)
		rest := func(company string, policies []string) string {
			ids, err := f.db.JobAssets(f.Context(), company, j.ID, job.DeviceCanceled, policies)
			f.ok(err)
			return fmt.Sprint("CANCELED ", len(ids))
		}
		if got := rest(f.company.ID, nil); !strings.HasSuffix(before, got) || got == "CANCELED 0" {
			f.Errorf("%s devices can be selected again of %s", got, before)
		}
		equal(f, "of another company", rest(other, nil), "CANCELED 0")
		equal(f, "of no policy", rest(f.company.ID, []string{}), "CANCELED 0")
		equal(f, "of another policy", rest(f.company.ID, []string{"other"}), "CANCELED 0")
	})
}

// A device for which there was no room gets its command later, once. One whose command was not sent does not get it again,
// and is an error also when the command is not kept any more.
func TestJob_WaitsForRoom(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.fleetOf(4)
		s := &sender{sent: map[string]int{}, full: true}
		r := f.jobReplica(f.db, s, nil)
		_, p := f.jobMaker()
		create := func() job.Job {
			j, err := r.service.Create(f.Context(), p,
				job.Spec{Command: "reboot", Words: "all=true", Filter: asset.Filter{CompanyID: f.company.ID}, Rate: job.MaxRate})
			f.ok(err)
			return j
		}
		j := f.goOn(create(), 5, r)
		equal(f, "without room", fmt.Sprint(j.Status, f.jobCounts(j), f.recorded(activity.Command("REBOOT"))), "RUNNINGIN_PROGRESS 40")
		s.full = false
		f.clock.Advance(2 * time.Minute)
		j = f.goOn(j, 4, r)
		most, devices := s.most()
		equal(f, "with room", fmt.Sprint(j.Status, f.jobCounts(j), most, devices), "DONESUCCESS 41 4")

		s.receipt = command.Receipt{Code: sent.NotSent}
		f.clock.Advance(time.Minute)
		j = f.goOn(create(), 4, r)
		f.clock.Advance(2 * time.Minute)
		j = f.goOn(j, 4, r)
		most, devices = s.most()
		equal(f, "not sent", fmt.Sprint(j.Status, f.jobCounts(j), most, devices), "DONEERROR 42 4")
		f.tamper(`DELETE FROM commands`)
		equal(f, "without the commands", f.jobCounts(j), "ERROR 4")
	})
}

// A company whose channel hangs has no more than its slots: a job of another company ends at its rate.
func TestJob_CompanyThatHangs(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.fleetOf(40)
		s := &sender{sent: map[string]int{}, hangs: make(chan struct{})}
		r := f.jobReplica(f.db, s, nil)
		_, p := f.jobMaker()
		j, err := r.service.Create(f.Context(), p,
			job.Spec{Command: "reboot", Words: "all=true", Filter: asset.Filter{CompanyID: f.company.ID}, Rate: job.MaxRate})
		f.ok(err)
		other := f.newCompany("other")
		var ids []string
		for range 10 {
			ids = append(ids, resource.NewID())
			f.ok(f.db.ImportAssets(f.Context(), []asset.Asset{{ID: ids[len(ids)-1], CompanyID: other.ID}}))
		}
		theirs, err := r.service.Create(f.Context(), access.Principal{Kind: access.System, ID: "operator", CompanyID: other.ID,
			CompanySlug: other.Slug, Permissions: access.All, Settings: other.Settings},
			job.Spec{Command: "tags", Arguments: json.RawMessage(`{"add":["x"]}`), Assets: ids, Rate: 120})
		f.ok(err)
		for range 9 {
			f.clock.Advance(time.Second)
			f.ok(r.Round(f.Context()))
			f.ok(poll.For(10*time.Second, func() error {
				counts, err := f.db.JobCounts(f.Context(), other.ID, theirs.ID)
				if err == nil && counts[job.DeviceTaken] > 0 {
					err = fmt.Errorf("%v", counts)
				}
				return err
			}))
		}
		theirs, err = f.db.Job(f.Context(), other.ID, theirs.ID)
		f.ok(err)
		equal(f, "the other company's", theirs.Status, job.Done)
		equal(f, "of the one that hangs", f.jobCounts(j), "WAITING 32, IN_PROGRESS 8")
		close(s.hangs)
		r.Wait()
		j = f.goOn(j, 12, r)
		equal(f, "once it is answered", fmt.Sprint(j.Status, f.jobCounts(j)), "DONESUCCESS 40")
	})
}

func TestJob_TagsAndRefusals(t *testing.T) {
	withCompany(t, func(f *fixture) {
		office, field := f.newPolicy("Office"), f.newPolicy("Field")
		mine, theirs := f.enroll("d1", office.ID), f.enroll("d2", field.ID)
		s := &sender{sent: map[string]int{}}
		r := f.jobReplica(f.db, s, nil)
		_, p := f.jobMaker(office.ID)
		j, err := r.service.Create(f.Context(), p, job.Spec{Command: "tags", Arguments: json.RawMessage(`{"add":["Aisle 3"]}`),
			Assets: []string{mine.ID, theirs.ID}})
		f.ok(err)
		equal(f, "what the maker may see", j.Total, 1)
		j = f.goOn(j, 4, r)
		equal(f, "done", fmt.Sprint(j.Status, f.jobCounts(j), f.asset(mine.ID).Tags, f.asset(theirs.ID).Tags), "DONESUCCESS 1[Aisle 3] []")
		all := asset.Filter{CompanyID: f.company.ID}
		for name, spec := range map[string]job.Spec{
			"unknown command":   {Command: "wipe", Filter: all},
			"no argument":       {Command: "tags", Filter: all, Arguments: json.RawMessage(`{}`)},
			"another device":    {Command: "tags", Filter: all, Arguments: json.RawMessage(`{"add":"x"}`)},
			"too fast":          {Command: "reboot", Filter: all, Rate: 601},
			"in two years":      {Command: "reboot", Filter: all, At: f.clock.Now().AddDate(2, 0, 0)},
			"arguments of none": {Command: "reboot", Filter: all, Arguments: json.RawMessage(`{"x":1}`)},
		} {
			if _, err := r.service.Create(f.Context(), p, spec); fault.CodeOf(err) != fault.InvalidArguments {
				f.Errorf("%s: %v", name, err)
			}
		}
		_, err = r.service.Create(f.Context(), p,
			job.Spec{Command: "reboot", Filter: asset.Filter{CompanyID: f.company.ID, Text: "nothing"}})
		f.code(fault.Refused, err)
		p.Permissions = access.DevicesRead
		_, err = r.service.Create(f.Context(), p, job.Spec{Command: "reboot", Filter: all})
		f.code(fault.Forbidden, err)
		p.Permissions = access.All
		create := func(by access.Principal) error {
			_, err := r.service.Create(f.Context(), by,
				job.Spec{Command: "reboot", Assets: []string{mine.ID}, At: f.clock.Now().Add(time.Hour)})
			return err
		}
		bob := f.person("Bob", false).Principal("acme", f.company.Settings)
		operator := bob
		operator.Kind, operator.ID = access.System, "operator"
		for range job.MaxOpenOfUser {
			f.ok(create(p))
		}
		refused := func(by access.Principal, who string) {
			f.Helper()
			if err := create(by); fault.CodeOf(err) != fault.Refused || !strings.Contains(err.Error(), who+" 10 jobs") &&
				!strings.Contains(err.Error(), who+" 20 jobs") {
				f.Errorf("%v, want that %s too many", err, who)
			}
		}
		refused(p, "you have")
		for range job.MaxOpen - job.MaxOpenOfUser - 1 {
			f.ok(create(bob))
		}
		f.ok(create(operator))
		refused(operator, "the company has")
		refused(bob, "the company has")
		f.clock.Advance(job.KeepFor + time.Hour)
		f.ok(f.db.Sweep(f.Context(), f.clock.Now()))
		kept, err := f.db.Jobs(f.Context(), f.company.ID, "", 100)
		f.ok(err)
		equal(f, "kept", len(kept), job.MaxOpen)
	})
}

// The list of one maker's jobs is limited after those of others are left out.
func TestJobs_OfOneMaker(t *testing.T) {
	withCompany(t, func(f *fixture) {
		for i, maker := range []string{"ada", "bob", "bob"} {
			at := f.clock.Now().Add(time.Duration(i) * time.Second)
			_, err := f.db.CreateJob(f.Context(), job.Job{ID: resource.NewID(), CompanyID: f.company.ID, Command: "reboot",
				Status: job.Running,
				Maker:  access.Actor{Kind: access.User, ID: maker}, Rate: 1, CreatedAt: at, StartsAt: at, NextAt: at}, nil)
			f.ok(err)
		}
		all, err := f.db.Jobs(f.Context(), f.company.ID, "ada", 1)
		f.ok(err)
		if len(all) != 1 || all[0].Maker.ID != "ada" {
			f.Errorf("got %+v, want the job of ada", all)
		}
	})
}

// A job that has not ended is listed before newer ones that have.
func TestJobs_OpenFirst(t *testing.T) {
	withCompany(t, func(f *fixture) {
		for i, status := range []job.Status{job.Paused, job.Running, job.Canceled, job.Done} {
			at := f.clock.Now().Add(time.Duration(i%2*10-i) * time.Second)
			_, err := f.db.CreateJob(f.Context(), job.Job{ID: resource.NewID(), CompanyID: f.company.ID, Command: "reboot", Status: status,
				Maker: access.Actor{Kind: access.User, ID: "ada"}, Rate: 1, CreatedAt: at, StartsAt: at, NextAt: at}, nil)
			f.ok(err)
		}
		for _, maker := range []string{"", "ada"} {
			all, err := f.db.Jobs(f.Context(), f.company.ID, maker, 3)
			f.ok(err)
			var got []job.Status
			for _, j := range all {
				got = append(got, j.Status)
			}
			equal(f, "the list", got, []job.Status{job.Running, job.Paused, job.Done})
		}
	})
}
