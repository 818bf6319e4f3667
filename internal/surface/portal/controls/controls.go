// Package controls is the portal's page of what limits a company's callers: the
// stop, the limit of destructive commands, and what waits to be loosened. A second
// administrator confirms that in the section approvals.
package controls

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// Store changes a company's controls. Each method fails as the database does, and with the faults that
// it names.
type Store interface {
	frame.ControlStore
	// CancelLoosening removes a change that waits; fault.NotFound if it does not wait.
	CancelLoosening(ctx context.Context, companyID, id string) error
	// Approvers returns the users of a company with what decides whether they may confirm.
	Approvers(ctx context.Context, companyID string) ([]access.Approver, error)
}

// Section serves the controls.
type Section struct {
	Store Store
}

const (
	pagePath   = frame.ControlsPath
	rulesPath  = pagePath + "/approval"
	stopPath   = pagePath + "/stop"
	resumePath = pagePath + "/resume"
)

// Routes are the section's addresses.
func (s *Section) Routes() []frame.Route {
	const manage = account.ManageCompany
	proof := frame.Proof{Next: pagePath, Then: "try again"}
	return []frame.Route{
		{Pattern: "GET " + pagePath, Needs: manage, Serve: s.show},
		{Pattern: "POST " + pagePath, Needs: manage, Proof: proof, Serve: s.save},
		{Pattern: "POST " + rulesPath, Needs: manage, Proof: proof, Serve: s.saveRules},
		{Pattern: "POST " + stopPath, Needs: manage, Serve: s.stop},
		{Pattern: "POST " + resumePath, Needs: manage, DuringStop: true, Proof: proof, Serve: s.resume},
		{Pattern: "POST " + pagePath + "/{id}/cancel", Needs: manage, DuringStop: true, Serve: s.cancel},
	}
}

// view is what the page shows.
type view struct {
	Limits  limits
	Stop    stopForm
	Ending  ending
	Resume  *access.Loosening // that waits; nil: none
	Waiting []access.Loosening
	// Few is how many users could approve what keys and AI clients ask for, where a
	// second person is needed and there are not two; -1: there are enough.
	Few int
}

func (s *Section) show(v *frame.Visit) error {
	return s.render(v, http.StatusOK, view{Limits: limitsOf(v.Company.Settings.Controls)})
}

func (s *Section) render(v *frame.Visit, status int, p view) (err error) {
	if p.Waiting, err = s.Store.Loosenings(v.Context(), v.Company.ID); err != nil {
		return err
	}
	all, err := s.Store.Approvers(v.Context(), v.Company.ID)
	if err != nil {
		return err
	}
	by := v.User.ID
	for _, l := range p.Waiting {
		if l.Control == access.StopControl {
			p.Resume, by = &l, l.AskedBy.ID
		}
	}
	p.Few, p.Ending = few(v, all), endingOf(v, all, by)
	if v.Partial() {
		return v.Fragment(live(v, p))
	}
	return v.ShowStatus(status, "Limits and stop", frame.AccessPath, page(v, p))
}

// few counts the users who could approve, where a second person is needed.
func few(v *frame.Visit, all []access.Approver) int {
	c := v.Company.Settings.Controls
	if !c.SecondPerson || c.ApplyApproval == access.ApproveNone && !c.DestructiveApproval {
		return -1
	}
	could := 0
	for _, who := range all {
		policies := c.ApplyApproval == access.ApproveNone || who.May(access.Matter{Needs: access.PoliciesWrite}, c, v.Now) == nil
		commands := !c.DestructiveApproval || who.May(access.Matter{Needs: access.DevicesCommandDestructive}, c, v.Now) == nil
		if policies && commands {
			could++
		}
	}
	return frame.Either(could > 1, -1, could)
}

// saveRules changes what a person has to approve. What the form was shown with and still has
// is left as it is by now.
func (s *Section) saveRules(v *frame.Visit) error {
	rule := access.ApprovalRule(v.Form.Get("applyApproval"))
	if !slices.Contains(access.ApprovalRules(), rule) {
		return fault.Invalid("choose which policy changes need approval",
			fault.Field{Field: "applyApproval", Message: "must be OFF, RISKY or ALL"})
	}
	reason := access.ReasonRule(v.Typed("requireReason", string(v.Company.Settings.Controls.RequireReason)))
	if !slices.Contains(access.ReasonRules(), reason) {
		return fault.Invalid("choose which calls must give a reason",
			fault.Field{Field: "requireReason", Message: "must be OFF, DESTRUCTIVE or ALL"})
	}
	return s.change(v, "Saved.", "This loosens a control: it", func(to *access.Settings) {
		frame.Set(v, "applyApproval", &to.Controls.ApplyApproval, rule)
		frame.Set(v, "requireReason", &to.Controls.RequireReason, reason)
		frame.Set(v, "secondPerson", &to.Controls.SecondPerson, v.Form.Get("secondPerson") == "true")
		frame.Set(v, "destructiveApproval", &to.Controls.DestructiveApproval, v.Form.Get("destructiveApproval") == "true")
	})
}

// ruleText is a value of applyApproval for people.
func ruleText(r access.ApprovalRule) string {
	texts := map[access.ApprovalRule]string{access.ApproveAll: "All changes",
		access.ApproveRisky: "Risky changes: of high impact, or with a warning"}
	return cmp.Or(texts[r], "None")
}

// reasonText is a value of requireReason for people.
func reasonText(r access.ReasonRule) string {
	texts := map[access.ReasonRule]string{access.ReasonAll: "Everything that changes something",
		access.ReasonDestructive: "Destructive commands"}
	return cmp.Or(texts[r], "Nothing")
}

// save changes the limits. What the form was shown with and still has is left as it is by now.
func (s *Section) save(v *frame.Visit) error {
	form := readLimits(v)
	if v.Kept("age") {
		form.Hours = hoursText(v.Company.Settings.Controls.ApproverAge)
	}
	limit, age, wrong := form.parse(v.Company.Settings.Controls.ApproverAge)
	if wrong != "" {
		form.Problem = wrong
		return s.render(v, http.StatusUnprocessableEntity, view{Limits: form})
	}
	return s.change(v, "Saved.", "This loosens a control: it", func(to *access.Settings) {
		if !v.Kept("limited") || !v.Kept("limit") || !v.Kept("minutes") {
			to.Controls.DestructiveLimit = limit
		}
		frame.Set(v, "age", &to.Controls.ApproverAge, age)
	})
}

// change changes controls, and says what is done, or what waits.
func (s *Section) change(v *frame.Visit, done, waits string, edit func(*access.Settings)) error {
	did, answered, err := v.ChangeControls(s.Store, pagePath, func(c *company.Company) { edit(&c.Settings) })
	switch {
	case answered:
		return err
	case err != nil:
		return v.Refused(pagePath, err, fault.InvalidArguments, fault.Refused)
	case len(did.Waiting) > 0:
		return v.Redirect(pagePath, v.Waits(waits, did))
	}
	return v.Redirect(pagePath, frame.Done(done+did.Canceled))
}

func (s *Section) cancel(v *frame.Visit) error {
	err := s.Store.CancelLoosening(v.Context(), v.Company.ID, v.PathValue("id"))
	if fault.CodeOf(err) == fault.NotFound {
		return v.Redirect(pagePath, frame.Flash{Tone: frame.Warn, Text: "There was nothing to cancel any more. " +
			v.Ended(v.PathValue("id"), "The change took effect, or was canceled.")})
	}
	return v.Finish(pagePath, err, "Canceled. Nothing has changed.")
}
