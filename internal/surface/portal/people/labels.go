package people

import (
	"cmp"
	"strings"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// rights are all rights, one by one.
func rights() []account.Right {
	admin, _ := account.Admin.Rights()
	return admin.Each()
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
	if rights, known := u.Role.Rights(); !known || rights != u.Rights {
		return cmp.Or(u.Role.Title(), string(u.Role)) + ", changed"
	}
	return u.Role.Title()
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
