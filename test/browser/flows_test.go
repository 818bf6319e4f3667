package browser_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/emulator"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/test/browser"
	"github.com/musterhq/muster/test/needs"
)

// enter starts a service with a tenant, and signs a person in.
func enter(t *testing.T, role account.Role) (*servertest.Tenant, *servertest.Replica, *browser.Tab) {
	t.Helper()
	needs.Chromium().Of(t)
	env := servertest.New(t)
	tenant, replica := env.NewTenant("acme"), env.Start()
	tab := browser.Open(t, replica.PublicURL())
	tab.SignIn(env.Browser(tenant.Company, role).User.Email, servertest.Password)
	return tenant, replica, tab
}

// TestCommandPage_UpdatesLive: the page shows a command in progress, and its end as the
// device confirms it, without being loaded again.
func TestCommandPage_UpdatesLive(t *testing.T) {
	t.Parallel()
	tenant, replica, tab := enter(t, account.Admin)
	device := tenant.Devices(replica, servertest.FullyManaged(), 1)[0]
	off, on := false, true
	tenant.Behave(device, emulator.Behavior{Online: &off})
	tab.Go("/devices/" + device.AssetID)
	tab.Follow("form[action$='/commands/lock_device'] button")
	tab.Sees("#latest", "Lock: In progress")
	tab.Sees("#body", "In progress")
	tab.Eval(`(window.stayed = true, "")`)
	tenant.Behave(device, emulator.Behavior{Online: &on})
	tab.Sees("#body", "Success")
	if tab.Eval(`String(window.stayed)`) != "true" {
		t.Error("the page was loaded again")
	}
	if bad := tab.Bad(); bad != "" {
		t.Error(bad)
	}
}

// TestWipe_AsksForTheName: the button wakes when the name is typed, and not before.
func TestWipe_AsksForTheName(t *testing.T) {
	t.Parallel()
	tenant, replica, tab := enter(t, account.Admin)
	device := tenant.Devices(replica, servertest.FullyManaged(), 1)[0]
	tab.Go("/devices/" + device.AssetID)
	called := tab.Text("h1")
	tab.Click("[data-opens=wipe_device]")
	asleep := func() string {
		return tab.Eval(`String(document.querySelector("#wipe_device button[type=submit]").disabled)`)
	}
	tab.Type("#wipe_device-confirm", "another")
	if asleep() != "true" {
		t.Error("the button is awake with another name")
	}
	tab.Type("#wipe_device-confirm", strings.ToUpper(called))
	if asleep() != "false" {
		t.Error("the button sleeps with the name")
	}
	tab.Follow("#wipe_device button[type=submit]")
	tab.Sees("#head", "Deleted")
}

// TestEnrollPage_UpdatesLive: the page with the code shows that the device joins.
func TestEnrollPage_UpdatesLive(t *testing.T) {
	t.Parallel()
	tenant, replica, tab := enter(t, account.Manager)
	tab.Go("/enrol")
	tab.Follow("form[action='/enrol'] button[type=submit]")
	tab.Sees("#joined", "Waiting for the first device")
	tenant.Devices(replica, servertest.FullyManaged(), 1)
	tab.Waits(`document.querySelectorAll("#joined li a").length === 1`)
	if bad := tab.Bad(); bad != "" {
		t.Error(bad)
	}
}

// TestEnrollPage_UseFollowsThePolicy: the use that is chosen is that of the policy's devices,
// at first and when another policy is chosen. What was typed beside it stays.
func TestEnrollPage_UseFollowsThePolicy(t *testing.T) {
	t.Parallel()
	tenant, replica, tab := enter(t, account.Manager)
	tenant.Devices(replica, servertest.Personal(), 2)
	other := tenant.Env.Policy(tenant.Company, "Zz unused", policy.Platform)
	tab.Go("/enrol?policy=" + tenant.Policy.ID)
	tab.Waits(`document.querySelector("[name=personalUsage]:checked").value === "ALLOWED"`)
	tab.Click("details:has([name=wifiSsid]) > summary")
	tab.Type("[name=wifiSsid]", "Guest")
	tab.Choose("#policy", other.ID)
	tab.Waits(`document.querySelector("[name=personalUsage]:checked").value === "DISALLOWED"`)
	tab.Choose("#policy", tenant.Policy.ID)
	tab.Waits(`document.querySelector("[name=personalUsage]:checked").value === "ALLOWED"`)
	if typed := tab.Eval(`document.querySelector("[name=wifiSsid]").value`); typed != "Guest" {
		t.Errorf("the network that was typed is now %q", typed)
	}
	if bad := tab.Bad(); bad != "" {
		t.Error(bad)
	}
}

// TestJob_ShowsEachResult: a plan, a job of the service, a result for each device.
func TestJob_ShowsEachResult(t *testing.T) {
	t.Parallel()
	tenant, replica, tab := enter(t, account.Operator)
	devices := tenant.Devices(replica, servertest.FullyManaged(), 3)
	tab.Go("/devices")
	tab.Click("[data-all]")
	tab.Follow("button[value=lock]")
	tab.Sees("h1", "Lock: 3 devices")
	tab.Click("#plan details summary")
	tab.Type("#bulk-rate", "600")
	tab.Follow("#plan button[type=submit]")
	tab.Sees("#job", "Done")
	for _, d := range devices {
		if n := len(tenant.Client(replica, access.All).History(d.AssetID)); n != 1 {
			t.Errorf("%d commands", n)
		}
	}
}

// TestKeyboard_ReachesEverything: the keyboard goes everywhere.
func TestKeyboard_ReachesEverything(t *testing.T) {
	t.Parallel()
	tenant, replica, tab := enter(t, account.Admin)
	tenant.Devices(replica, servertest.FullyManaged(), 2)
	tab.Go("/")
	tab.Press("g")
	tab.Press("d")
	tab.Sees("h1", "Devices")
	tab.Waits(`document.readyState === "complete"`)
	tab.Press("j")
	tab.Waits(`document.activeElement.matches("tr[data-row] a")`)
	tab.Press("x")
	tab.Sees("[data-selected]", "1 selected")
	tab.Press("?")
	tab.Waits(`document.querySelector("#help").open`)
	tab.Press(kb.Escape)
	tab.Press("/")
	tab.Waits(`document.activeElement.matches("[data-find]")`)
}

// Where a window is too narrow for a table's columns, each row shows all that it has below
// its first cell, and nothing is beyond the edge.
func TestRows_FitNarrowWindows(t *testing.T) {
	t.Parallel()
	tenant, replica, tab := enter(t, account.Admin)
	tenant.Devices(replica, servertest.FullyManaged(), 2)
	tenant.Client(replica, access.All).Post("/policies/"+tenant.Policy.ID+"/changes",
		map[string]any{"changes": []map[string]string{{"setting": "CAMERA", "value": "BLOCK"}}}).Want(t, http.StatusCreated)
	for width, paths := range map[int64][]string{390: {"/devices", "/activity", "/policies", "/users", "/access", "/proposals"},
		1024: {"/proposals", "/access"}} {
		tab.Size(width, 800)
		for _, path := range paths {
			tab.Go(path)
			beyond := tab.Eval(`(() => {
				const cells = [...document.querySelectorAll("main .grid-table[data-rows] tbody td")].filter((e) => e.checkVisibility());
				if (cells.length === 0) return "there are no cells";
				return cells.filter((e) => e.getBoundingClientRect().right > innerWidth).map((e) => e.outerHTML.slice(0, 120)).join("\n");
			})()`)
			if beyond != "" {
				t.Errorf("%s at %d pixels: %s", path, width, beyond)
			}
		}
	}
}

// TestRows_OpenWhereClicked: a row opens its device wherever it is clicked, but on its
// controls; Escape takes the selection back.
func TestRows_OpenWhereClicked(t *testing.T) {
	t.Parallel()
	tenant, replica, tab := enter(t, account.Admin)
	device := tenant.Devices(replica, servertest.FullyManaged(), 1)[0]
	tab.Go("/devices")
	tab.Click("tr[data-row] input[name=id]")
	tab.Sees("[data-selected]", "1")
	tab.Press("\x1b")
	tab.Waits(`document.querySelector("tr[data-row] input[name=id]:checked") === null`)
	tab.Follow("tr[data-row] td:nth-child(3)")
	if got := tab.Path(); got != "/devices/"+device.AssetID {
		t.Errorf("the row opens %s", got)
	}
}

// TestOverview_FirstSteps: an empty company's overview leads through its first steps, and
// they go away with its first device.
func TestOverview_FirstSteps(t *testing.T) {
	t.Parallel()
	tenant, replica, tab := enter(t, account.Admin)
	tab.Sees("main", "Enroll the first device")
	tab.Sees("main", "Create a policy")
	tenant.Devices(replica, servertest.FullyManaged(), 1)
	tab.Go("/")
	tab.Sees("#overview", "Enrolled")
	if text := tab.Text("main"); strings.Contains(text, "Enroll the first device") {
		t.Error("the first steps stay")
	}
}
