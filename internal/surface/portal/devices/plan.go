package devices

import (
	"net/url"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/surface/edge"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// bulk is a plan: which devices will get it.
type bulk struct {
	bulkAction
	All     bool   // all devices that match, else those that were selected
	Match   string // the list's address, if all that match were asked for
	Total   int
	Devices []planned // the first of them
	Barred  int       // of Devices
	Choices []policy.Policy
	More    bool           // there are more than these choices
	To      *policy.Policy // of Choices, that was chosen; nil: none
	Once    string
	Typed   url.Values // of a form that was refused, with what is wrong with it
	Wrong   map[string]string
	Problem string
}

type planned struct {
	asset.Asset
	Barred string // why it will not get it, as things are
}

// shownPlanned is how many devices a plan shows.
const shownPlanned = 100

// plan shows what would be done; nothing is done yet.
func (s *Section) plan(v *frame.Visit) error {
	a, err := findBulk(v.Query().Get("command"))
	if err != nil {
		return err
	}
	if err := a.wrongAddress(v.Query()); err != nil {
		return err
	}
	b := bulk{bulkAction: a, Once: frame.NewOnce()}
	err = s.expand(v, &b, v.Query())
	values, malformed := url.ParseQuery(b.Match)
	if fault.CodeOf(err) == fault.InvalidArguments && b.Match != "" && malformed == nil && !values.Has("job") {
		return v.Redirect(frame.ParseList(spec(), older(values)).URL()) // says what is wrong
	}
	if err != nil {
		return err
	}
	if len(b.Devices) == 0 {
		return v.Redirect(frame.DevicesPath, frame.Flash{Tone: frame.Warn, Text: "No device is selected."})
	}
	if v.Partial() { // a policy was chosen
		return v.Fragment(planAnew(b))
	}
	return v.Show(a.Label, frame.DevicesPath, planPage(v, b))
}

// wrongAddress fails with fault.InvalidArguments for a parameter that a plan does not have: a filter
// stands in its match, and would be left out here.
func (a bulkAction) wrongAddress(asked url.Values) error {
	for name := range asked {
		if !slices.Contains([]string{"command", "id", "all", "match"}, name) && !a.has(name) {
			return fault.Invalid("“" + frame.Plain(name) + "” is not known here: choose the devices in the list")
		}
	}
	return nil
}

// planAgain shows a plan whose form was refused, with what was typed. A plan without devices
// cannot be shown: the list says why.
func (s *Section) planAgain(v *frame.Visit, a bulkAction, cause error) error {
	b := bulk{bulkAction: a, Match: v.Form.Get("match"), Once: v.Form.Get(frame.OnceField), Typed: v.Form, Wrong: map[string]string{}}
	if err := s.expand(v, &b, v.Form); err != nil || len(b.Devices) == 0 {
		return v.Redirect(frame.DevicesPath, refused(v, a.Label, a.Inputs, cause))
	}
	b.Problem = v.Failed(cause).Text
	for field, wrong := range frame.Fields(cause) {
		name, _, _ := strings.Cut(field, "[")
		if b.Wrong[name] = wrong; b.shows(name) {
			b.Problem = ""
		}
	}
	return v.ShowStatus(edge.Status(fault.CodeOf(cause)), a.Label, frame.DevicesPath, planPage(v, b))
}

// has reports whether the action has an argument.
func (a bulkAction) has(name string) bool {
	return slices.ContainsFunc(a.Inputs, func(in operation.Input) bool { return in.Name == name })
}

// shows reports whether the plan's form has a field.
func (b bulk) shows(name string) bool { return name == "at" || name == "rate" || b.has(name) }

// expand reads the devices of a plan that an address or a form asks for.
func (s *Section) expand(v *frame.Visit, b *bulk, asked url.Values) error {
	ids := selected(asked)
	all, err := everyMatch(asked)
	if b.All = all; b.All {
		b.Match = asked.Get("match")
		ids, err = s.matching(v, b.Match)
	}
	if err != nil {
		return err
	}
	found, err := s.found(v, ids[:min(len(ids), shownPlanned)])
	if err == nil {
		err = s.choose(v, b, asked.Get(policyField))
	}
	if err != nil {
		return err
	}
	if b.Total = len(found); b.All {
		b.Total = len(ids)
	}
	b.All = b.Total > len(found) // else what is shown is what is done
	for _, d := range found {
		p := planned{d, s.barredFrom(v, *b, d)}
		if p.Barred != "" {
			b.Barred++
		}
		b.Devices = append(b.Devices, p)
	}
	return nil
}

// choose reads the policies that the plan's form offers, and the chosen one. Many policies of one type leave
// none of the other type out.
func (s *Section) choose(v *frame.Visit, b *bulk, id string) error {
	if b.row == nil || !b.row.NamesPolicy {
		return nil
	}
	for _, of := range []policy.Type{policy.Platform, policy.Agent} {
		found, more, err := s.policies(v, of)
		if err != nil {
			return err
		}
		b.Choices, b.More = append(b.Choices, found...), b.More || more
	}
	slices.SortFunc(b.Choices, func(p, other policy.Policy) int { return strings.Compare(p.Name, other.Name) })
	if i := slices.IndexFunc(b.Choices, func(p policy.Policy) bool { return p.ID == id }); i >= 0 {
		b.To = &b.Choices[i]
	}
	return nil
}

// policyField is the field of a plan that names a policy, as the command's argument is called.
const policyField = "policyId"

// address is that of the plan, also for what is barred from it with the policy chosen now.
func (b bulk) address() string {
	asked := url.Values{"command": {b.Command}, "match": {b.Match}}
	if b.All {
		asked.Set("all", "1")
	} else {
		for _, d := range b.Devices {
			asked.Add("id", d.ID)
		}
	}
	return "/bulk?" + asked.Encode()
}

// barredFrom says why a device will not get it, as things are; empty: it will.
func (s *Section) barredFrom(v *frame.Visit, b bulk, d asset.Asset) string {
	if b.row == nil {
		return ""
	}
	why := s.barred(v, action{b.row}, d)
	if why != "" || b.To == nil {
		return why
	}
	moved := command.Situation{Type: b.row.Type, Asset: &d, Moves: true, Policy: b.To, Companion: s.Companions}
	if err := moved.Decide(); err != nil {
		return frame.Sentence(fault.From(err).Detail)
	}
	return ""
}
