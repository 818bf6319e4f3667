package policies

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// updateForm is the systemUpdate of an AGENT policy as a form has it.
type updateForm struct {
	Type       string // empty: left to the device
	Start, End string // 15:04
	Freezes    string // "11-20 to 01-03", one on a line
}

// updatesOf is the form of a policy's document. One that cannot be read is shown as none.
func updatesOf(p policy.Policy) updateForm {
	u, err := policy.SystemUpdateOf(p.Document)
	if err != nil || u == nil {
		return updateForm{}
	}
	f := updateForm{Type: u.Type}
	if u.Type == policy.Windowed {
		f.Start, f.End = clock(*u.StartMinutes), clock(*u.EndMinutes)
	}
	for _, period := range u.FreezePeriods {
		f.Freezes += period.String() + "\n"
	}
	return f
}

func clock(minutes int) string { return fmt.Sprintf("%02d:%02d", minutes/60, minutes%60) }

// text says what the form means, in one line.
func (f updateForm) text() string {
	text := map[string]string{"": "left to the device", policy.Automatic: "installed as soon as there is one",
		policy.Postpone: "postponed for 30 days",
		policy.Windowed: "installed from " + f.Start + " to " + f.End}[f.Type]
	if f.Freezes != "" {
		text += "; none in " + strings.Join(strings.Split(strings.TrimSpace(f.Freezes), "\n"), ", ")
	}
	return text
}

// freezeForm is a line of the form.
var freezeForm = regexp.MustCompile(`^([0-9]{1,2})-([0-9]{1,2}) to ([0-9]{1,2})-([0-9]{1,2})$`)

// systemUpdate saves when devices of an AGENT policy install updates of their system.
func (s *Section) systemUpdate(v *frame.Visit, p policy.Policy) error {
	f := updateForm{v.Form.Get("type"), v.Form.Get("start"), v.Form.Get("end"), strings.ReplaceAll(v.Form.Get("freezes"), "\r", "")}
	text, err := formed(f)
	if err == nil && v.Form.Get("version") == strconv.Itoa(p.Version) {
		err = f.unused(updatesOf(p))
	}
	if err != nil {
		return s.refused(v, p, updatesDialog, err)
	}
	return s.saved(v, p, updatesDialog, policy.Edit{SystemUpdate: text})
}

// unused refuses what a person put into fields that the type does not use, compared with the form that they were shown.
func (f updateForm) unused(shown updateForm) error {
	changed := func(to, from string) bool {
		return strings.TrimSpace(to) != "" && strings.TrimSpace(to) != strings.TrimSpace(from)
	}
	switch {
	case f.Type == "" && changed(f.Freezes, shown.Freezes):
		return fault.New(fault.Refused, "freeze periods need a choice other than “Left to the device”: choose one, or remove them")
	case f.Type != policy.Windowed && (changed(f.Start, shown.Start) || changed(f.End, shown.End)):
		return fault.New(fault.Refused, "only the daily window has a start and an end: choose it, or remove them")
	}
	return nil
}

// formed is the form as the document has it. What it may hold, the policy checks.
func formed(f updateForm) (json.RawMessage, error) {
	if f.Type == "" {
		return json.RawMessage(`{}`), nil
	}
	u := policy.SystemUpdate{Type: f.Type}
	if f.Type == policy.Windowed {
		for at, text := range map[**int]string{&u.StartMinutes: f.Start, &u.EndMinutes: f.End} {
			hour, minute, _ := strings.Cut(text, ":")
			h, err1 := strconv.Atoi(hour)
			m, err2 := strconv.Atoi(minute)
			if err1 != nil || err2 != nil || h < 0 || h > 23 || m < 0 || m > 59 {
				return nil, fault.New(fault.Refused, "a window has a start and an end, such as 23:00 and 04:00")
			}
			*at = new(60*h + m)
		}
	}
	for _, line := range frame.Lines(f.Freezes) {
		found := freezeForm.FindStringSubmatch(line)
		if found == nil {
			return nil, fault.New(fault.Refused,
				"a freeze period is a line such as 11-20 to 01-03: month and day of its first and last day")
		}
		var n [4]int
		for i := range n {
			n[i], _ = strconv.Atoi(found[i+1]) // the form has made sure
		}
		u.FreezePeriods = append(u.FreezePeriods, policy.FreezePeriod{StartDate: policy.Day{Month: n[0], Day: n[1]},
			EndDate: policy.Day{Month: n[2], Day: n[3]}})
	}
	return json.RawMessage(u.Value()), nil
}
