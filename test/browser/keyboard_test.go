package browser_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/servertest"
)

// TestPolicySettings_LeavingWithEdits: a page with changed settings asks before it is left;
// with none, or as they are sent for review, it does not.
func TestPolicySettings_LeavingWithEdits(t *testing.T) {
	t.Parallel()
	tenant, _, tab := enter(t, account.Admin)
	p := tenant.Env.Policy(tenant.Company, "Edited", policy.Platform)
	tab.Go("/policies/" + p.ID)
	asks := func() bool {
		t.Helper()
		return tab.Eval(`String(!dispatchEvent(new Event("beforeunload", {cancelable: true})))`) == "true"
	}
	if asks() {
		t.Error("it asks without a change")
	}
	pick(tab, "CAMERA", "BLOCK")
	if !asks() {
		t.Error("it does not ask with a change")
	}
	tab.Click("button[type=reset]")
	tab.Sees("[data-tally]", "No changes")
	if asks() {
		t.Error("it asks although the change was undone")
	}
	pick(tab, "CAMERA", "BLOCK")
	tab.Follow("button[data-review]")
	tab.Sees("h1", "Change settings of Edited")
}

// TestPalette: a serial number and Enter, before the answer is there, lead to the device; a
// page is found by any of its words; what is not there is said.
func TestPalette(t *testing.T) {
	t.Parallel()
	tenant, replica, tab := enter(t, account.Admin)
	device := tenant.Devices(replica, servertest.FullyManaged(), 2)[1]
	var shown struct{ Specifications map[string]string }
	tenant.Client(replica, access.All).Get("/assets/"+device.AssetID).Want(t, http.StatusOK).JSON(t, &shown)
	serial := shown.Specifications["serialNumber"]
	ask := func(text string) {
		t.Helper()
		tab.Go("/policies")
		tab.Click("[data-palette]")
		tab.Waits(`document.querySelector("#palette").open`)
		tab.Press(text)
	}
	ask(serial + "\r")
	tab.Waits(`location.pathname === "/devices/` + device.AssetID + `"`)
	ask(serial)
	tab.Sees("#palette-list", serial)
	ask("limits\r")
	tab.Waits(`location.pathname === "/access/controls"`)
	ask("no such thing\r")
	tab.Sees("#palette-nothing", "Nothing is found")
	tab.Press("\b\b\b\b\b\b\b\b\b\b\b\b\b")
	tab.Waits(`document.querySelector("#palette-nothing").hidden`)
	if bad := tab.Bad(); bad != "" {
		t.Error(bad)
	}
}

// TestFocus_NotBelowTheTopBar: on a phone, what has the focus is clear of the bar that stays at the
// top, on the way back up, too.
func TestFocus_NotBelowTheTopBar(t *testing.T) {
	t.Parallel()
	_, _, tab := enter(t, account.Admin)
	tab.Size(390, 600)
	tab.Go("/access/controls")
	covered := tab.Eval(`(() => {
		const bar = document.querySelector("body > header").getBoundingClientRect();
		document.documentElement.style.scrollBehavior = "auto";
		scrollTo(0, document.body.scrollHeight);
		return [...document.querySelectorAll("#main :is(a, button, input, select)")].reverse().filter(e => {
			e.focus();
			return e === document.activeElement && e.getBoundingClientRect().top < bar.bottom;
		}).map(e => e.name || e.textContent.trim()).join(", ");
	})()`)
	if covered != "" {
		t.Errorf("the bar at the top covers, while they have the focus: %s", covered)
	}
}

// TestEscape_ClosesMenus what hangs open, and leaves a person where they were.
func TestEscape_ClosesMenus(t *testing.T) {
	t.Parallel()
	tenant, replica, tab := enter(t, account.Admin)
	device := tenant.Devices(replica, servertest.FullyManaged(), 1)[0]
	tab.Go("/devices/" + device.AssetID)
	tab.Click("main details[data-popup] summary")
	tab.Waits(`document.querySelector("main details[data-popup]").open`)
	tab.Press(kb.Escape)
	tab.Waits(`!document.querySelector("main details[data-popup]").open`)
	if tab.Eval(`String(document.activeElement.matches("main summary"))`) != "true" {
		t.Error("the focus is lost")
	}
}

// TestActivityHistogram_Brush: dragging over it narrows the time, and the list.
func TestActivityHistogram_Brush(t *testing.T) {
	t.Parallel()
	_, _, tab := enter(t, account.Admin)
	tab.Go("/activity?actor=USER")
	tab.Waits(`document.readyState === "complete"`)
	tab.Eval(`(() => {
		const plot = document.querySelector("[data-brush]"), box = plot.getBoundingClientRect();
		const at = (share, type) => plot.dispatchEvent(new PointerEvent(type,
			{bubbles: true, button: 0, clientX: box.left + share * box.width, clientY: box.top + 5}));
		at(0.25, "pointerdown"); at(0.3, "pointermove"); at(0.5, "pointermove");
		window.seen = document.querySelector("[data-brush-says]").textContent;
		return "" })()`)
	if shown := tab.Eval(`window.seen`); !strings.Contains(shown, "UTC") {
		t.Errorf("while dragging it says %q", shown)
	}
	tab.Eval(`(document.querySelector("[data-brush]").dispatchEvent(new PointerEvent("pointerup", {bubbles: true, button: 0,
		clientX: document.querySelector("[data-brush]").getBoundingClientRect().left + 0.5 * document.querySelector("[data-brush]").getBoundingClientRect().width})), "")`)
	tab.Waits(`location.search.includes("from=")`)
	tab.Sees("main", "Nothing in this range")
	query, err := url.ParseQuery(strings.TrimPrefix(tab.Eval(`location.search`), "?"))
	if err != nil {
		t.Fatal(err)
	}
	var from, to int64
	if _, err := fmt.Sscan(query.Get("from")+" "+query.Get("to"), &from, &to); err != nil {
		t.Fatal(err)
	}
	if days := float64(to-from) / 86_400_000; days < 7.2 || days > 7.8 || query.Get("actor") != "USER" {
		t.Errorf("a quarter of 30 days is %.2f days, of %s", days, query)
	}
	if bad := tab.Bad() + tab.Axe(); bad != "" {
		t.Error(bad)
	}
}

// TestLiveUpdates_Interrupted: the page keeps what it has, and says how old it is.
func TestLiveUpdates_Interrupted(t *testing.T) {
	t.Parallel()
	tenant, replica, tab := enter(t, account.Admin)
	device := tenant.Devices(replica, servertest.FullyManaged(), 1)[0]
	tab.Go("/devices")
	tab.Waits(`document.documentElement.dataset.live === "on"`)
	if tab.Eval(`String(document.querySelector("#interrupted").hidden)`) != "true" {
		t.Error("it says so before anything broke")
	}
	replica.Stop()
	tab.Waits(`!document.querySelector("#interrupted").hidden`)
	tab.Sees("#interrupted", "Live updates broke off")
	tab.Waits(fmt.Sprintf(`document.querySelector("#row-%s") !== null`, device.AssetID))
	if violations := tab.Axe(); violations != "" {
		t.Error(violations)
	}
}

// TestPages_WithoutScripts: every page reads, and one finds one's way also on
// a narrow screen.
func TestPages_WithoutScripts(t *testing.T) {
	t.Parallel()
	tenant, replica, tab := enter(t, account.Admin)
	device := tenant.Devices(replica, servertest.FullyManaged(), 1)[0]
	tab.Scripts(false)
	tab.Size(320, 900)
	for path, want := range map[string]string{"/": "Enrolled", "/devices": "Last seen", "/devices/" + device.AssetID: "Compliance",
		"/devices/" + device.AssetID + "/location": "No place",
		"/policies": "Policy of", "/activity": "signed in", "/access": "Device commands", "/enrol": "Create the code",
		"/settings": "Company name", "/commands": "No command is open"} {
		tab.Go(path)
		tab.Sees("main", want)
		tab.Sees("main", "JavaScript is off")
		if dead :=
			tab.Eval(
				`[...document.querySelectorAll("[data-opens],[data-palette],[data-copy],[data-print],[data-help]")].filter((b) => b.checkVisibility()).map((b) => b.outerHTML).join(" ")`); dead != "" {
			t.Errorf("%s offers what only a script can do: %.300s", path, dead)
		}
		tab.Waits(`document.querySelector("nav a[href='/devices']").getBoundingClientRect().height > 0`)
	}
	tab.Go("/")
	tab.Follow("nav a[href='/devices']")
	tab.Sees("h1", "Devices")
}
