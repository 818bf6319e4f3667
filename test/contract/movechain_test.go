package contract_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/emulator"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/servertest"
)

// While a move is under way, the next one is compared with its policy too: a device is not
// brought from there to another policy without a person, over REST and over MCP.
func TestAuthorization_OfChainsOfMoves(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		tenant, replica := env.NewTenant("acme"), env.Start(servertest.OnLocalhost(t))
		devices := tenant.Devices(replica, servertest.FullyManaged(), 4)
		admin := tenant.Client(replica, access.All)
		for _, d := range devices {
			servertest.AwaitStatus(t, tenant, admin, d.AssetID, "ACTIVE")
		}
		equal, ada := env.Policy(tenant.Company, "Equal", policy.Platform), newDecider(t, env, replica, tenant.Company, account.Manager)
		limited := newDecider(t, env, replica, tenant.Company, account.Manager, tenant.Policy.ID, equal.ID)
		set := func(rule string) {
			env.CLI(new(any), "company", "set", "--company", "acme", "--approver-age", "0s", "--apply-approval", rule)
		}
		for n, c := range []struct{ rule, first, setting, label string }{
			{"risky", "unasked", "ENCRYPTION_POLICY=ENABLED_WITH_PASSWORD", "ncryption"},
			{"all", "unasked", "NETWORK_RESET=BLOCK", "Network settings reset"},
			{"risky", "authorized", "ENCRYPTION_POLICY=ENABLED_WITH_PASSWORD", "ncryption"},
			{"all", "authorized", "NETWORK_RESET=BLOCK", "Network settings reset"}} {
			t.Run(c.rule+", the first is "+c.first, func(t *testing.T) {
				other, device := env.Policy(tenant.Company, "Other "+c.rule+" "+c.first, policy.Platform), devices[n].AssetID
				env.CLI(new(any), "policy", "set", other.PathName(), "--company", "acme", "--set", c.setting)
				r := racer{t: t, rest: tenant.Client(replica, access.All)}
				if set("off"); c.first == "authorized" {
					set(c.rule)
					ada.decide(t, r.move(device, other.PathName()).approvalURL, false)
				}
				env.Fault(emulator.Fault{Method: "devices.patch", DropConnection: true})
				if got := r.move(device, other.PathName()); got.approvalURL != "" {
					t.Fatalf("the first move: %+v", got)
				}
				if body := string(admin.Get("/assets/"+device+"/commands").Want(t, 200).Body); !strings.Contains(body, "UNCONFIRMED") {
					t.Fatalf("the history is %.300s", body)
				}
				set(c.rule)
				foreseen := explain(t, r.rest, "change_device_policy", args{"assetId": device, "policyId": equal.PathName()})
				says := func(text string) bool {
					return strings.Contains(text, c.label) && strings.Contains(text, "another move is under way")
				}
				if foreseen.Answer.Status != 403 || foreseen.Effects == nil || !slices.ContainsFunc(*foreseen.Effects, says) {
					t.Errorf("foreseen: %+v", foreseen)
				}
				assistant := servertest.WithKey(t, replica.PublicURL(), tenant.Client(replica, access.All).Key)
				for over, caller := range map[string]racer{"REST": r, "MCP": {t: t, rest: r.rest, mcp: &assistant}} {
					if got := caller.move(device, equal.PathName()); got.status != 403 || got.approvalURL == "" {
						t.Errorf("over %s: %+v", over, got)
					}
				}
				address := r.move(device, equal.PathName()).approvalURL
				if page := ada.Get(strings.TrimPrefix(address, replica.PublicURL())).Want(t, 200); !says(page.Body) {
					t.Errorf("the page does not say what changes: %.600s", page.Body)
				}
				page := limited.Get(strings.TrimPrefix(address, replica.PublicURL())).Want(t, 200)
				if !strings.Contains(page.Body, "may not see") || strings.Contains(page.Body, other.Name) || says(page.Body) {
					t.Errorf("limited to the other two policies, the page shows this one, or does not say so: %.600s", page.Body)
				}
				ada.decide(t, address, false)
				if got := r.move(device, equal.PathName()); got.status != 200 {
					t.Errorf("after a person authorized it: %+v", got)
				}
			})
		}
	})
}
