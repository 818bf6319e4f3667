package devices

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/job"
	"github.com/musterhq/muster/internal/slice"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// ready is how many devices are in the job: all that match, or those selected that can get it.
func (b bulk) ready() int { return frame.Either(b.All, b.Total, b.Total-b.Barred) }

// barred says what becomes of devices that cannot get it; empty: there is none among those selected.
func (b bulk) barred() string {
	switch {
	case b.All && b.row != nil:
		return fmt.Sprintf("The job has all %d. %s of the first %d cannot get it, for the reason in the list; the others are checked when "+
			"it is their turn. A device that cannot get it then has an error as its result.", b.Total,
			frame.Either(b.Barred > 0, fmt.Sprint(b.Barred), "None"), len(b.Devices))
	case b.Barred > 0:
		return fmt.Sprintf("%d of %s cannot get it, for the reason in the list, and %s left out.", b.Barred,
			frame.Count(b.Total, "device", "devices"), frame.Either(b.Barred == 1, "is", "are"))
	}
	return ""
}

// rate is how many devices a minute are on offer: tags reach no device.
func (b bulk) rate() int { return frame.Either(b.row == nil, job.MaxRate, job.DefaultRate) }

// mayFollow reports whether the person sees a job: one who is limited to some policies
// sees their own.
func mayFollow(v *frame.Visit, j job.Job) bool {
	return v.May(account.AllPolicies) || j.Maker.ID == v.User.ID
}

const (
	// listedJobs is how many jobs the page lists.
	listedJobs = 200
	// countedDevices is of how many devices in all the page says what became of them.
	countedDevices = 50_000
)

// jobs lists the jobs: those that have not ended, then the others.
func (s *Section) jobs(v *frame.Visit) error {
	maker := frame.Either(v.May(account.AllPolicies), "", v.User.ID) // as mayFollow says
	shown, err := s.Jobs.Store.Jobs(v.Context(), v.Company.ID, maker, listedJobs)
	if err != nil {
		return err
	}
	var ended []string
	left := countedDevices
	for _, j := range shown {
		if left -= j.Total; left >= 0 && j.Status == job.Done {
			ended = append(ended, j.ID)
		}
	}
	failures, err := s.Jobs.Store.JobFailures(v.Context(), v.Company.ID, ended)
	if err != nil {
		return err
	}
	rows := slice.Map(shown, func(j job.Job) followed {
		return followed{Job: j, Counts: map[string]int{job.DeviceError: failures[j.ID]}, Uncounted: !slices.Contains(ended, j.ID)}
	})
	return v.ShowLive("Jobs", frame.DevicesPath, jobsPage(v, rows), jobRows(v, rows))
}

// jobOf is the job of the address.
func (s *Section) jobOf(v *frame.Visit) (job.Job, error) { return s.findJob(v, v.PathValue("id")) }

func (s *Section) findJob(v *frame.Visit, id string) (job.Job, error) {
	j, err := s.Jobs.Store.Job(v.Context(), v.Company.ID, id)
	if err == nil && !mayFollow(v, j) {
		err = fault.New(fault.NotFound, "there is no such job")
	}
	return j, err
}

// followed is what the page of a job shows.
type followed struct {
	job.Job
	Lost   string // why a paused job cannot be resumed: its maker may not go on
	Counts map[string]int
	// Uncounted is a job of the list whose results are not counted: they would be too many.
	Uncounted bool
	Status    string // of the results that are shown; empty: of any
	Results   []job.Result
	Next      int // where the next page begins; 0: there is none
}

// resultRows is how many results a page shows.
const resultRows = 100

// job serves the page of a job, whole or its live part.
func (s *Section) job(v *frame.Visit, j job.Job) (err error) {
	f, from := followed{Job: j, Status: v.Query().Get("result")}, int(v.Numbers["from"])
	if f.Lost, err = s.lost(v, j); err != nil {
		return err
	}
	if f.Counts, err = s.Jobs.Store.JobCounts(v.Context(), v.Company.ID, j.ID); err != nil {
		return err
	}
	if f.Results, err = s.Jobs.Store.JobResults(v.Context(), v.Company.ID, j.ID, f.Status, from, resultRows+1); err != nil {
		return err
	}
	if len(f.Results) > resultRows {
		f.Results, f.Next = f.Results[:resultRows], f.Results[resultRows].N
	}
	if err := s.veil(v, f.Results); err != nil {
		return err
	}
	if v.Query().Get("part") == "results" { // below the job's entry in the activity log
		return v.Fragment(jobResults(f))
	}
	if v.Partial() {
		return v.Fragment(jobState(v, f))
	}
	return v.Show(f.title(), frame.DevicesPath, jobPage(v, f))
}

// lost says why a paused job cannot be resumed; empty: it can.
func (s *Section) lost(v *frame.Visit, j job.Job) (string, error) {
	if j.Status != job.Paused {
		return "", nil
	}
	err := s.Jobs.MayGoOn(v.Context(), j)
	if fault.CodeOf(err) == fault.Forbidden {
		return fault.From(err).Detail, nil
	}
	return "", err
}

// paused says why the job is paused.
func (f followed) paused() string {
	switch {
	case f.Lost != "":
		return "Paused: " + f.Lost + ". It cannot be resumed until that changes. Cancel the rest, and make a job of " +
			"your own for those devices."
	case strings.HasPrefix(f.Why, job.ByPerson):
		return "Paused " + f.Why
	}
	return "Paused: " + f.Why
}

// veil leaves out of results what the person may not see of the devices now: they may have been
// limited to policies since they made the job.
func (s *Section) veil(v *frame.Visit, results []job.Result) error {
	if v.Principal.Policies == nil {
		return nil
	}
	seen, err := s.found(v, slice.Map(results, func(r job.Result) string { return r.AssetID }))
	for i, r := range results {
		if !slices.ContainsFunc(seen, func(a asset.Asset) bool { return a.ID == r.AssetID }) {
			results[i].AssetID, results[i].Name, results[i].Outcome = "", "A device that you may not see", ""
		}
	}
	return err
}

// moveJob pauses, resumes or cancels a job.
func (s *Section) moveJob(v *frame.Visit, j job.Job) error {
	to, known := map[string]job.Status{"pause": job.Paused, "resume": job.Running, "cancel": job.Canceled}[v.PathValue("step")]
	if !known {
		return fault.New(fault.NotFound, "a job is paused, resumed or canceled")
	}
	why := frame.Either(to == job.Paused, job.ByPerson+v.User.Name, "")
	if _, err := s.Jobs.Move(v.Context(), j, to, why); err != nil {
		return v.Refused(frame.JobPath(j.ID), err, fault.Forbidden, fault.Refused, fault.Unsupported)
	}
	return v.Redirect(frame.JobPath(j.ID))
}

// standing is where the job stands, for people. Done is no success if devices have none.
func (f followed) standing(v *frame.Visit) (frame.Tone, string) {
	status := f.Shown(v.Now)
	word := string(status[:1]) + strings.ToLower(string(status[1:]))
	failures := f.Counts[job.DeviceError] + f.Counts[job.DeviceUnknown]
	switch {
	case status == job.Paused:
		return frame.Warn, word
	case status != job.Done || f.Uncounted:
		return frame.Idle, word
	case failures > 0:
		return frame.Warn, fmt.Sprintf("%s, %d without success", word, failures)
	}
	return frame.OK, word
}

// undoes reports whether a job can be taken back now.
func undoes(v *frame.Visit, j job.Job) bool {
	ended := j.Status == job.Done || j.Status == job.Canceled
	return j.Command == job.Tags && ended && v.Now.Before(j.EndedAt.Add(asset.UndoFor))
}

// undoJob makes a job that takes back what another did.
func (s *Section) undoJob(v *frame.Visit, j job.Job) error {
	if !undoes(v, j) {
		return v.Redirect(frame.JobPath(j.ID), frame.Flash{Tone: frame.Warn, Text: "This job cannot be undone now."})
	}
	ref := job.RequestID(j.ID)
	ids, err := s.Undo.EditedBy(v.Context(), v.Company.ID, ref)
	if err != nil {
		return err
	}
	arguments, _ := json.Marshal(map[string]string{"ref": ref}) // a text
	made, err := s.Jobs.Create(v.Context(), v.Principal, job.Spec{ID: v.Form.Get(frame.OnceField), Command: job.Undo, Arguments: arguments,
		Words: "Undo of " + jobTitle(j), Assets: ids, Rate: job.MaxRate})
	if err != nil {
		return v.Refused(frame.JobPath(j.ID), err, fault.Refused, fault.Forbidden)
	}
	return v.Redirect(frame.JobPath(made.ID))
}

// jobTitle is what a job does, for people.
func jobTitle(j job.Job) string {
	label := frame.Either(j.Command == job.Undo, "Undo", j.Command)
	if a, err := findBulk(j.Command); err == nil {
		label = a.Label
	}
	return label + ": " + frame.Count(j.Total, "device", "devices")
}

func (f followed) title() string { return jobTitle(f.Job) }

// ended is how many devices have a result.
func (f followed) ended() int {
	return f.Total - f.Counts[job.DeviceWaiting] - f.Counts[job.DeviceTaken] - f.Counts[job.DeviceCanceled]
}

// tabs are the results by status.
func (f followed) tabs() []frame.Tab {
	tabs := []frame.Tab{{Path: frame.JobPath(f.ID), Name: "All", Current: f.Status == ""}}
	for _, status := range job.Results() {
		if n := f.Counts[status]; n > 0 || f.Status == status {
			_, word := resultStatus(status)
			tabs = append(tabs, frame.Tab{Path: frame.JobPath(f.ID) + "?result=" + status, Name: fmt.Sprintf("%s %d", word, n),
				Current: f.Status == status})
		}
	}
	return tabs
}

// selects reports whether the results that are shown are those of devices that can be selected for
// another job: none of them still gets this one.
func (f followed) selects() bool {
	return f.Counts[f.Status] > 0 && f.Status != job.DeviceWaiting && f.Status != job.DeviceTaken
}

// more is the address of the next page of results.
func (f followed) more() string {
	return frame.JobPath(f.ID) + "?" + url.Values{"result": {f.Status}, "from": {fmt.Sprint(f.Next)}}.Encode()
}

// resultStatus is the status of a device of a job, for people.
func resultStatus(status string) (frame.Tone, string) {
	b := cmp.Or(map[string]badge{job.DeviceWaiting: {frame.Idle, "Waiting"}, job.DeviceTaken: {frame.Idle, "In progress"},
		job.DeviceSuccess: {frame.OK, "Success"}, job.DeviceUnknown: {frame.Warn, "Unconfirmed"},
		job.DeviceCanceled: {frame.Idle, "Canceled"}}[status], badge{frame.Bad, "Error"})
	return b.tone, b.word
}

// resultName is what a device of a job is called.
func resultName(r job.Result) string { return cmp.Or(frame.Plain(r.Name), "An asset that is gone") }
