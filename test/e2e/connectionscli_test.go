package e2e_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/service"
	"github.com/musterhq/muster/internal/surface/cli"
)

// run runs an administration command and returns what it prints.
func runCommand(t *testing.T, env *servertest.Env, command interface{ Run(*cli.Env) error }) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := command.Run(&cli.Env{Context: t.Context(), Out: &out, Now: env.Now, Open: service.OpenAdmin(env.Now, env.Config().KeyFile)})
	return out.String(), err
}

// The operator sees connections, changes what they may do, and ends them,
// while the service runs and to its next call (contract 5.11).
func TestConnections_CommandLine(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	replica := env.Start()
	acme, other := env.Company("acme", servertest.Everything()), env.Company("other", servertest.Everything())
	ada := env.Browser(acme, account.Admin)
	tokens := ada.Connect(replica.PublicURL(), "mcp:devices:read")
	assistant := servertest.WithToken(t, replica.PublicURL(), tokens.Access)
	of := func(slug, output string) cli.OfCompany {
		return cli.OfCompany{Common: cli.Common{Store: config.Store{Database: env.Database}, Output: output}, Company: slug}
	}
	type listing struct {
		ID, ClientID, ClientName, UserID, UserEmail, State string
		Scopes                                             []string
		Grants                                             int
		RevokedAt                                          *time.Time
	}
	var listed []listing
	list := func() {
		t.Helper()
		text, err := runCommand(t, env, &cli.ConnectionList{OfCompany: of("acme", "json")})
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(text, tokens.Access) || strings.Contains(text, tokens.Refresh) {
			t.Error("a token is printed")
		}
		if err := json.Unmarshal([]byte(text), &listed); err != nil || len(listed) == 0 {
			t.Fatalf("%v: %s", err, text)
		}
	}
	list()
	want := listed[0]
	want.State, want.ClientID, want.ClientName, want.UserEmail, want.UserID = "live", tokens.Client.ID, "Test", ada.User.Email, ada.User.ID
	want.Grants, want.Scopes, want.RevokedAt = 1, []string{"mcp:devices:read"}, nil
	if diff := cmp.Diff(want, listed[0]); diff != "" {
		t.Errorf("listed (-want +got):\n%s", diff)
	}
	id := listed[0].ID
	if text, err := runCommand(t, env, &cli.ConnectionList{OfCompany: of("acme", "text")}); err != nil ||
		!strings.Contains(text, ada.User.Email) {
		t.Errorf("%v: %s", err, text)
	}
	if text, err := runCommand(t, env, &cli.ConnectionList{OfCompany: of(other.Slug, "json")}); err != nil ||
		strings.TrimSpace(text) != "[]" {
		t.Errorf("another company's: %v %s", err, text)
	}
	// Raised by the operator: the earlier client's way out of a missing scope.
	if got := assistant.Legacy().Call("list_policies", nil).Failed(t); got.Code != "forbidden" ||
		!strings.Contains(got.Message, "/access") ||
		!strings.Contains(got.Message, "lacks the scope mcp:policies:read") {
		t.Errorf("before: %+v", got)
	}
	if _, err := runCommand(t, env,
		&cli.ConnectionSet{OfCompany: of("acme", "json"), Ref: id, Scope: []string{"mcp:policies:write"}}); err != nil {
		t.Fatal(err)
	}
	assistant.Legacy().Call("list_policies", nil).OK(t, nil)
	if got := assistant.Legacy().Call("count_assets", nil).Failed(t); got.Code != "forbidden" {
		t.Errorf("a scope that was taken: %+v", got)
	}
	for what, command := range map[string]interface{ Run(*cli.Env) error }{
		"another company's": &cli.ConnectionRevoke{OfCompany: of(other.Slug, "json"), Ref: id},
		"unknown":           &cli.ConnectionRevoke{OfCompany: of("acme", "json"), Ref: "nothing"},
	} {
		t.Run(what, func(t *testing.T) {
			if _, err := runCommand(t, env, command); fault.CodeOf(err) != fault.NotFound || strings.Contains(cli.Message(err), "\n") {
				t.Errorf("%s: %v", what, err)
			}
		})
	}
	if _, err := runCommand(t, env, &cli.ConnectionSet{OfCompany: of("acme", "json"), Ref: id,
		Scope: []string{"mcp:everything"}}); fault.CodeOf(err) != fault.InvalidArguments {
		t.Errorf("a scope that does not exist: %v", err)
	}
	// The client's name is enough for one, and refused for several.
	if _, err := runCommand(t, env, &cli.ConnectionSet{OfCompany: of("acme", "json"), Ref: "Test",
		Scope: []string{"mcp:policies:read"}}); err != nil {
		t.Errorf("by the client's name: %v", err)
	}
	env.Browser(acme, account.Admin).Connect(replica.PublicURL(), "mcp:devices:read")
	_, err := runCommand(t, env, &cli.ConnectionRevoke{OfCompany: of("acme", "json"), Ref: "Test"})
	if fault.CodeOf(err) != fault.Refused || !strings.Contains(cli.Message(err), id) || strings.Count(cli.Message(err), ", ") != 1 {
		t.Errorf("a name held twice: %v", err)
	}
	for range 2 { // again changes nothing
		if _, err := runCommand(t, env, &cli.ConnectionRevoke{OfCompany: of("acme", "json"), Ref: id}); err != nil {
			t.Fatal(err)
		}
		if got := assistant.Call("list_policies", nil); got.Status != http.StatusUnauthorized {
			t.Errorf("after the revocation: %d", got.Status)
		}
	}
	// The tokens of the other one run out.
	if err := env.DB().Sweep(t.Context(), env.Now().Add(31*24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	list()
	if i := slices.IndexFunc(listed, func(c listing) bool { return c.ID != id }); i < 0 || listed[i].State != "signed out" ||
		listed[i].Grants != 0 || listed[i].RevokedAt != nil {
		t.Errorf("the one whose sign-ins have run out: %+v", listed)
	}
	if i := slices.IndexFunc(listed, func(c listing) bool { return c.ID == id }); len(listed) != 2 || i < 0 {
		t.Fatalf("listed %+v", listed)
	} else if ended := listed[i]; ended.State != "revoked" || ended.Grants != 0 || ended.RevokedAt == nil {
		t.Errorf("listed %+v", ended)
	}
	if _, err := runCommand(t, env, &cli.ConnectionSet{OfCompany: of("acme", "json"), Ref: id,
		Scope: []string{"mcp:devices:read"}}); fault.CodeOf(err) != fault.Refused {
		t.Errorf("a revoked one is changed: %v", err)
	}
}
