package devices

import (
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/job"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// bulkAction is what a job can do to several devices. Nothing that destroys is among them.
type bulkAction struct {
	Command           string // as jobs call it
	Label, Icon, Text string
	Inputs            []operation.Input
	row               *command.Row // nil: it changes tags
}

func bulkActions() []bulkAction {
	var all []bulkAction
	for _, a := range actions() {
		if a.Bulk {
			all = append(all, bulkAction{a.Segment, a.Label, a.Icon, a.Row.Text(nil), a.Arguments.Inputs, a.Row})
		}
	}
	return append(all, bulkAction{Command: job.Tags, Label: "Tags", Icon: "tag", Text: "Adds tags to the devices, and removes others.",
		Inputs: operation.Inputs[job.TagArgs]()})
}

func findBulk(command string) (bulkAction, error) {
	all := bulkActions()
	i := slices.IndexFunc(all, func(a bulkAction) bool { return a.Command == command })
	if i < 0 {
		return bulkAction{}, fault.New(fault.NotFound, "there is no such command for several devices")
	}
	return all[i], nil
}

// needs is the right that the action takes.
func (a bulkAction) needs() account.Right {
	if a.row == nil {
		return account.CommandDevices
	}
	return action{a.row}.needs()
}

// matched are the devices that a list's address finds, or that have a result in another job; false if
// there can be none.
func (s *Section) matched(v *frame.Visit, match string) (job.Spec, bool, error) {
	values, err := parseMatch(match)
	if err != nil {
		return job.Spec{}, false, err
	}
	if values.Has("job") {
		of, err := s.findJob(v, values.Get("job"))
		return job.Spec{Of: of.ID, Result: values.Get("result")}, true, err
	}
	q, findable, err := s.query(v, frame.ParseList(spec(), older(values)))
	return job.Spec{Filter: q.Filter}, findable, err
}

// everyMatch reports whether all that match are asked for, and not those selected. Another value than
// that of the form is refused: no would be taken for yes.
func everyMatch(asked url.Values) (bool, error) {
	all := asked.Get("all")
	if all != "" && all != "1" {
		return false, fault.Invalid("“all” must be 1, or left out")
	}
	return all != "", nil
}

// parseMatch reads a list's address, without its path.
func parseMatch(match string) (url.Values, error) {
	values, err := url.ParseQuery(match)
	if err != nil {
		return nil, fault.Invalid("the address of the list is malformed: choose the devices in the list again")
	}
	return values, nil
}

// matching are the ids of the devices that a list finds.
func (s *Section) matching(v *frame.Visit, match string) ([]string, error) {
	found, findable, err := s.matched(v, match)
	if err != nil || !findable {
		return nil, err
	}
	return s.Jobs.Devices(v.Context(), v.Principal, found)
}

// createJob makes a job of a plan.
func (s *Section) createJob(v *frame.Visit) error {
	a, err := findBulk(v.Form.Get("command"))
	if err != nil {
		return err
	}
	if err := v.Require(a.needs()); err != nil {
		return err
	}
	asked := job.Spec{Assets: v.Form["id"]}
	match := v.Form.Get("match")
	all, err := everyMatch(v.Form)
	if all {
		findable := false
		if asked, findable, err = s.matched(v, match); err == nil && !findable {
			err = fault.New(fault.Refused, "no device matches any more")
		}
		asked.AtMost, _ = strconv.Atoi(v.Form.Get("total")) // 0: any, as forms from before an upgrade have it
	}
	asked.ID, asked.Command, asked.Arguments = v.Form.Get(frame.OnceField), a.Command, a.arguments(v.Form.Get)
	if asked.Words = plainQuery(match); match == "" && asked.Assets != nil {
		asked.Words = frame.Count(len(asked.Assets), "selected device", "selected devices")
	}
	wrong := (*fault.Error)(nil)
	if asked.Note, wrong = v.ReadNote(); err == nil && wrong != nil {
		err = wrong
	}
	if err == nil {
		asked.At, asked.Rate, err = pace(v.Form.Get)
	}
	var made job.Job
	if err == nil {
		made, err = s.Jobs.Create(v.Context(), v.Principal, asked)
	}
	if slices.Contains([]fault.Code{fault.InvalidArguments, fault.Refused, fault.Forbidden}, fault.CodeOf(err)) {
		return s.planAgain(v, a, err)
	}
	if err != nil {
		return err
	}
	return v.Redirect(frame.JobPath(made.ID))
}

// plainQuery is a list's address as people read it.
func plainQuery(match string) string {
	plain, err := url.QueryUnescape(match)
	if err != nil || plain == "" {
		return "all devices"
	}
	return plain
}

// pace is when a job starts, and its rate.
func pace(get func(string) string) (at time.Time, rate int, err error) {
	if text := get("rate"); text != "" {
		if rate, err = strconv.Atoi(text); err != nil || rate < 1 || rate > job.MaxRate {
			wrong := "must be a number from 1 to " + strconv.Itoa(job.MaxRate)
			return at, rate, fault.Invalid("Devices a minute "+wrong, fault.Field{Field: "rate", Message: wrong})
		}
	}
	for _, form := range [][2]string{{"at-utc", time.RFC3339}, {"at", "2006-01-02T15:04"}} { // the second without scripts
		if text := get(form[0]); text != "" {
			if at, err = time.Parse(form[1], text); err != nil {
				wrong := "must be a day and a time"
				return at, rate, fault.Invalid("the start "+wrong, fault.Field{Field: "at", Message: wrong})
			}
			return at, rate, nil
		}
	}
	return at, rate, nil
}

// arguments are the action's, from a form.
func (a bulkAction) arguments(get func(string) string) json.RawMessage {
	args := map[string]any{}
	for _, in := range a.Inputs {
		value := strings.ReplaceAll(get(in.Name), "\r\n", "\n")
		switch {
		case in.Kind == "list":
			if lines := frame.Lines(value); len(lines) > 0 {
				args[in.Name] = lines
			}
		case value != "" || in.Required:
			args[in.Name] = value
		}
	}
	text, _ := json.Marshal(args) // texts: it cannot fail
	return text
}
