package browser_test

import (
	"testing"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/servertest"
)

// The plan of a move follows the policy that is chosen, and keeps what was typed; a second
// choice brings the devices back that the first one left out.
func TestPlan_FollowsThePolicy(t *testing.T) {
	t.Parallel()
	tenant, replica, tab := enter(t, account.Admin)
	device := tenant.Devices(replica, servertest.FullyManaged(), 1)[0]
	other := tenant.Env.Policy(tenant.Company, "The other policy", policy.Platform)
	tab.Go("/bulk?command=change-policy&id=" + device.AssetID)
	tab.Eval(`(document.querySelector("#plan details").open = true, "")`)
	tab.Type("#bulk-rate", "17")
	tab.Choose("#bulk-policyId", tenant.Policy.ID)
	tab.Sees("#planned", "already uses this policy")
	tab.Waits(`document.querySelector("#plan-button button").disabled`)
	tab.Choose("#bulk-policyId", other.ID)
	tab.Sees("#planned", "Ready")
	tab.Sees("#plan-button", "1 device")
	if rate := tab.Eval(`document.querySelector("#bulk-rate").value`); rate != "17" {
		t.Errorf("the rate is %q", rate)
	}
	if bad := tab.Bad() + tab.Axe(); bad != "" {
		t.Error(bad)
	}
	tab.Follow("#plan-button button")
	tab.Sees("main", "of 1 have a result")
}
