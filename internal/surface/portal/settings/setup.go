package settings

import (
	"github.com/a-h/templ"
	"slices"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// task is one line of the checklist.
type task struct {
	Done             bool
	Title, Text      string
	Path, Action     string
	Needs            account.Right
	Optional, Failed bool
}

// action is the word of the task's link: what is done is only looked at.
func (t task) action() string { return frame.Either(t.Done, "Open", t.Action) }

func (t task) variant() string { return frame.Either(t.Done, "ghost", "outline") }

func (s *Section) setup(v *frame.Visit) error {
	return v.Show("Setup", frame.SettingsPath, setupPage(v, s.tasks(v)))
}

// Checklist is the list of what an empty company still needs, for the overview.
func (s *Section) Checklist(v *frame.Visit) templ.Component { return checklist(v, s.tasks(v)) }

func (s *Section) tasks(v *frame.Visit) []task {
	tasks := []task{
		{Done: v.Company.Connected(), Title: "Connect to the platform",
			Text: "Bind the company to Google's device management, for phones without our own agent. Skip it for agent-managed devices.",
			Path: frame.PlatformPath, Action: "Connect", Needs: account.ManageCompany, Optional: true},
		{Title: "Create a policy", Text: "What devices under it may do.", Path: frame.PoliciesPath, Action: "Policies",
			Needs: account.EditPolicies},
		{Title: "Enroll the first device", Text: "Make a QR code and scan it with a new phone.", Path: frame.EnrollPath, Action: "Enroll",
			Needs: account.ProvisionDevices},
		{Title: "Add a second administrator", Text: "One lost password then locks no company out, and a second person can confirm what " +
			"one alone may not: a looser limit, the end of a stop.", Path: frame.UsersPath, Action: "Users", Needs: account.ManageUsers},
		{Title: "Let programs and AI assistants in", Text: "Choose what they may do, and make the first key.", Path: frame.AccessPath,
			Action: "AI access", Needs: account.ManageCompany, Optional: true},
	}
	_, n, err := s.Policies.Policies(v.Context(), policy.Query{CompanyID: v.Company.ID, IDs: v.Principal.Policies, Limit: 1})
	tasks[1].Done, tasks[1].Failed = n > 0, err != nil
	devices, err := s.Assets.CountAssets(v.Context(),
		asset.Filter{CompanyID: v.Company.ID, Status: asset.Active, Policies: v.Principal.Policies})
	tasks[2].Done, tasks[2].Failed = devices > 0, err != nil
	users, err := s.Users.Users(v.Context(), v.Company.ID)
	administrators := slices.DeleteFunc(users, func(u account.User) bool { return u.Disabled || !u.Rights.Has(account.ManageUsers) })
	tasks[3].Done, tasks[3].Failed = len(administrators) > 1, err != nil
	keys, err := s.Keys.Keys(v.Context(), v.Company.ID)
	tasks[4].Done, tasks[4].Failed = len(keys) > 0 || v.Company.Settings.OAuthConnections, err != nil
	return tasks
}

func finished(tasks []task) (n int) {
	for _, t := range tasks {
		if t.Done {
			n++
		}
	}
	return n
}

// The connection to the platform is made in three steps: begun here, signed up
// at the vendor's page, bound here. Each is kept, so that a person who closed
// the window, or another person, goes on from there.

const signupPath = frame.PlatformPath + "/signup"

// open is the sign-up that was left half-way; nil: none.
func (s *Section) open(v *frame.Visit) (*company.Signup, error) {
	if v.Company.Connected() {
		return nil, nil
	}
	signup, err := s.Platform.OpenSignup(v.Context(), v.Company.ID)
	if fault.CodeOf(err) == fault.NotFound {
		return nil, nil
	}
	return &signup, err
}

func (s *Section) platform(v *frame.Visit, open *company.Signup) error {
	return v.Show("Platform", frame.SettingsPath, platformPage(v, frame.TroubleOf(v), open))
}

// connect begins the sign-up, or begins it again: an earlier one that was left
// unfinished can still be finished.
func (s *Section) connect(v *frame.Visit) error {
	if _, err := s.Platform.StartSignup(v.Context(), v.Company.ID, v.Session.ID); err != nil {
		return v.Refused(frame.PlatformPath, err, fault.Refused, fault.Provider)
	}
	return v.Redirect(signupPath)
}

// signup shows the second step: the way to the vendor's page.
func (s *Section) signup(v *frame.Visit, open *company.Signup) error {
	if open == nil || open.Returned() {
		return v.Redirect(frame.PlatformPath)
	}
	return v.Show("Connect to the platform", frame.SettingsPath, connecting(v, open.Address))
}

// finish takes the third step again, with what the vendor's page brought back.
func (s *Section) finish(v *frame.Visit) error {
	_, pushed, err := s.Platform.ResumeSignup(v.Context(), v.Company.ID)
	return s.finished(v, pushed, err)
}
