package contract_test

import (
	"io"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/emulator"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/service"
	"github.com/musterhq/muster/internal/surface/cli"
)

// A stop refuses what keys change, with the reason, and takes back what no device
// has received; reading, and what people sent, goes on.
func TestStop(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		tenant, replica := env.NewTenant("acme"), env.Start()
		kiosk := &servertest.Tenant{Env: env, Company: tenant.Company, Policy: env.AgentPolicy(tenant.Company, "Kiosk")}
		phone := kiosk.AgentDevice(replica)
		if err := phone.CheckIn(); err != nil {
			t.Fatal(err)
		}
		held := tenant.Devices(replica, servertest.FullyManaged(), 1)[0]
		offline := false
		env.Behave(held, emulator.Behavior{Online: &offline})
		client := tenant.Client(replica, access.All)
		for _, id := range []string{phone.AssetID, held.AssetID} {
			servertest.AwaitStatus(t, tenant, client, id, "ACTIVE")
		}
		admin := env.Browser(tenant.Company, account.Admin)
		admin.SignIn(replica.PublicURL())
		ask := func(status int) {
			admin.Send(replica.PublicURL()+"/devices/"+phone.AssetID+"/commands/request_status_report",
				url.Values{"once": {resource.NewID()}}).Want(t, status)
		}
		ask(303)
		client.Post("/assets/"+phone.AssetID+"/commands/reboot", nil).Want(t, 200)
		client.Post(servertest.LockPath(held), nil).Want(t, 200)

		var company struct{ Stop *struct{ Reason string } }
		env.CLI(&company, "company", "stop", "--company", "acme", "--reason", "a key has leaked")
		if company.Stop == nil || company.Stop.Reason != "a key has leaked" {
			t.Errorf("stopped: %+v", company.Stop)
		}
		for _, refused := range []servertest.Answer{
			client.Post(servertest.LockPath(held), nil),
			client.Post("/assets/"+held.AssetID+"/commands/wipe", nil),
			client.Post("/policies/"+tenant.Policy.ID+"/changes",
				map[string]any{"changes": []map[string]string{{"setting": "CAMERA", "value": "BLOCK"}}}),
			client.Post("/policies/"+tenant.Policy.ID+"/provisioning-qr-codes", map[string]any{}),
		} {
			if detail, _ := refused.Want(t, 403).Members(t)["detail"].(string); !strings.Contains(detail, "a key has leaked") {
				t.Errorf("refused with %q", detail)
			}
		}
		client.Get("/assets").Want(t, 200)
		if gone := tenant.Settled(client, held.AssetID, "ERROR"); gone.Outcome == nil || !strings.HasPrefix(*gone.Outcome, "cancelled: ") {
			t.Errorf("the platform's command: %+v", gone)
		}
		gone := tenant.Settled(client, phone.AssetID, "ERROR")
		if gone.Type != "REBOOT" || gone.Outcome == nil || !strings.HasPrefix(*gone.Outcome, "cancelled: ") ||
			!strings.Contains(*gone.Outcome, "a key has leaked") {
			t.Errorf("the agent's command: %+v", gone)
		}
		if persons := client.History(phone.AssetID)[1]; persons.Type != "STATUS_REPORT" || persons.Status != "IN_PROGRESS" {
			t.Errorf("the person's command: %+v", persons)
		}
		ask(303)
		if sent := client.History(phone.AssetID)[0]; sent.Type != "STATUS_REPORT" {
			t.Errorf("a person sent %+v", sent)
		}

		env.CLI(&company, "company", "stop", "--company", "acme", "--reason", "an account was stolen", "--all")
		before := len(client.History(phone.AssetID))
		ask(403)
		if now := len(client.History(phone.AssetID)); now != before {
			t.Errorf("a person sent %d commands while the portal is stopped", now-before)
		}
		env.CLI(&company, "company", "resume", "--company", "acme")
		if client.Post(servertest.LockPath(held), nil).Want(t, 200); company.Stop != nil {
			t.Errorf("resumed: %+v", company.Stop)
		}
	})
}

// While changes are stopped, a repetition of a call that was recorded before is answered
// as it was; another call is refused, also with a key of its own.
func TestStop_RepeatsWhatWasRecorded(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		replica, tenant := env.Start(), env.NewTenant("acme")
		phone, client := tenant.Devices(replica, servertest.FullyManaged(), 1)[0], tenant.Client(replica, access.All)
		reboot := func(key string) servertest.Answer {
			return client.Post("/assets/"+phone.AssetID+"/commands/reboot", nil, "Idempotency-Key", key)
		}
		first := reboot("once").Want(t, 200)
		env.CLI(new(any), "company", "stop", "--company", "acme", "--reason", "because", "--all")
		env.Advance(2 * time.Second)
		if again := reboot("once").Want(t, 200); again.Header.Get("Idempotency-Replayed") != "true" ||
			string(again.Body) != string(first.Body) {
			t.Errorf("the repetition: %s, first %s", again.Body, first.Body)
		}
		reboot("another").Want(t, 403)
		reboot("another").Want(t, 403)
		if all := client.History(phone.AssetID); len(all) != 1 {
			t.Errorf("the history has %+v", all)
		}
	})
}

// A company that is stopped whole stays so when an operator stops it again for another reason.
func TestStop_AgainByTheCommandLine(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	made := env.Company("acme", servertest.Everything())
	for _, c := range []struct {
		all    bool
		reason string
		want   bool
	}{{false, "a leak", false}, {true, "a stolen account", true}, {false, "confirmed", true}} {
		stop := cli.CompanyStop{Reason: c.reason, All: c.all}
		stop.Company, stop.Database = made.Slug, env.Database
		if err := stop.Run(&cli.Env{Context: t.Context(), Out: io.Discard, Now: env.Now,
			Open: service.OpenAdmin(env.Now, env.Config().KeyFile)}); err != nil {
			t.Fatal(err)
		}
		now, err := env.DB().CompanyByID(t.Context(), made.ID)
		if err != nil {
			t.Fatal(err)
		}
		if got := now.Settings.Stop; got.Reason != c.reason || got.All != c.want {
			t.Errorf("after a stop for %q: %+v, want all %t", c.reason, got, c.want)
		}
	}
}
