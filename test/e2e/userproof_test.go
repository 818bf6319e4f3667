package e2e_test

import (
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/servertest"
)

// TestUsers_ChangesNeedAFreshProof: a session whose proof of identity is old
// makes, changes, enables and invites no user, because each of these could give
// it a fresh session of another user.
func TestUsers_ChangesNeedAFreshProof(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	replica := env.Start()
	acme := env.Company("acme", access.Settings{DeviceCommands: true})
	stale := replica.Visitor(t, env.Browser(acme, account.Admin).User)
	colleague := env.Browser(acme, account.Viewer).User
	env.Advance(account.ReauthFresh + time.Second)
	for name, page := range map[string]servertest.Page{
		"form":       stale.Get("/users/new"),
		"invite":     stale.Post("/users", "email", "mallory@acme.test", "name", "M", "role", "admin", "scope", "all"),
		"save":       stale.Post("/users/"+colleague.ID, "name", "C", "role", "admin", "scope", "all"),
		"invitation": stale.Post("/users/" + colleague.ID + "/invitation"),
		"enable":     stale.Post("/users/"+colleague.ID+"/disabled", "disabled", "false"),
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.HasPrefix(page.Path, "/account/prove?next=%2Fusers") {
				t.Errorf("%s: got %d at %s, want the proof of identity", name, page.Status, page.Path)
			}
		})
	}
	if _, err := env.DB().UserByEmail(t.Context(), "mallory@acme.test"); err == nil {
		t.Error("a user was made without a proof")
	}
	if u, err := env.DB().UserByID(t.Context(), acme.ID, colleague.ID); err != nil || u.Role != account.Viewer {
		t.Errorf("role: got %s, %v, want viewer", u.Role, err)
	}
	// Disabling is not delayed, and a proof lets the rest through.
	stale.Post("/users/"+colleague.ID+"/disabled", "disabled", "true").Want(t, 200)
	if u, err := env.DB().UserByID(t.Context(), acme.ID, colleague.ID); err != nil || !u.Disabled {
		t.Errorf("disabled: got %v, %v, want true", u.Disabled, err)
	}
	stale.Post("/account/prove", "password", servertest.Password, "next", "/users/new").Want(t, 200)
	stale.Post("/users", "email", "grace@acme.test", "name", "Grace", "role", "admin", "scope", "all").Want(t, 200)
}
