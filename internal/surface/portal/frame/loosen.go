package frame

import (
	"context"
	"net/http"
	"slices"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/company"
)

// ControlStore changes a company's controls. Each method fails as the database does, and with the
// faults that it names.
type ControlStore interface {
	// Loosenings returns what waits, the next first.
	Loosenings(ctx context.Context, companyID string) ([]access.Loosening, error)
	// ChangeControls changes a company: what loosens a control waits, and is returned. It fails
	// with fault.InvalidArguments for what company.Change refuses, fault.NotFound without the
	// company, and fault.Refused while that is being deleted.
	ChangeControls(ctx context.Context, companyID string, by account.User, change func(*company.Company)) ([]access.Loosening, error)
}

// Changed is what came of a change of controls.
type Changed struct {
	Waiting  []access.Loosening
	Canceled string // sentences about the requests that it canceled; empty: none
}

// ReplaceField is the field with which a person agrees that a form replaces what waits.
const ReplaceField = "replace"

// ChangeControls changes a company for the person. A form that would replace a change of a
// control that waits is shown first, with what it replaces: answered is true then, and
// nothing has changed.
func (v *Visit) ChangeControls(store ControlStore, back string, change func(*company.Company)) (did Changed, answered bool, err error) {
	all, err := store.Loosenings(v.Context(), v.Company.ID)
	if err != nil {
		return did, false, err
	}
	wanted := v.Company
	change(&wanted)
	replaced := slices.DeleteFunc(slices.Clone(all), func(l access.Loosening) bool {
		return !access.Loosens(l.Control, v.Company.Settings, wanted.Settings) || wanted.Settings.Control(l.Control) == l.After
	})
	if len(replaced) > 0 && v.Form.Get(ReplaceField) != "true" {
		return did, true, v.ShowStatus(http.StatusConflict, "Replace a waiting change", AccessPath,
			replacing(v, back, replaced, wanted.Settings))
	}
	if did.Waiting, err = store.ChangeControls(v.Context(), v.Company.ID, v.User, change); err == nil {
		did.Canceled = v.canceled(all)
	}
	return did, false, err
}

// canceled says which of the requests that waited this visit has canceled.
func (v *Visit) canceled(waited []access.Loosening) (text string) {
	if len(waited) == 0 {
		return ""
	}
	entries, err := v.frame.Activity(v.Context(), activity.Filter{CompanyID: v.Company.ID, Action: activity.LooseningCanceled},
		activity.Cursor{}, lately)
	if err != nil {
		v.Note("requests that were canceled", err)
	}
	for _, l := range waited {
		if slices.ContainsFunc(entries, func(e activity.Entry) bool { return e.Reference == l.ID && e.RequestID == v.RequestID }) {
			text += " This canceled the request of " + Plain(l.AskedBy.Name) + " to " + Plain(l.Wanted()) + "."
		}
	}
	return text
}

// lately is how many entries of each kind are looked through for how a change ended.
const lately = 20

// Ended says who ended a change that waited, and how; otherwise if that is not found.
func (v *Visit) Ended(id, otherwise string) string {
	for _, action := range []activity.Action{activity.LooseningConfirmed, activity.LooseningCanceled, activity.LooseningApplied} {
		all, err := v.frame.Activity(v.Context(), activity.Filter{CompanyID: v.Company.ID, Action: action, Outcome: activity.OK},
			activity.Cursor{}, lately)
		if err != nil {
			v.Note("end of a change that waited", err)
			return otherwise
		}
		for _, e := range all {
			if sentence := command.Sentence(e); e.Reference == id {
				return Sentence(sentence.Who.Name + " " + sentence.String() + ", " + Since(v.Now, e.At))
			}
		}
	}
	return otherwise
}

// Waits says when changes that loosen a control take effect, as a sentence about what
// waits, and what is held up until then.
func (v *Visit) Waits(what string, did Changed) Flash {
	l, stop := did.Waiting[0], v.Company.Settings.Stop
	text := what + " takes effect in 24 hours, at " + Exact(l.EffectiveAt) + ", or when a second administrator confirms it. It " +
		"can be canceled before that."
	switch {
	case l.Control != access.StopControl && stop.On():
		text = what + " takes effect when the stop has ended, and not before " + Exact(l.EffectiveAt) + ". It can be canceled before that."
	case l.AskedAt.Before(v.Now):
		text = Plain(l.AskedBy.Name) + " asked for this already: it takes effect at " + Exact(l.EffectiveAt) + ", or when a second " +
			"administrator confirms it."
	}
	if l.Control == access.StopControl {
		text += " Until then " + Stopped(stop)
	}
	return Flash{Tone: Warn, Text: text + did.Canceled}
}

// Stopped says whom a stop keeps from what.
func Stopped(stop access.Stop) string {
	who := Either(stop.All, "API keys, AI clients and the people in the portal", "API keys and AI clients")
	return who + " can read but not change anything, and jobs are paused."
}
