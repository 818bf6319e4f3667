package portal_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/servertest"
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

// The page always has a policy: the chosen one, else the first for which codes are made, else the first. A policy of VR
// headsets has a command in place of a code, and the page hides the steps of a code.
func TestEnrollPage_ChoosesPolicy(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	var headsets struct{ PathName string }
	o.CLI(&headsets, "policy", "create", "--company", o.Company.Slug, "--name", "A VR policy", "--type", "AGENT", "--vr-only")
	vr := o.id(headsets.PathName)
	admin, trainer := o.person(t, account.Admin), o.person(t, account.Manager, vr)
	for _, c := range []struct {
		name, path string
		who        *servertest.Browser
		policy     string
	}{
		{"no choice", "/enrol", admin, o.Policy.ID},
		{"a policy with codes", "/enrol?policy=" + o.other.ID, admin, o.other.ID},
		{"a VR policy", "/enrol?policy=" + vr, admin, vr},
		{"an unknown policy", "/enrol?policy=unknown", admin, vr},
		{"VR policies alone", "/enrol", trainer, vr},
	} {
		page := o.get(t, c.who, c.path, 200)
		if !strings.Contains(page, `value="`+c.policy+`" selected`) ||
			!strings.Contains(page, "/policies/"+c.policy+"/provisioning-qr-codes") {
			t.Errorf("%s: the page does not choose the policy %s: %.3000s", c.name, c.policy, page)
		}
		headset := c.policy == vr
		if strings.Contains(page, "data-headset>") != headset || strings.Contains(page, "VR headsets are set up over USB") != headset ||
			strings.Contains(page, `value="DISALLOWED" checked`) == headset {
			t.Errorf("%s: the form is for headsets: want %v: %.3000s", c.name, headset, page)
		}
		if _, after, _ := strings.Cut(page, `<div class="group-has-[[data-headset]]/page:hidden">`); !strings.HasPrefix(after,
			`<section class="panel gap-4 p-5" aria-label="What to do on the device">`) {
			t.Errorf("%s: the steps of a code are not in what a headset hides", c.name)
		}
	}
}

// The policy of the address is chosen, also if more are before it than the page lists.
func TestEnrollPage_PolicyBeyondTheList(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	last := policy.Policy{CompanyID: o.Company.ID, CompanySlug: o.Company.Slug, Type: policy.Agent, Version: 1,
		Document: json.RawMessage(`{}`), CreatedAt: o.Now(), UpdatedAt: o.Now()}
	for n := range 201 {
		last.ID, last.Name = resource.NewID(), fmt.Sprint("Zone ", 1000+n)
		if err := o.DB().CreatePolicy(t.Context(), last, policy.Author{Kind: "USER", ID: "u1", Name: "Ada"}, ""); err != nil {
			t.Fatal(err)
		}
	}
	page := o.get(t, o.person(t, account.Admin), "/enrol?policy="+last.ID, 200)
	if !strings.Contains(page, `value="`+last.ID+`" selected`) {
		t.Errorf("the page does not choose the policy %s: %.2000s", last.Name, page)
	}
}
