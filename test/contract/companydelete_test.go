package contract_test

import (
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/client"
	"github.com/musterhq/muster/internal/servertest"
)

// inside is what a company has open on a service: a session, a live page, a call that waits,
// a key and a connection.
type inside struct {
	base       string
	ada        *servertest.Browser
	live       <-chan string
	waiting    func(t *testing.T, statuses ...int) feed
	client     servertest.Client
	key, token servertest.Assistant
	tokens     client.Tokens
}

func enters(t *testing.T, tenant *servertest.Tenant, r *servertest.Replica) inside {
	t.Helper()
	base := r.PublicURL()
	in := inside{base: base, ada: tenant.Browser(tenant.Company, account.Admin), client: tenant.Client(r, access.DevicesRead)}
	in.ada.SignIn(base)
	in.ada.Send(base+"/devices", nil).Want(t, http.StatusOK)
	in.live = in.ada.Stream(t, base+"/live?on=assets")
	in.waiting = waits(tenant.Client(r, access.PoliciesRead), "wait=60&after=latest") // of what does not happen
	in.key = servertest.WithKey(t, base, in.client.Key)
	in.tokens = in.ada.Connect(base, "mcp:devices:read")
	in.token = servertest.WithToken(t, base, in.tokens.Access)
	in.key.Call("count_assets", nil).OK(t, nil)
	in.token.Call("count_assets", nil).OK(t, nil)
	return in
}

// ended waits until the live page and the call that waits end, and wants everything else
// refused. The call that waits is refused too, or, where it looked again between the stop of
// the company, which comes first, and the end of its keys, told that nothing happened.
func (in inside) ended(t *testing.T) {
	t.Helper()
	within := time.After(40 * time.Second)
	for open := true; open; {
		select {
		case _, open = <-in.live:
		case <-within:
			t.Fatal("the live page goes on")
		}
	}
	if got := in.waiting(t, http.StatusUnauthorized, http.StatusOK); len(got.Events) > 0 {
		t.Errorf("the call that waits is told %v", got.Events)
	}
	in.client.Get("/assets").Want(t, http.StatusUnauthorized)
	for name, a := range map[string]servertest.Assistant{"key": in.key, "connection": in.token} {
		if answer := a.Call("count_assets", nil); answer.Status != http.StatusUnauthorized {
			t.Errorf("the %s is answered %d over MCP", name, answer.Status)
		}
	}
	if answer := in.ada.Send(in.base+"/devices", nil); answer.Status != http.StatusSeeOther {
		t.Errorf("the session is answered %d", answer.Status)
	}
}

// What a deleted company has open ends on every replica, and nothing of another company.
func TestDeletedCompany_EndsEverywhere(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		doomed, stays, replicas := env.NewAgentSite("doomed"), env.NewAgentSite("stays"), []*servertest.Replica{env.Start()}
		if _, embedded := env.Config().SQLitePath(); !embedded {
			replicas = append(replicas, env.Start())
		}
		phone, other := doomed.AgentDevice(replicas[0]), stays.AgentDevice(replicas[0])
		var all, foreign []inside
		for _, r := range replicas {
			all, foreign = append(all, enters(t, doomed, r)), append(foreign, enters(t, stays, r))
		}
		deletes := func() error {
			return env.TryCLI(new(any), "company", "delete", "--company", "doomed", "--confirm", "doomed", "--export",
				filepath.Join(t.TempDir(), "rows"))
		}
		if err := deletes(); err == nil {
			t.Fatal("a company with a managed device was deleted")
		}
		a, err := env.DB().Asset(t.Context(), doomed.Company.ID, phone.AssetID)
		if err == nil {
			err = env.DB().MarkDeleted(t.Context(), a.ID, a.Device.Epoch, env.Now()) // its management ends
		}
		if err == nil {
			err = deletes()
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, in := range all {
			in.ended(t)
		}
		if err := phone.CheckIn(); err == nil {
			t.Error("the device of a deleted company is answered")
		}
		other.MustCheckIn()
		for _, in := range foreign {
			in.client.Get("/assets").Want(t, http.StatusOK)
			in.key.Call("count_assets", nil).OK(t, nil)
			in.token.Call("count_assets", nil).OK(t, nil)
			in.ada.Send(in.base+"/devices", nil).Want(t, http.StatusOK)
			select {
			case _, open := <-in.live:
				if !open {
					t.Error("the live page of another company ended")
				}
			default:
			}
		}
		for _, r := range replicas {
			r.Stop()
		}
		for _, in := range foreign {
			in.waiting(t, http.StatusOK) // answered by the end of the service, not before
		}
	})
}
