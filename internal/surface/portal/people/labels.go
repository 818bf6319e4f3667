package people

import (
	"strings"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

type role struct {
	Role       account.Role
	Name, Text string
}

func roles() []role {
	return []role{
		{account.Admin, "Administrator", "Everything, including users and company settings."},
		{account.Manager, "Manager", "Devices, destructive commands, policies, enrollment and the activity log."},
		{account.Operator, "Operator", "Devices without destructive commands. Can view policies."},
		{account.Viewer, "Viewer", "Can view devices and policies."},
	}
}

// rights are all rights, one by one.
func rights() (all []account.Right) {
	admin, _ := account.Admin.Rights()
	for r := account.Right(1); r <= admin; r <<= 1 {
		all = append(all, r)
	}
	return all
}

// formPage is the page of the form.
func formPage(f userForm) string {
	if f.New {
		return newUserPath
	}
	return userPath(f.User.ID)
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
	rights, _ := u.Role.Rights()
	for _, r := range roles() {
		if r.Role == u.Role && rights == u.Rights {
			return r.Name
		} else if r.Role == u.Role {
			return r.Name + ", changed"
		}
	}
	return string(u.Role)
}

func scopeWord(u account.User) string {
	if u.Policies == nil {
		return "All"
	}
	return frame.Count(len(u.Policies), "policy", "policies")
}

func formAction(f userForm) string {
	if f.New {
		return frame.UsersPath
	}
	return userPath(f.User.ID)
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
