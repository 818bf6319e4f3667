package settings

import (
	"strings"

	"github.com/musterhq/muster/internal/account"
)

// roleName is a role as people read it.
func roleName(r account.Role) string { return strings.ToUpper(string(r[:1])) + string(r[1:]) }

func secretHelp(f signInForm) string {
	if f.HasSecret {
		return "A secret is stored, encrypted. Leave this empty to keep it."
	}
	return "Stored encrypted and never shown again. Leave this empty for a public client."
}
