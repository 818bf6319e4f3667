package people

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// The values of the field scope: all policies, or those that are ticked.
const (
	scopeAll  = "all"
	scopeSome = "some"
)

// parseRoleForm returns the form's role, rights and policies; nil policies: all.
func parseRoleForm(in url.Values) (account.Role, account.Right, []string, error) {
	role := account.Role(in.Get("role"))
	rights, known := role.Rights()
	if !known {
		return "", 0, nil, fault.Invalid("choose a role", fault.Field{Field: "role", Message: "must be admin, manager, operator or viewer"})
	}
	ticked, err := account.ParseRights(in["right"])
	if err != nil {
		return "", 0, nil, fault.Invalid(err.Error())
	}
	// Who changes a single right means it, also where no script selects the box above.
	if in.Get("custom") == "true" || in.Has("shown") && strings.Join(ticked.Names(), " ") != in.Get("shown") {
		rights = ticked
	}
	// Nil means all policies. A list, also one without a policy, limits the user to it.
	if in.Get("scope") != scopeSome {
		return role, rights, nil, nil
	}
	return role, rights, slices.Clip(append([]string{}, in["policy"]...)), nil
}

// parseChange returns the form's change of a user, with what the form was shown with. Its
// members are set, Was only where the form says what it was shown with.
func parseChange(v *frame.Visit) (account.UserChange, error) {
	role, rights, policies, err := parseRoleForm(v.Form)
	if err != nil {
		return account.UserChange{}, err
	}
	called := v.Form.Get("name")
	c := account.UserChange{Name: &called, Role: &role, Rights: &rights, Policies: &policies}
	shown, sent := v.Was("rights")
	if !sent {
		return c, nil
	}
	had, err := account.ParseRights(strings.Fields(shown))
	if err != nil {
		return c, fault.Invalid(err.Error())
	}
	was := func(field string) string {
		text, _ := v.Was(field)
		return text
	}
	c.Was = &account.User{Name: was("name"), Role: account.Role(was("role")), Rights: had}
	if was("scope") == scopeSome {
		c.Was.Policies = strings.Fields(was("policies"))
	}
	return c, nil
}

// scope is the value of the form's field scope.
func (f userForm) scope() string { return frame.Either(f.User.Policies == nil, scopeAll, scopeSome) }

// ticked are the ids of the policies that the form shows as chosen. The user may have more
// than the form offers: these stay.
func (f userForm) ticked() string {
	var ids []string
	for _, p := range f.Policies {
		if slices.Contains(f.User.Policies, p.ID) {
			ids = append(ids, p.ID)
		}
	}
	return strings.Join(ids, " ")
}

// rights are all rights, one by one.
func rights() []account.Right {
	admin, _ := account.Admin.Rights()
	return access.Each(admin)
}

func stateOf(u account.User) (frame.Tone, string) {
	switch {
	case u.Disabled:
		return frame.Idle, "Disabled"
	case u.LastSignInAt.IsZero() && u.PasswordHash == "":
		return frame.Warn, "Invited"
	}
	return frame.OK, "Enabled"
}

func roleWord(u account.User) string {
	if rights, known := u.Role.Rights(); !known || rights != u.Rights {
		return cmp.Or(u.Role.Title(), string(u.Role)) + ", changed"
	}
	return u.Role.Title()
}

// browser names a browser by its own description, roughly.
func browser(agent string) string {
	name := "A browser"
	for _, known := range []string{"Firefox", "Edg", "Chrome", "Safari", "curl"} {
		if strings.Contains(agent, known) {
			name = strings.Replace(known, "Edg", "Edge", 1)
			break
		}
	}
	for _, system := range []string{"Android", "iPhone", "iPad", "Windows", "Mac OS X", "Linux"} {
		if strings.Contains(agent, system) {
			return name + " on " + system
		}
	}
	return name
}
