package devices

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/budget"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// bulkActions can be done to several devices, one call each. Nothing that
// destroys is among them.
func bulkActions() []action {
	var all []action
	for _, a := range actions() {
		if a.Bulk {
			all = append(all, a)
		}
	}
	return all
}

func findBulk(operation string) (action, bool) {
	a, ok := findAction(operation)
	return a, ok && a.Bulk
}

// bulk is a plan: which of the selected devices will get the command.
type bulk struct {
	action
	Devices []planned
	Ready   int
	Choices []policy.Policy
	Once    string
	Back    string
}

type planned struct {
	asset.Asset
	Barred string // why it will be left out
}

// inputs are what is asked before anything is sent.
func (b bulk) inputs() []operation.Input {
	if b.Ready == 0 {
		return nil
	}
	return b.Arguments.Inputs
}

// minutes is about how long it takes.
func (b bulk) minutes() string {
	if b.Ready <= budget.PeopleLimit {
		return "within a minute"
	}
	return fmt.Sprintf("in about %d min, at %d a minute", (b.Ready+budget.PeopleLimit-1)/budget.PeopleLimit, budget.PeopleLimit)
}

// plan shows what would be done; nothing is sent yet.
func (s *Section) plan(v *frame.Visit) error {
	a, ok := findBulk(v.Query().Get("operation"))
	if !ok {
		return fault.New(fault.NotFound, "there is no such command for several devices")
	}
	found, err := s.found(v, selected(v))
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return v.Redirect(frame.DevicesPath, frame.Flash{Tone: frame.Warn, Text: "No device is selected."})
	}
	b := bulk{action: a, Once: frame.NewOnce(), Back: frame.DevicesPath}
	for _, d := range found {
		p := planned{d, s.barred(v, a, d)}
		if p.Barred == "" {
			b.Ready++
		}
		b.Devices = append(b.Devices, p)
	}
	if a.NamesPolicy {
		if b.Choices, err = s.policies(v); err != nil {
			return err
		}
	}
	return v.Show(a.Label, frame.DevicesPath, planPage(v, b))
}

// bulkOne sends the command to one device of the plan and answers with what is
// known of it. A spent budget is 429 with Retry-After: the script waits.
func (s *Section) bulkOne(v *frame.Visit) error {
	a, ok := findBulk(v.PathValue("operation"))
	if !ok {
		return fault.New(fault.NotFound, "there is no such command for several devices")
	}
	result, err := v.Run(a.Operation, a.arguments(v.PathValue("id"), v.Form.Get), v.Form.Get(frame.OnceField))
	switch f := fault.From(err); {
	case err == nil:
		return v.Fragment(outcome(told(a, result.(command.Result))))
	case f.Code == fault.RateLimited:
		v.Writer().Header().Set("Retry-After", strconv.Itoa(operation.Seconds(f.RetryAfter)))
		v.Writer().WriteHeader(http.StatusTooManyRequests)
		return nil
	default:
		return v.Fragment(outcome(s.refused(v, a, err)))
	}
}
