package browser_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterhq/muster/test/browser"
	"github.com/musterhq/muster/test/needs"
)

// screen is a page that is looked at: its picture is docs/screenshots/<name>.webp (make screenshots).
type screen struct {
	name string
	// open brings the tab to the page; nil: path is enough.
	path string
	open func(t *testing.T, tab *browser.Tab, d browser.Demo)
}

// screens are all the portal's pages. Add a line for each page of yours.
func screens() []screen {
	return []screen{
		{name: "webhook", open: onWebhook}, // first: making one takes a fresh proof of identity
		{name: "overview", path: "/"},
		{name: "devices", path: "/devices"},
		{name: "devices-search", path: "/devices?q=galaxy&status=ACTIVE"},
		{name: "devices-none", path: "/devices?q=nothing-like-it"},
		{name: "devices-selected", open: func(t *testing.T, tab *browser.Tab, _ browser.Demo) {
			tab.Go("/devices?density=compact")
			tab.Click("tr[data-row]:nth-child(2) input[name=id]")
			tab.Click("tr[data-row]:nth-child(3) input[name=id]")
		}},
		{name: "devices-quick", open: func(t *testing.T, tab *browser.Tab, _ browser.Demo) {
			tab.Go("/devices")
			tab.Click("tr[data-row]:nth-child(2) [data-opens=drawer]")
			tab.Sees("#drawer-body", "Latest commands")
		}},
		{name: "devices-import", path: "/devices/import"},
		{name: "devices-import-preview", open: onImport("Device name;Serial number;Assigned to;Tags;Cost center\nFront desk;DE-1001;Ada " +
			"Lovelace;store-12;4711\nMeeting room;DE-1002;;store-12;4712\n")},
		{name: "devices-import-errors", open: onImport("identification,serialNumber\nFront desk,DE-1001\n,\nMeeting room,de-1001\n")},
		{name: "commands-open", path: "/commands"},
		{name: "device", open: func(t *testing.T, tab *browser.Tab, _ browser.Demo) { tab.OpenDevice("Pixel 8") }},
		{name: "device-commands", open: func(t *testing.T, tab *browser.Tab, _ browser.Demo) {
			tab.OpenDevice("Pixel 8")
			tab.Go(tab.Path() + "/commands")
		}},
		{name: "device-location", open: func(t *testing.T, tab *browser.Tab, _ browser.Demo) {
			tab.OpenDevice("Pixel 8")
			tab.Go(tab.Path() + "/location")
		}},
		{name: "device-apps", open: func(t *testing.T, tab *browser.Tab, _ browser.Demo) {
			tab.OpenDevice("Pixel 8")
			tab.Go(tab.Path() + "/apps")
		}},
		{name: "device-policy", open: func(t *testing.T, tab *browser.Tab, _ browser.Demo) {
			tab.OpenDevice("Pixel 8")
			tab.Go(tab.Path() + "/policy")
		}},
		{name: "device-activity", open: func(t *testing.T, tab *browser.Tab, _ browser.Demo) {
			tab.OpenDevice("Pixel 8")
			tab.Go(tab.Path() + "/activity")
		}},
		{name: "device-wipe", open: func(t *testing.T, tab *browser.Tab, _ browser.Demo) {
			tab.OpenDevice("Pixel 8")
			tab.Click("[data-opens=wipe_device]")
		}},
		{name: "bulk", open: func(t *testing.T, tab *browser.Tab, _ browser.Demo) {
			tab.Go("/devices?size=50")
			tab.Click("[data-all]")
			tab.Follow("button[value=lock]")
		}},
		{name: "jobs", path: "/jobs"},
		{name: "job", open: func(t *testing.T, tab *browser.Tab, _ browser.Demo) {
			tab.Go("/devices?size=50")
			tab.Click("[data-all]")
			tab.Follow("button[value=tags]")
			tab.Type("#bulk-add", "Aisle 3")
			tab.Follow("#plan button[type=submit]")
		}},
		{name: "enrol", path: "/enrol"},
		{name: "enrol-codes", open: func(t *testing.T, tab *browser.Tab, _ browser.Demo) {
			tab.Go("/enrol")
			tab.Follow("form[action='/enrol'] button[type=submit]")
			tab.Go("/enrol/codes")
		}},
		{name: "enrol-code", open: func(t *testing.T, tab *browser.Tab, _ browser.Demo) {
			tab.Go("/enrol")
			tab.Follow("form[action='/enrol'] button[type=submit]")
			tab.Sees("#joined", "waiting")
		}},
		{name: "palette", open: func(t *testing.T, tab *browser.Tab, _ browser.Demo) {
			tab.Go("/devices")
			tab.Click("[data-palette]")
			tab.Type("#palette-input", "pixel")
			tab.Sees("#palette-list", "Pixel 8")
		}},
		{name: "policies", path: "/policies"},
		{name: "policy", open: onPolicy("")},
		{name: "policy-revisions", open: onPolicy("/revisions")},
		{name: "policy-devices", open: onPolicy("/devices")},
		{name: "policy-json", open: onPolicy("/json")},
		{name: "proposals", path: "/proposals"},
		{name: "proposal", open: onProposal},
		{name: "approval", open: onApproval},
		{name: "access", path: "/access"},
		{name: "key-new", path: "/access/keys/new"},
		{name: "computer",
			path: "/access/computer?name=laptop&preset=help-desk&state=s&redirect=http%3A%2F%2F127.0.0.1%3A4711%2F&challenge=" +
				strings.Repeat("a", 43)},
		{name: "controls", path: "/access/controls"},
		{name: "authorizations", path: "/authorizations"},
		{name: "authorization", open: onAuthorization},
		{name: "needs-you", path: "/needs-you"},
		{name: "device-wiped", open: onWiped},
		{name: "activity", path: "/activity"},
		{name: "activity-details", open: func(t *testing.T, tab *browser.Tab, _ browser.Demo) {
			tab.Go("/activity?area=policy")
			tab.Click("tbody summary")
			tab.Waits(`document.querySelector("tbody details[open]") !== null`)
		}},
		{name: "activity-empty", path: "/activity?outcome=UNCONFIRMED&area=asset"},
		{name: "users", path: "/users"},
		{name: "user-new", path: "/users/new"},
		{name: "account", path: "/account"},
		{name: "prove", path: "/account/prove?next=%2Faccess"},
		{name: "settings", path: "/settings"},
		{name: "settings-signin", path: "/settings/signin"},
		{name: "settings-platform", path: "/settings/platform"},
		{name: "settings-webhooks", path: "/settings/webhooks"},
		{name: "webhook-new", path: "/settings/webhooks/new"},
		{name: "settings-system", path: "/settings/system"},
		{name: "helpdesk", path: "/helpdesk"},
		{name: "setup", path: "/setup"},
		{name: "invitation", path: "/invitation"},
		{name: "not-found", path: "/nowhere"},
	}
}

// onWebhook makes a webhook whose receiver cannot be reached, once, and sends it a test.
func onWebhook(t *testing.T, tab *browser.Tab, _ browser.Demo) {
	t.Helper()
	tab.Go("/settings/webhooks")
	if tab.Eval(`String(document.querySelector("a[data-open]") === null)`) == "false" {
		tab.Follow("a[data-open]")
		return
	}
	tab.Go("/settings/webhooks/new")
	tab.Type("#url", "https://192.0.2.1/hook")
	tab.Click("input[value='command.failed']")
	tab.Follow("form[data-proof] button[type=submit]")
	tab.Sees("h1", "The webhook's secret")
	tab.Follow("main a.btn")
	tab.Follow("form[action$='/test'] button")
}

// onWiped wipes a device, once, and stays on its page.
func onWiped(t *testing.T, tab *browser.Tab, demo browser.Demo) {
	t.Helper()
	tab.Go("/devices?status=DELETED")
	if tab.Eval(`String(document.querySelector("a[data-open]") === null)`) == "false" {
		tab.Follow("a[data-open]")
		return
	}
	tab.OpenDevice("Tab M10")
	tab.Click("[data-opens=wipe_device]")
	tab.Type("#wipe_device-confirm", tab.Text("h1"))
	if password := "#wipe_device input[type=password]"; tab.Eval(`String(document.querySelector("`+password+
		`")?.checkVisibility() ?? false)`) == "true" {
		tab.Type(password, demo.Password) // the last proof was long ago
	}
	tab.Click("#wipe_device form[data-proof] button[type=submit]")
	tab.Sees("#head", "Deleted")
}

// untidy finds controls without a look of their own, and times that run into the
// words around them.
const untidy = `[...document.querySelectorAll('[data-variant=""]')].map((e) => "no variant: " + e.outerHTML.slice(0, 120))
	.concat((document.body.innerText.match(/[a-z](just now|\d+ (s|min|h) ago)|( ago|just now)[a-z]/g) ?? []).map((m) => "runs together: "
		+ m))
	.concat([...document.querySelectorAll("main time")].filter((e) => {
		const before = e.previousElementSibling?.getBoundingClientRect(), here = e.getBoundingClientRect();
		return before?.width && e.previousSibling === e.previousElementSibling && Math.abs(before.bottom - here.bottom) < 8
			&& Math.abs(here.left - before.right) < 2;
	}).map((e) => "runs together: " + e.parentElement.outerHTML.slice(0, 200))).join("\n")`

// weightOf says that a page and all that it loads come to more than 150 kB on the wire.
const weightOf = `(() => {
	const all = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")];
	const sum = all.reduce((n, e) => n + e.encodedBodySize, 0);
	return sum > 150_000 ? "the page weighs " + sum + " bytes: " + all.map((e) => e.name + " " + e.encodedBodySize).join(", ") : "";
})()`

// TestPages opens every page: axe finds nothing in a wide window and in a narrow one, and no
// contrast that is too low in either theme, the policy refuses nothing, nothing throws. With
// MUSTER_SCREENSHOTS=dir it keeps pictures.
func TestPages(t *testing.T) {
	t.Parallel()
	needs.Chromium().Of(t)
	demo := browser.StartUsedDemo(t)
	tab := browser.Open(t, demo.URL)
	tab.SignIn(demo.Email, demo.Password)
	for _, s := range screens() {
		t.Run(s.name, func(t *testing.T) {
			tab := tab.For(t)
			tab.Theme("light")
			if s.open != nil {
				s.open(t, tab, demo)
			} else {
				tab.Go(s.path)
			}
			tab.Waits(
				`document.readyState === "complete" && !document.querySelector("[aria-busy=true]") && document.fonts.status === "loaded"`)
			keep(t, tab, s.name)
			if bad := tab.Eval(untidy); bad != "" {
				t.Error(bad)
			}
			if weight := tab.Eval(weightOf); weight != "" {
				t.Error(weight)
			}
			if violations := tab.Axe(); violations != "" {
				t.Error(violations)
			}
			narrow(t, tab)
			dark(t, tab, s.name)
			printed(t, tab)
			if bad := tab.Bad(); bad != "" {
				t.Error(bad)
			}
		})
	}
}

// keep writes a picture, if pictures are asked for.
func keep(t *testing.T, tab *browser.Tab, name string) {
	t.Helper()
	if dir := os.Getenv("MUSTER_SCREENSHOTS"); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, name+".png"), tab.Shot(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// dark fails the test if the contrast of colors is too low in the dark theme. Nothing else
// of the page differs from the light one. It looks at a window as wide as a phone, so that what
// is only there is looked at in one theme, as is what is only in a wide one.
func dark(t *testing.T, tab *browser.Tab, name string) {
	t.Helper()
	tab.Theme("dark")
	tab.Waits(`document.documentElement.matches(".dark")`)
	keep(t, tab, name+"-dark")
	tab.Size(390, 844)
	defer tab.Size(1440, 900)
	if violations := tab.AxeContrast(); violations != "" {
		t.Errorf("dark: %s", violations)
	}
}

// printed fails the test if the page is not printed light, or with what is only there to be
// pressed.
func printed(t *testing.T, tab *browser.Tab) {
	t.Helper()
	defer tab.Theme("light")
	tab.Print()
	tab.Waits(`!document.documentElement.matches(".dark")`)
	tab.Size(1050, 1400) // a sheet of A4, at three quarters
	defer tab.Size(1440, 900)
	if wrong := tab.Eval(wrongOnPaper); wrong != "" {
		t.Errorf("printed: %s", wrong)
	}
}

// wrongOnPaper is what a printed page must not have.
const wrongOnPaper = `(() => {
	const wrong = [...document.querySelectorAll("body > header, main .btn, main input, noscript *")].filter((e) => e.checkVisibility()
		&& e.getClientRects().length);
	const cut = [...document.querySelectorAll("main table")].filter((e) => e.checkVisibility()
		&& e.getBoundingClientRect().right > innerWidth);
	const ago = [...document.querySelectorAll("main time[data-since]")].filter((e) => e.checkVisibility()
		&& !getComputedStyle(e, "::after").content.includes("UTC"));
	return wrong.concat(cut, ago).map((e) => e.outerHTML.slice(0, 120)).join("\n");
})()`

// narrow fails the test if axe finds something in a window as wide as a phone, or if the
// page runs out of a window of 320 pixels.
func narrow(t *testing.T, tab *browser.Tab) {
	t.Helper()
	defer tab.Size(1440, 900)
	tab.Size(390, 844)
	if violations := tab.AxeLayout(); violations != "" {
		t.Errorf("at 390 pixels: %s", violations)
	}
	tab.Size(720, 450) // a window of 1440 pixels at 200 %
	if wide := tab.Eval(`String(document.documentElement.scrollWidth)`); wide != "720" {
		t.Errorf("at 200 %% the page is %s pixels wide", wide)
	}
	tab.Size(320, 900)
	if wide := tab.Eval(`String(document.documentElement.scrollWidth)`); wide != "320" {
		t.Errorf("the page is %s pixels wide: %s", wide,
			tab.Eval(
				`[...document.querySelectorAll("main *")].filter((e) => e.getBoundingClientRect().right > 321 && !e.closest("[tabindex='0'], nav, pre, svg, .why")).slice(0, 5).map((e) => e.outerHTML.slice(0, 160)).join("\n")`))
	}
}
