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
// makes, changes, enables, disables and invites no user, because each of these could give
// it a fresh session of another user.
func TestUsers_ChangesNeedAFreshProof(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	replica := env.Start()
	acme := env.Company("acme", access.Settings{DeviceCommands: true})
	stale := replica.PortalClient(t, env.Browser(acme, account.Admin).User)
	colleague := env.Browser(acme, account.Viewer).User
	env.Advance(account.ReauthFresh + time.Second)
	for name, page := range map[string]servertest.Page{
		"form":       stale.Get("/users/new"),
		"invite":     stale.Post("/users", "email", "mallory@acme.test", "name", "M", "role", "admin", "scope", "all"),
		"save":       stale.Post("/users/"+colleague.ID, "name", "C", "role", "admin", "scope", "all"),
		"invitation": stale.Post("/users/" + colleague.ID + "/invitation"),
		"enable":     stale.Post("/users/"+colleague.ID+"/disabled", "disabled", "false"),
		"disable":    stale.Post("/users/"+colleague.ID+"/disabled", "disabled", "true"),
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
	if u, err := env.DB().UserByID(t.Context(), acme.ID, colleague.ID); err != nil || u.Role != account.Viewer || u.Disabled {
		t.Errorf("role: got %s, %v, want viewer", u.Role, err)
	}
	stale.Post("/account/prove", "password", servertest.Password, "next", "/users/new").Want(t, 200)
	stale.Post("/users/"+colleague.ID+"/disabled", "disabled", "true").Want(t, 200)
	if u, err := env.DB().UserByID(t.Context(), acme.ID, colleague.ID); err != nil || !u.Disabled {
		t.Errorf("disabled: got %v, %v, want true", u.Disabled, err)
	}
	stale.Post("/users", "email", "grace@acme.test", "name", "Grace", "role", "admin", "scope", "all").Want(t, 200)
}

// TestPassword_AskForThePasskey: a person with a passkey proves who they are with it alone.
// Neither the password nor the form that changes it stands in for it.
func TestPassword_AskForThePasskey(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	replica := env.Start(servertest.OnLocalhost(t))
	acme := env.Company("acme", access.Settings{DeviceCommands: true})
	v := replica.PortalClient(t, env.Browser(acme, account.Admin).User)
	key := servertest.NewAuthenticator(t, replica.PublicURL())
	v.AddPasskey(key).Want(t, 200)
	env.Advance(account.ReauthFresh + time.Minute)
	const next = "another long password"
	change := func() servertest.Page {
		return v.Post("/account/password", "current", servertest.Password, "password", next, "again", next)
	}
	opens := func() bool {
		page := v.Post("/access/gates", "gate", string(access.DestructiveCommands), "on", "true")
		return !strings.HasPrefix(page.Path, "/account/prove")
	}
	v.Post("/account/prove", "password", servertest.Password, "next", "/access").Want(t, 403)
	v.Post("/account/prove/company", "next", "/access").Want(t, 403)
	if page := change(); !strings.HasPrefix(page.Path, "/account/prove") || opens() {
		t.Errorf("the password changes without the passkey: %s", page.Path)
	}
	proof := v.Get("/account/prove?next=%2Faccount")
	v.Post("/account/prove/passkey", "token", proof.Field(t, "token"), "next", "/account", "answer", key.Get(proof.Options(t))).Want(t, 200)
	env.Advance(account.ReauthFresh - time.Minute)
	if page := change().Want(t, 200); page.Path != "/account" {
		t.Errorf("with the passkey: %s", page.Path)
	}
	env.Advance(2 * time.Minute)
	if opens() {
		t.Error("the new session is fresher than the proof")
	}
}
