// Package overview is the portal's first page: how the fleet is, at a glance.
package overview

import (
	"context"
	"time"

	"github.com/a-h/templ"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/apikey"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// Proposals counts what waits for a decision. Each method fails as the database does.
type Proposals interface {
	// WaitingProposals counts proposals that can still be applied; policies nil: of all
	// policies.
	WaitingProposals(ctx context.Context, companyID string, policies []string) (int, error)
	// WaitingAuthorizations counts the calls that wait for a person; policies nil: of all
	// policies.
	WaitingAuthorizations(ctx context.Context, companyID string, policies []string) (int, error)
}

// Section serves the overview.
type Section struct {
	Assets    asset.Overview
	Commands  command.Overview
	Policies  policy.Lister
	Proposals Proposals
	Activity  activity.Store
	Companies company.Store
	Keys      apikey.Store
	// Approvers are the company's users as those who may decide.
	Approvers func(ctx context.Context, companyID string) ([]access.Approver, error)
	// Checklist is shown in place of everything while the company is empty.
	Checklist func(v *frame.Visit) templ.Component
}

// Routes are the section's addresses.
func (s *Section) Routes() []frame.Route {
	return []frame.Route{
		{Pattern: "GET /{$}", Serve: s.show},
		{Pattern: "GET " + frame.AttentionPath, Serve: frame.On(s.needs, s.showNeeds)},
		{Pattern: "POST " + dismissPath, Needs: account.ManageCompany, Serve: s.dismiss},
	}
}

// tiles are the parts of the page. Each is read by itself, and is nil if it
// could not be: the others are shown all the same.
type tiles struct {
	Figures  []figure
	Days     []day
	Policies []bar
	Patches  []bar
	Places   []asset.Place
	Feed     []activity.Entry
	Failed   map[string]bool
}

// read reads a part, or notes that it cannot be read.
func (t *tiles) read(v *frame.Visit, name string, read func(*frame.Visit, *tiles) error) {
	if err := read(v, t); err != nil {
		t.Failed[name] = true
		v.Note("tile of the overview", err)
	}
}

func (s *Section) show(v *frame.Visit) error {
	t := tiles{Failed: map[string]bool{}}
	if v.Partial() && v.Query().Get("part") == "chart" {
		t.read(v, "days", s.days)
		return v.Fragment(chart(v, t))
	}
	everything := asset.Filter{CompanyID: v.Company.ID, Policies: v.Principal.Policies}
	n, err := s.Assets.CountAssets(v.Context(), everything)
	if err == nil && n == 0 {
		if v.Partial() {
			return v.Fragment(firstSteps(s.Checklist(v)))
		}
		rows, err := s.needs(v)
		if err != nil {
			v.Note("list of what waits", err)
		}
		return v.Show("Overview", frame.OverviewPath, welcome(v, frame.TroubleOf(v), s.news(v), rows, s.Checklist(v)))
	}
	for name, read := range map[string]func(*frame.Visit, *tiles) error{
		"figures": s.figures, "policies": s.policies, "patches": s.patches, "places": s.places, "feed": s.feed,
	} {
		t.read(v, name, read)
	}
	if v.Partial() {
		return v.Fragment(grid(v, t))
	}
	t.read(v, "days", s.days)
	rows, err := s.needs(v)
	if err != nil {
		v.Note("list of what waits", err)
	}
	return v.Show("Overview", frame.OverviewPath, page(v, frame.TroubleOf(v), s.news(v), rows, t))
}

// figure is a number that leads to its list.
type figure struct {
	Label, Link string
	Value       string
	Tone        frame.Tone
	Barred      bool // the person may not see it
}

// The figures' limits.
const (
	silentAfter   = 24 * time.Hour
	oldAfter      = 90 * 24 * time.Hour // of a security patch
	maxUnfinished = 1000
)

func (s *Section) figures(v *frame.Visit, t *tiles) (err error) {
	barred := !v.May(account.ViewDevices)
	// devices adds how many devices a filter of their list leaves. What is rare is shown while there is some.
	devices := func(label, query string, rare bool, narrow func(*asset.Filter)) {
		f, n := asset.Filter{CompanyID: v.Company.ID, Policies: v.Principal.Policies}, int64(0)
		if narrow(&f); err == nil {
			n, err = s.Assets.CountAssets(v.Context(), f)
		}
		if n > 0 || !rare {
			t.Figures = append(t.Figures, figure{label, frame.DevicesPath + query, frame.Number(n), warn(n), barred})
		}
	}
	devices("Enrolled", "?status=ENROLLED", false, func(f *asset.Filter) { f.Enrolled = true })
	t.Figures[0].Tone = frame.Idle
	devices("Silent for 24 h", "?seenBefore=24h", false, func(f *asset.Filter) { f.SeenBefore = v.Now.Add(-silentAfter) })
	devices("Behind on policy", "?policyBehind=true", false, func(f *asset.Filter) { f.PolicyBehind = new(true) })
	devices("Patch older than 90 days", "?patchBefore=90d", false, func(f *asset.Filter) {
		f.PatchBefore = v.Now.Add(-oldAfter).UTC().Format(time.DateOnly)
	})
	if err != nil {
		return err
	}
	late, err := s.Commands.Unfinished(v.Context(), v.Company.ID, v.Principal.Policies, v.Now.Add(-frame.LateFor),
		v.Now.Add(-frame.OverdueAfter), maxUnfinished)
	if err != nil {
		return err
	}
	t.Figures = append(t.Figures, figure{"Commands open for 1 h", frame.OpenCommandsPath, atMost(late), warn(int64(late)), barred})
	waiting, err := s.Proposals.WaitingProposals(v.Context(), v.Company.ID, v.Principal.Policies)
	if err != nil {
		return err
	}
	if waiting > 0 {
		t.Figures = append(t.Figures, figure{"Proposals waiting", frame.ProposalsPath + "?waiting=1", frame.Number(waiting), frame.Warn,
			!v.May(account.EditPolicies)})
	}
	devices("Not compliant", "?compliant=false", true, func(f *asset.Filter) { f.Compliant = new(false) })
	devices("In lost mode", "?lost=true", true, func(f *asset.Filter) { f.Lost = new(true) })
	if err != nil {
		return err
	}
	asked, err := s.Proposals.WaitingAuthorizations(v.Context(), v.Company.ID, v.Principal.Policies)
	if asked > 0 { // only where the company wants people to authorize
		t.Figures = append(t.Figures, figure{"Commands to authorize", approval.Path, frame.Number(asked), frame.Warn, barred})
	}
	return err
}

func atMost(n int) string {
	return frame.Either(n >= maxUnfinished, frame.Number(n)+"+", frame.Number(n))
}

func warn(n int64) frame.Tone { return frame.Either(n != 0, frame.Warn, frame.OK) }

func (s *Section) places(v *frame.Visit, t *tiles) (err error) {
	if v.May(account.ViewDevices) {
		t.Places, err = s.Assets.Located(v.Context(), asset.Filter{CompanyID: v.Company.ID, Policies: v.Principal.Policies}, maxPlaces)
	}
	return err
}

// maxPlaces is how many places the small map shows; feedLength how many
// entries of the record.
const (
	maxPlaces  = 2000
	feedLength = 20
)

func (s *Section) feed(v *frame.Visit, t *tiles) (err error) {
	if !v.May(account.ViewActivity) {
		return nil
	}
	f := activity.Filter{CompanyID: v.Company.ID, Once: true, Limit: activity.Limit{UserID: v.User.ID, Policies: v.Principal.Policies}}
	t.Feed, err = s.Activity.Activity(v.Context(), f, activity.Cursor{}, feedLength)
	return err
}
