package e2e_test

import (
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/servertest"
)

// A second administrator lets a looser limit take effect at once, with a passkey
// that answers for this change. Who asked for it does not, with any passkey.
func TestLoosening_ConfirmedWithPasskey(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		replica := env.Start(servertest.OnLocalhost(t))
		acme := env.Company("acme", servertest.Everything())
		env.CLI(new(any), "company", "set", "--company", "acme", "--approver-age", "0s")
		ada := replica.PortalClient(t, env.Browser(acme, account.Admin).User)
		bob := replica.PortalClient(t, env.Browser(acme, account.Admin).User)
		adasKey, bobsKey := servertest.NewAuthenticator(t, replica.PublicURL()), servertest.NewAuthenticator(t, replica.PublicURL())
		ada.AddPasskey(adasKey).Want(t, 200)
		bob.AddPasskey(bobsKey).Want(t, 200)
		ask := func(limit string) string {
			t.Helper()
			ada.Post("/access/controls", "limited", "true", "limit", limit, "minutes", "60", "age", "0", "replace", "true").Want(t, 200)
			waiting, err := env.DB().Loosenings(t.Context(), acme.ID)
			if err != nil || len(waiting) != 1 {
				t.Fatal(waiting, err)
			}
			return "/access/controls/" + waiting[0].ID + "/confirm"
		}
		limit := func(want string) {
			t.Helper()
			c, err := env.DB().CompanyByID(t.Context(), acme.ID)
			if err != nil || c.Settings.Controls.DestructiveLimit.String() != want {
				t.Errorf("limit: got %s, %v, want %s", c.Settings.Controls.DestructiveLimit, err, want)
			}
		}
		first := ask("50")
		shown := bob.Get(first).Want(t, 200)
		second := ask("60") // in the place of what was shown
		answer := bobsKey.Get(shown.Options(t))
		for _, path := range []string{first, second} {
			bob.Post(path, "token", shown.Field(t, "token"), "answer", answer).Want(t, 200)
		}
		if own := ada.Get(second).Want(t, 200); strings.Contains(own.Body, `name="token"`) {
			t.Errorf("who asked for it is given something to sign: %s", own.Body)
		}
		shown = bob.Get(second).Want(t, 200)
		ada.Post(second, "token", shown.Field(t, "token"), "answer", adasKey.Get(shown.Options(t))).Want(t, 200)
		limit("25/60m")
		shown = bob.Get(second).Want(t, 200)
		bob.Post(second, "token", shown.Field(t, "token"), "answer", bobsKey.Get(shown.Options(t))).Want(t, 200)
		limit("60/60m")
	})
}
