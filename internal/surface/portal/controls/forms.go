package controls

import (
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// limits is the form of the limits, as it was filled in.
type limits struct {
	Limited                 bool
	Devices, Minutes, Hours string
	Problem                 string
}

// limitsOf is the form for the company's controls. Without a limit it offers the first one.
func limitsOf(c access.Controls) limits {
	shown := c.DestructiveLimit
	if shown.Off() {
		shown = access.DefaultControls().DestructiveLimit
	}
	return limits{Limited: !c.DestructiveLimit.Off(), Devices: strconv.Itoa(shown.Devices),
		Minutes: strconv.Itoa(int(shown.Window.Minutes())), Hours: hoursText(c.ApproverAge)}
}

func hoursText(d time.Duration) string { return strconv.FormatFloat(d.Hours(), 'f', -1, 64) }

// readLimits reads the form. The limit may be written as the command line takes it, too:
// 25/60m, or off.
func readLimits(v *frame.Visit) limits {
	field := func(name string) string { return strings.TrimSpace(v.Form.Get(name)) }
	f := limits{Limited: field("limited") == "true", Devices: field("limit"), Minutes: field("minutes"), Hours: field("age")}
	if l, err := access.ParseDestructiveLimit(f.Devices); err == nil {
		f.Limited = !l.Off()
		f.Devices, f.Minutes = strconv.Itoa(l.Devices), strconv.Itoa(int(l.Window.Minutes()))
	}
	return f
}

// parse returns the limit and the age, or what is wrong with the form. An age of the operator
// may be greater than the portal sets: it stays.
func (f limits) parse(age time.Duration) (limit access.DestructiveLimit, _ time.Duration, wrong string) {
	if _, err := strconv.Atoi(f.Devices); err != nil && f.Devices != "" {
		return limit, age, "The limit must be a number of devices."
	}
	if f.Limited {
		var err error
		if limit, err = access.ParseDestructiveLimit(f.Devices + "/" + f.Minutes + "m"); err != nil {
			return limit, age, "The limit must be for 1 to 100,000 devices in 1 to 10,080 whole minutes (7 days)."
		}
	}
	if f.Hours == hoursText(age) {
		return limit, age, ""
	}
	hours, err := strconv.ParseFloat(f.Hours, 64)
	if err != nil || math.IsNaN(hours) || hours < 0 || hours > access.MaxPortalApproverAge.Hours() {
		return limit, age, "The age must be from 0 to 168 hours (7 days). The operator can set a greater one."
	}
	return limit, time.Duration(hours * float64(time.Hour)).Truncate(time.Millisecond), ""
}

// stopForm has the values of the form that stops changes.
type stopForm struct {
	Reason string
	Typed  string // the company's name
	All    bool   // stop changes in the portal as well
	Wrong  string // the error of Typed
}

// stop stops changes by API keys and connections and, with "all", in the portal as well, for which the person types the
// company's name. It asks for no proof of identity, so that nothing delays a stop.
func (s *Section) stop(v *frame.Visit) error {
	f := stopForm{Reason: strings.TrimSpace(v.Form.Get("reason")), Typed: v.Form.Get("confirm"), All: v.Form.Get("all") == "true"}
	if f.All && !policy.Confirms(f.Typed, v.Company.Name) {
		f.Wrong = "type the company's name to stop changes in the portal as well: nothing is stopped yet"
		return s.render(v, http.StatusUnprocessableEntity, view{Limits: limitsOf(v.Company.Settings.Controls), Stop: f})
	}
	done := "Changes are stopped until an administrator resumes them. " +
		frame.Stopped(access.Stop{All: v.Company.Settings.Stop.All || f.All}) + " Commands of API keys and AI clients " +
		"are canceled where it is certain that no device has received them."
	return s.change(v, done, "", func(to *access.Settings) {
		to.Stop = access.Stop{At: v.Now, Reason: f.Reason, All: to.Stop.All || f.All}
	})
}

func (s *Section) resume(v *frame.Visit) error {
	if !v.Company.Settings.Stop.On() {
		return v.Redirect(pagePath, frame.Flash{Tone: frame.Idle, Text: "Changes are not stopped any more: there was nothing to resume."})
	}
	return s.change(v, "Resumed.", "Resuming", func(to *access.Settings) { to.Stop = access.Stop{} })
}

// ending says who can end a stop at once when one administrator asks to resume.
type ending struct {
	Others string // the names of those who can confirm it now; empty: no administrator can
	Alone  bool   // there is no other administrator
}

// endingOf finds the administrators who can confirm now what the administrator with the id by asks for.
func endingOf(v *frame.Visit, all []access.Approver, by string) ending {
	matter := access.Matter{Administers: true, AskedBy: by, AskedSince: v.Now}
	e := ending{Alone: true}
	for _, who := range all {
		switch {
		case who.UserID == by:
			matter.AskedSince = slices.MaxFunc([]time.Time{who.CreatedAt, who.RightsAt}, time.Time.Compare)
		case who.Manages && !who.Disabled:
			e.Alone = false
		}
	}
	others := slices.DeleteFunc(slices.Clone(all), func(who access.Approver) bool {
		return who.May(matter, v.Company.Settings.Controls, v.Now) != nil
	})
	e.Others = frame.AnyOf(others, func(who access.Approver) string { return who.Name })
	return e
}

// before is the text beside the button that stops changes: how the stop will end.
func (e ending) before() string {
	switch {
	case e.Others != "":
		return "To resume, an administrator asks for it. " + e.Others + " can confirm that at once with a passkey; otherwise it takes " +
			"effect after 24 hours."
	case e.Alone:
		return "You are the only administrator: when you ask to resume, it takes effect after 24 hours. No other administrator can " +
			"confirm it sooner."
	}
	return "To resume, an administrator asks for it, and it takes effect after 24 hours. No other administrator can confirm it sooner " +
		"now: that takes a passkey, and an account and rights that are old enough."
}

// after is the text beside a request to resume: who can confirm it.
func (e ending) after() string {
	switch {
	case e.Others != "":
		return e.Others + " can confirm it now."
	case e.Alone:
		return "There is no other administrator who could confirm it sooner."
	}
	return "No other administrator can confirm it now: that takes a passkey, and an account and rights that are old enough."
}
