// Package people is the portal's users and roles, and each person's own
// account: password, passkeys, sessions, and the proof of identity that
// dangerous changes take.
package people

import (
	"net/http"
	"net/url"
	"slices"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/apikey"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// Users serves users and roles.
type Users struct {
	Service     account.Users
	Store       account.UserStore
	Invitations account.Invitations
	Keys        apikey.Keys
	Policies    policy.Lister // for what a user is limited to
}

// Routes are the section's addresses.
func (s *Users) Routes() []frame.Route {
	then := func(what string) frame.Proof { return frame.Proof{Next: frame.UsersPath + "/{user}", Then: what} }
	return []frame.Route{
		{Pattern: "GET " + frame.UsersPath, Needs: account.ManageUsers, Serve: s.list},
		{Pattern: "GET " + newUserPath, Needs: account.ManageUsers, Proof: frame.Proof{Next: newUserPath, Then: "invite a user"},
			Serve: s.newPage},
		{Pattern: "POST " + frame.UsersPath, Needs: account.ManageUsers, Proof: frame.Proof{Next: newUserPath, Then: "invite the user"},
			Serve: s.invite},
		{Pattern: "GET " + frame.UsersPath + "/{user}", Needs: account.ManageUsers, Serve: frame.On(s.find, s.edit)},
		{Pattern: "POST " + frame.UsersPath + "/{user}", Needs: account.ManageUsers, Proof: then("save the user"),
			Serve: frame.On(s.find, s.save)},
		{Pattern: "POST " + frame.UsersPath + "/{user}/disabled", Needs: account.ManageUsers, DuringStop: true,
			Proof: then("choose again"), Serve: s.setDisabled},
		{Pattern: "POST " + frame.UsersPath + "/{user}/invitation", Needs: account.ManageUsers, Proof: then("make the invitation"),
			Serve: frame.On(s.find, s.renewInvitation)},
	}
}

const newUserPath = frame.UsersPath + "/new"

func userPath(id string) string { return frame.UsersPath + "/" + url.PathEscape(id) }

func (s *Users) list(v *frame.Visit) error {
	users, err := s.Store.Users(v.Context(), v.Company.ID)
	return v.ShowUnless(err, "Users", frame.SettingsPath, userList(v, users))
}

// userForm is the form of a new or a changed user.
type userForm struct {
	User     account.User
	New      bool
	Policies []policy.Policy
	More     bool         // there are more policies than the form offers
	Custom   bool         // the rights are not those of the role
	Keys     []apikey.Key // that the user made, and that work
	Wrong    map[string]string
	Problem  string
}

// maxPolicies bounds the policies that the form offers.
const maxPolicies = 500

// show shows the form.
func (s *Users) show(v *frame.Visit, status int, title string, f userForm) error {
	policies, total, err := s.Policies.Policies(v.Context(), policy.Query{CompanyID: v.Company.ID, IDs: v.Principal.Policies,
		Order: policy.ByName, Limit: maxPolicies})
	f.Policies, f.More = policies, total > maxPolicies
	if err == nil && !f.New {
		f.Keys, err = s.Keys.LiveOf(v.Context(), f.User)
	}
	if err != nil {
		return err
	}
	if rights, known := f.User.Role.Rights(); known {
		f.Custom = rights != f.User.Rights
	}
	return v.ShowStatus(status, title, frame.SettingsPath, userPage(v, f))
}

func (s *Users) newPage(v *frame.Visit) error {
	rights, _ := account.Viewer.Rights()
	return s.show(v, http.StatusOK, "Invite a user",
		userForm{New: true, User: account.User{Role: account.Viewer, Rights: rights, Policies: v.User.Policies}})
}

// invite makes a user.
func (s *Users) invite(v *frame.Visit) error {
	role, rights, policies, err := parseRoleForm(v.Form)
	if err != nil {
		return err
	}
	r := account.NewUserRequest{Email: v.Form.Get("email"), Name: v.Form.Get("name"), Role: role, Rights: &rights, Policies: policies}
	u, err := s.Service.Invite(v.Context(), v.User, r)
	if err == nil {
		return s.showInvitation(v, u)
	}
	given := account.User{Email: r.Email, Name: r.Name, Role: role, Rights: rights, Policies: policies}
	return s.showInvalid(v, userForm{New: true, User: given}, err)
}

// showInvalid shows the form with what is wrong.
func (s *Users) showInvalid(v *frame.Visit, f userForm, err error) error {
	status, known := map[fault.Code]int{fault.InvalidArguments: 422, fault.Refused: 409, fault.Forbidden: 403}[fault.CodeOf(err)]
	if !known {
		return err
	}
	f.Wrong, f.Problem = frame.Fields(err), frame.Sentence(fault.From(err).Detail)
	return s.show(v, status, "User", f)
}

// showInvitation makes a link by which the user sets a password, shown once.
// Earlier ones end.
func (s *Users) showInvitation(v *frame.Visit, u account.User) error {
	token, err := s.Invitations.Begin(v.Context(), v.User, u)
	if err != nil {
		return v.Refused(userPath(u.ID), err, fault.Refused)
	}
	return v.Show("Invitation", frame.SettingsPath, invited(v, u, v.PublicURL+"/invitation#"+token, s.Invitations.Mail != nil))
}

func (s *Users) find(v *frame.Visit) (account.User, error) {
	return s.Store.UserByID(v.Context(), v.Company.ID, v.PathValue("user"))
}

func (s *Users) edit(v *frame.Visit, u account.User) error {
	return s.show(v, http.StatusOK, u.Name, userForm{User: u})
}

// save changes a user. What the form was shown with and still has is left as it is by now.
func (s *Users) save(v *frame.Visit, u account.User) error {
	c, err := parseChange(v)
	if err != nil {
		return err
	}
	changed, err := s.Service.Change(v.Context(), v.User, u.ID, c)
	if err != nil {
		u.Name, u.Role, u.Rights, u.Policies = *c.Name, *c.Role, *c.Rights, *c.Policies
		return s.showInvalid(v, userForm{User: u}, err)
	}
	return v.Redirect(frame.UsersPath, frame.Done(changed.Name+" saved. Changes apply from their next request."))
}

// setDisabled disables or enables a user. Keys that the user made are the
// company's and go on working: those that the form names are revoked.
func (s *Users) setDisabled(v *frame.Visit) error {
	disabled, page := v.Form.Get("disabled") == "true", userPath(v.PathValue("user"))
	if !disabled { // disabling goes on during a stop
		if err := v.Running(); err != nil {
			return err
		}
	}
	u, err := s.Service.Change(v.Context(), v.User, v.PathValue("user"), account.UserChange{Disabled: &disabled})
	if err != nil {
		return v.Refused(page, err, fault.Refused, fault.Forbidden)
	}
	if !disabled {
		return v.Redirect(frame.UsersPath, frame.Done(u.Name+" can sign in again."))
	}
	done, err := s.endKeys(v, u, v.Form["revoke"])
	if err != nil {
		return err
	}
	return v.Redirect(frame.UsersPath, done)
}

// endKeys revokes the keys of a user who was disabled, and says which still work.
func (s *Users) endKeys(v *frame.Visit, u account.User, revoke []string) (frame.Flash, error) {
	live, err := s.Keys.LiveOf(v.Context(), u)
	if err != nil {
		return frame.Flash{}, err
	}
	revoked := 0
	for _, k := range live {
		if !v.May(account.ManageKeys) || !slices.Contains(revoke, k.ID) {
			continue
		}
		if _, err := s.Keys.Revoke(v.Context(), v.Company.ID, k.ID); err != nil {
			return frame.Flash{}, err
		}
		revoked++
	}
	text := u.Name + " is disabled: sessions and connections have ended."
	if revoked > 0 {
		text += " Revoked: " + frame.Count(revoked, "API key", "API keys") + "."
	}
	if left := len(live) - revoked; left > 0 {
		return frame.Flash{Tone: frame.Warn, Link: frame.AccessPath, LinkText: "API keys",
			Text: text + " Still working: " + frame.Count(left, "API key", "API keys") + " that " + u.Name +
				" made. Revoke what is not needed."}, nil
	}
	return frame.Done(text), nil
}

// renewInvitation makes another link for a user who was invited.
func (s *Users) renewInvitation(v *frame.Visit, u account.User) error {
	// Changing nothing still shows whether this user may be changed by that one.
	if _, err := s.Service.Change(v.Context(), v.User, u.ID, account.UserChange{}); err != nil {
		return err
	}
	return s.showInvitation(v, u)
}
