package controls

import (
	"net/http"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// stopForm is the form of the stop, as it was filled in.
type stopForm struct {
	Reason, Typed string
	All           bool
	Wrong         string // with the typed name
}

// stop stops what keys and connections change, and with "all" the portal too: the company's
// name is typed for that. It asks for no proof: stopping is never delayed.
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

// ending says how a stop ends that one administrator wants to end.
type ending struct {
	Others string // who could confirm it now, by name; empty: no other administrator
	Alone  bool   // there is no other administrator
}

// endingOf looks for the administrators who could confirm what one of them asks for.
func endingOf(v *frame.Visit, all []access.Approver, by string) ending {
	m := access.Matter{Administers: true, AskedBy: by, AskedSince: v.Now}
	e := ending{Alone: true}
	for _, who := range all {
		switch {
		case who.UserID == by:
			m.AskedSince = who.CreatedAt
			if who.RightsAt.After(m.AskedSince) {
				m.AskedSince = who.RightsAt
			}
		case who.Manages && !who.Disabled:
			e.Alone = false
		}
	}
	could := slices.DeleteFunc(slices.Clone(all), func(who access.Approver) bool {
		return who.May(m, v.Company.Settings.Controls, v.Now) != nil
	})
	e.Others = frame.AnyOf(could, func(who access.Approver) string { return who.Name })
	return e
}

// before says in sentences how a stop will end that begins now.
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

// after says who can end the wait of a request to resume.
func (e ending) after() string {
	switch {
	case e.Others != "":
		return e.Others + " can confirm it now."
	case e.Alone:
		return "There is no other administrator who could confirm it sooner."
	}
	return "No other administrator can confirm it now: that takes a passkey, and an account and rights that are old enough."
}
