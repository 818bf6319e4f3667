package portal_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/service"
)

// The enroll page says which devices take which way under a policy of our own agent,
// and what is missing if codes install no app.
func TestEnrollPage_SaysWhichWay(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	const ways, missing = "Google Play Protect blocks", "MUSTER_AGENT_APK"
	admin := o.person(t, account.Admin)
	if page := o.get(t, admin, "/enrol", 200); strings.Contains(page, ways) {
		t.Error("without a policy of the agent the page describes its devices")
	}
	agents := o.AgentPolicy(o.Company, "Kiosk", "CAMERA=BLOCK")
	if page := o.get(t, admin, "/enrol", 200); !strings.Contains(page, ways) || !strings.Contains(page, missing) {
		t.Errorf("without an app the page says %.3000s", page)
	}
	code := func(want bool, policy string) {
		t.Helper()
		page := string(admin.Send(o.base+"/enrol", url.Values{"policy": {policy}, "personalUsage": {"DISALLOWED"}}).Body)
		if !strings.Contains(page, "data:image/png") || strings.Contains(page, ways) != want || strings.Contains(page, missing) != want {
			t.Errorf("beside a code of the agent's policy (%v) the page says %.3000s", want, page)
		}
	}
	code(true, agents.ID)
	code(false, o.Policy.ID)
	replica := o.Start(func(c *config.Service, _ *service.Options) { c.AgentAPK = "../../apk/testdata/signed.apk" })
	o.base = replica.PublicURL()
	if page := o.get(t, admin, "/enrol", 200); !strings.Contains(page, ways) || strings.Contains(page, missing) {
		t.Errorf("with an app the page says %.3000s", page)
	}
}
