// Package controls is the portal's page of what limits a company's callers: the
// stop, the limit of destructive commands, and what waits to be loosened. A second
// administrator confirms that in the section approvals.
package controls

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// Store changes a company's controls.
type Store interface {
	Loosenings(ctx context.Context, companyID string) ([]access.Loosening, error)
	ChangeControls(ctx context.Context, companyID string, by account.User, change func(*company.Company)) ([]access.Loosening, error)
	CancelLoosening(ctx context.Context, companyID, id string) error
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

func cancelPath(id string) string  { return pagePath + "/" + url.PathEscape(id) + "/cancel" }
func confirmPath(id string) string { return pagePath + "/" + url.PathEscape(id) + "/confirm" }

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
	Limit, Age, Reason string
	// Few is how many users could approve what keys and AI clients ask for, where a
	// second person is needed and there are not two; -1: there are enough.
	Few     int
	Waiting []access.Loosening
	Problem string
}

func (s *Section) show(v *frame.Visit) error {
	c := v.Company.Settings.Controls
	return s.render(v, http.StatusOK, view{Limit: strings.ToLower(c.DestructiveLimit.String()),
		Age: hoursText(c.ApproverAge)})
}

func hoursText(d time.Duration) string { return strconv.FormatFloat(d.Hours(), 'f', -1, 64) }

func (s *Section) render(v *frame.Visit, status int, p view) (err error) {
	if p.Waiting, err = s.Store.Loosenings(v.Context(), v.Company.ID); err != nil {
		return err
	}
	if p.Few, err = s.few(v); err != nil {
		return err
	}
	return v.ShowStatus(status, "Limits and stop", frame.AccessPath, page(v, p))
}

// few counts the users who could approve, where a second person is needed.
func (s *Section) few(v *frame.Visit) (int, error) {
	c := v.Company.Settings.Controls
	if !c.SecondPerson || c.ApplyApproval == access.ApproveNone && !c.DestructiveApproval {
		return -1, nil
	}
	all, err := s.Store.Approvers(v.Context(), v.Company.ID)
	could := 0
	for _, who := range all {
		policies := c.ApplyApproval == access.ApproveNone || who.May(access.Matter{Needs: access.PoliciesWrite}, c, v.Now) == nil
		commands := !c.DestructiveApproval || who.May(access.Matter{Needs: access.DevicesCommandDestructive}, c, v.Now) == nil
		if policies && commands {
			could++
		}
	}
	if could > 1 {
		could = -1
	}
	return could, err
}

// saveRules changes what a person has to approve.
func (s *Section) saveRules(v *frame.Visit) error {
	rule := access.ApprovalRule(v.Form.Get("applyApproval"))
	if !slices.Contains(access.ApprovalRules(), rule) {
		return fault.Invalid("choose which policy changes need approval", fault.Field{Field: "applyApproval", Message: "must be OFF, RISKY or ALL"})
	}
	return s.change(v, "Saved.", func(to *access.Settings) {
		to.Controls.ApplyApproval = rule
		to.Controls.SecondPerson = v.Form.Get("secondPerson") == "true"
		to.Controls.DestructiveApproval = v.Form.Get("destructiveApproval") == "true"
	})
}

// ruleText is a value of applyApproval for people.
func ruleText(r access.ApprovalRule) string {
	texts := map[access.ApprovalRule]string{access.ApproveAll: "All changes", access.ApproveRisky: "Risky changes: of high impact, or with a warning"}
	return cmp.Or(texts[r], "None")
}

func (s *Section) save(v *frame.Visit) error {
	p := view{Limit: strings.TrimSpace(v.Form.Get("limit")), Age: strings.TrimSpace(v.Form.Get("age"))}
	limit, wrong := access.ParseDestructiveLimit(p.Limit)
	if wrong != nil {
		p.Problem = frame.Sentence(wrong.Error())
		return s.render(v, http.StatusUnprocessableEntity, p)
	}
	hours, wrong := strconv.ParseFloat(p.Age, 64)
	age := v.Company.Settings.Controls.ApproverAge // the operator may have set a greater one, which stays
	if p.Age != hoursText(age) {
		if wrong != nil || hours < 0 || hours > access.MaxPortalApproverAge.Hours() {
			p.Problem = "The age must be from 0 to 168 hours (7 days). The operator can set a greater one."
			return s.render(v, http.StatusUnprocessableEntity, p)
		}
		age = time.Duration(hours * float64(time.Hour)).Truncate(time.Millisecond)
	}
	return s.change(v, "Saved.", func(to *access.Settings) {
		to.Controls.DestructiveLimit = limit
		to.Controls.ApproverAge = age
	})
}

// change changes controls, and says what waits.
func (s *Section) change(v *frame.Visit, done string, edit func(*access.Settings)) error {
	waiting, err := s.Store.ChangeControls(v.Context(), v.Company.ID, v.User, func(c *company.Company) { edit(&c.Settings) })
	if err != nil {
		return v.Refused(pagePath, err, fault.InvalidArguments, fault.Refused)
	}
	if len(waiting) > 0 {
		return v.Redirect(pagePath, frame.Flash{Tone: frame.Warn, Text: "This loosens a control: it takes effect in 24 hours, or when a second administrator confirms it. Until then it can be canceled."})
	}
	return v.Redirect(pagePath, frame.Done(done))
}

// stop stops what keys and connections change. It asks for no proof: stopping is
// never delayed.
func (s *Section) stop(v *frame.Visit) error {
	return s.change(v, "Changes are stopped.", func(to *access.Settings) {
		next := access.Stop{At: v.Now, Reason: strings.TrimSpace(v.Form.Get("reason")), All: to.Stop.All || v.Form.Get("all") == "true"}
		if to.Stop.On() {
			next.At = to.Stop.At
		}
		to.Stop = next
	})
}

func (s *Section) resume(v *frame.Visit) error {
	return s.change(v, "Resumed.", func(to *access.Settings) { to.Stop = access.Stop{} })
}

func (s *Section) cancel(v *frame.Visit) error {
	err := s.Store.CancelLoosening(v.Context(), v.Company.ID, v.PathValue("id"))
	if err != nil {
		return v.Refused(pagePath, err, fault.NotFound)
	}
	return v.Redirect(pagePath, frame.Done("Canceled. Nothing has changed."))
}
