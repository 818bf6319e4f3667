package frame

import (
	"context"
	"net/http"
	"slices"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/company"
)

// ControlStore changes a company's controls.
type ControlStore interface {
	// Loosenings returns what waits, the next first.
	Loosenings(ctx context.Context, companyID string) ([]access.Loosening, error)
	// ChangeControls changes a company: what loosens a control waits, and is returned.
	ChangeControls(ctx context.Context, companyID string, by account.User, change func(*company.Company)) ([]access.Loosening, error)
}

// ReplaceField is the field with which a person agrees that a form replaces what waits.
const ReplaceField = "replace"

// ChangeControls changes a company for the person. A form that would replace a change of a
// control that waits is shown first, with what it replaces: answered is true then, and
// nothing has changed.
func (v *Visit) ChangeControls(store ControlStore, back string,
	change func(*company.Company)) (waiting []access.Loosening, answered bool, err error) {
	all, err := store.Loosenings(v.Context(), v.Company.ID)
	if err != nil {
		return nil, false, err
	}
	wanted := v.Company
	change(&wanted)
	replaced := slices.DeleteFunc(all, func(l access.Loosening) bool {
		return !access.Loosens(l.Control, v.Company.Settings, wanted.Settings) || wanted.Settings.Control(l.Control) == l.After
	})
	if len(replaced) > 0 && v.Form.Get(ReplaceField) != "true" {
		return nil, true, v.ShowStatus(http.StatusConflict, "Replace a waiting change", AccessPath,
			replacing(v, back, replaced, wanted.Settings))
	}
	waiting, err = store.ChangeControls(v.Context(), v.Company.ID, v.User, change)
	return waiting, false, err
}

// Waits says when changes that loosen a control take effect.
func (v *Visit) Waits(waiting []access.Loosening) Flash {
	f := Flash{Tone: Warn, Text: "This loosens a control: it takes effect in 24 hours, or when a second administrator confirms it. Until " +
		"then it can be canceled."}
	if l := waiting[0]; l.AskedAt.Before(v.Now) {
		f.Text = Plain(l.AskedBy.Name) + " asked for this already: it takes effect at " + Exact(l.EffectiveAt) + ", or when a second " +
			"administrator confirms it."
	}
	return f
}
