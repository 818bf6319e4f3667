package servertest_test

import (
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/servertest"
)

// Connections are raised no further than their user and whoever raises them,
// lowered, frozen and revoked, from the next call on; others' are not found.
func TestConnectionsAreKeptInBounds(t *testing.T) {
	t.Parallel()
	lab := servertest.New(t)
	replica := lab.Start()
	acme := lab.Company("acme", servertest.Everything())
	owner := lab.Person(acme, access.Operator)
	token := owner.Connect(replica.PublicURL(), "mcp:devices:read").Access
	id := lab.ConnectionOf(token).ID
	admin := replica.Visitor(t, lab.Person(acme, access.Admin).User)
	path := "/access/connections/" + id
	scopes := func() access.Permission {
		all, err := lab.DB().Connections(t.Context(), acme.ID)
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
	replica.Visitor(t, lab.Person(acme, access.Viewer).User).Post(path+"/scopes", "scope", "DEVICES_READ").Want(t, 404)
	replica.Visitor(t, owner.User).Post(path+"/scopes", "scope", "DEVICES_READ").Want(t, 200)
	if scopes() != access.DevicesRead {
		t.Errorf("lowered to %v", scopes())
	}
	works := func() bool {
		_, _, err := lab.DB().ConnectionByToken(t.Context(), access.HashSecret(token))
		return err == nil
	}
	replica.Visitor(t, owner.User).Post(path+"/freeze", "frozen", "true").Want(t, 403)
	for _, step := range []struct {
		path, frozen string
		works        bool
	}{{"/freeze", "true", false}, {"/freeze", "false", true}, {"/revoke", "", false}} {
		admin.Post(path+step.path, "frozen", step.frozen).Want(t, 200)
		if works() != step.works {
			t.Errorf("after %s %s it works: %v", step.path, step.frozen, works())
		}
	}
	if page := admin.Get("/activity?area=connection").Want(t, 200); !strings.Contains(page.Body, "revoked the connection") {
		t.Error("the record does not tell of it")
	}
}
