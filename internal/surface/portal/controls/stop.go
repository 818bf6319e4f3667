package controls

import (
	"net/http"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

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
			matter.AskedSince = who.CreatedAt
			if who.RightsAt.After(who.CreatedAt) {
				matter.AskedSince = who.RightsAt
			}
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
