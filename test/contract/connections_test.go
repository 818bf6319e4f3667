package contract_test

import (
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/servertest"
)

// A connection whose sign-ins have all run out is not shown as connected.
func TestConnections_WithoutSignInsAreSignedOut(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	replica := env.Start()
	acme := env.Company("acme", servertest.Everything())
	admin := env.Browser(acme, account.Admin)
	admin.Connect(replica.PublicURL(), "mcp:devices:read")
	if err := env.DB().Sweep(t.Context(), env.Now().Add(31*24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	page := replica.PortalClient(t, admin.User).Get("/access").Want(t, 200)
	if !strings.Contains(page.Body, ">Signed out<") || !strings.Contains(page.Body, "0 sign-ins") ||
		strings.Contains(page.Body, ">Connected<") {
		t.Errorf("the list shows %s", page.Body)
	}
}

// Connections are raised no further than their user and the person who raises them,
// lowered, frozen and revoked, from the next call on; others' are not found.
func TestConnections_StayWithinTheirUsersRights(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	replica := env.Start()
	acme := env.Company("acme", servertest.Everything())
	owner := env.Browser(acme, account.Operator)
	token := owner.Connect(replica.PublicURL(), "mcp:devices:read").Access
	id := env.ConnectionOf(token).ID
	admin := replica.PortalClient(t, env.Browser(acme, account.Admin).User)
	path := "/access/connections/" + id
	scopes := func() access.Permission {
		all, err := env.DB().Connections(t.Context(), acme.ID)
		if err != nil || len(all) != 1 {
			t.Fatalf("%v, %v", all, err)
		}
		return all[0].Scopes
	}
	admin.Post(path+"/scopes", "scope", "DEVICES_READ", "scope", "DEVICES_COMMAND").Want(t, 200)
	if scopes() != access.DevicesRead|access.DevicesCommand {
		t.Errorf("raised to %v", scopes())
	}
	// The owner may not write policies, so the connection may not either.
	admin.Post(path+"/scopes", "scope", "DEVICES_READ", "scope", "POLICIES_WRITE").Want(t, 403)
	replica.PortalClient(t, env.Browser(acme, account.Viewer).User).Post(path+"/scopes", "scope", "DEVICES_READ").Want(t, 404)
	replica.PortalClient(t, owner.User).Post(path+"/scopes", "scope", "DEVICES_READ").Want(t, 200)
	if scopes() != access.DevicesRead {
		t.Errorf("lowered to %v", scopes())
	}
	replica.PortalClient(t, owner.User).Post(path+"/freeze", "frozen", "true").Want(t, 403)
	client := servertest.WithToken(t, replica.PublicURL(), token)
	// A frozen connection is known and may do nothing: 401 would have its client
	// bring its person to sign in again.
	admin.Post(path+"/freeze", "frozen", "true").Want(t, 200)
	if refused := client.Call("count_assets", nil).Failed(t); refused.Code != "forbidden" || !strings.Contains(refused.Message, "frozen") {
		t.Errorf("a frozen connection is told %+v", refused)
	}
	if tools := client.Names(); len(tools) != 0 {
		t.Errorf("a frozen connection sees %v", tools)
	}
	admin.Post(path+"/freeze", "frozen", "false").Want(t, 200)
	client.Call("count_assets", nil).OK(t, nil)
	if page := admin.Get("/access").Want(t, 200); !strings.Contains(page.Body, "1 sign-in") || !strings.Contains(page.Body, ">Connected<") {
		t.Error("the list does not tell that the connection is live, or how many grants it has")
	}
	admin.Post(path+"/revoke").Want(t, 200)
	if answer := client.Call("count_assets", nil); answer.Status != 401 {
		t.Errorf("a revoked connection is answered %d", answer.Status)
	}
	if page := admin.Get("/access").Want(t, 200); !strings.Contains(page.Body, "1 connection revoked") ||
		strings.Contains(page.Body, ">Revoked<") {
		t.Error("the list shows it, or does not lead to it")
	}
	if page := admin.Get("/access?ended=shown").Want(t, 200); !strings.Contains(page.Body, ">Revoked<") {
		t.Error("the whole list does not show it")
	}
	if page := admin.Get("/activity?area=connection").Want(t, 200); !strings.Contains(page.Body, "revoked the connection") {
		t.Error("the record does not tell of it")
	}
}
