package browser_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/account"
	companies "github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/test/browser"
)

// beforeStop puts the focus a few stops of the keyboard before what a selector finds, unless that has it. Where the
// focus cannot be there, as outside an open dialog, it stays where it is.
const beforeStop = `(() => {
	const to = document.querySelector(%q);
	const stops = [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']")].filter((e) =>
		e === to || e.checkVisibility() && !e.disabled && e.tabIndex >= 0 && (e.type !== "radio" || e.checked));
	if (to !== document.activeElement) {
		stops[stops.indexOf(to) - 4]?.focus();
	}
	return "";
})()`

// reaches moves the focus with Tab to what a selector finds, from a few stops before:
// TestKeyboard_ReachesEverything goes all the way.
func reaches(tab *browser.Tab, selector string) {
	tab.TB.Helper()
	tab.Eval(fmt.Sprintf(beforeStop, selector))
	for range 300 {
		if tab.Eval(fmt.Sprintf(`String(document.activeElement?.matches(%q))`, selector)) == "true" {
			return
		}
		tab.Press("\t")
	}
	tab.TB.Fatalf("the keyboard does not reach %s", selector)
}

// What ends or allows something is done with the keyboard alone, the passkey included: a
// wipe, a gate, an authorization, a confirmation, a stop and its end.
func TestKeyboard_EveryDecision(t *testing.T) {
	t.Parallel()
	d := newDeciding(t)
	tab := d.tab
	press := func(selector string) {
		t.Helper()
		reaches(tab, selector)
		tab.Press("\r")
	}
	d.asks(t, http.StatusForbidden, "/assets/"+d.device.AssetID+"/commands/reset-screen-lock", nil)
	tab.Go("/")
	press("#needs-you li a.btn")
	tab.Sees("#decide", "Authorize")
	press(approves + "button[type=submit]")
	tab.Sees("#notices", "Authorized")

	ada := d.env.Browser(d.of.Company, account.Admin).User
	if _, err := d.env.DB().ChangeControls(t.Context(), d.of.Company.ID, ada, func(c *companies.Company) {
		c.Settings.Controls.DestructiveLimit.Devices += 5
	}); err != nil {
		t.Fatal(err)
	}
	tab.Go("/")
	press("#needs-you li a.btn")
	press(approves + "button[type=submit]")
	tab.Sees("#notices", "Confirmed")

	tab.Go("/access")
	press("#gate-policyChanges button")
	tab.Sees("#notices", "Policy changes: off")
	d.env.Advance(2 * account.ReauthFresh)
	press("#gate-policyChanges button")
	tab.Sees("#notices", "Policy changes: on")

	tab.Go("/access/controls")
	reaches(tab, "#reason")
	tab.Press("a stolen key\r")
	tab.Sees("#notices", "Changes are stopped")
	press("form[action='/access/controls/resume'] button")
	tab.Sees("#controls", "Resume asked")
	d.env.CLI(new(any), "company", "resume", "--company", "acme")
	d.env.Advance(2 * time.Second)

	tab.Go("/devices/" + d.device.AssetID)
	name := tab.Text("h1")
	press("[data-opens=wipe_device]")
	reaches(tab, "#wipe_device-confirm")
	tab.Press(name)
	press("#wipe_device form[data-proof] button[type=submit]")
	tab.Sees("#head", "Deleted")
}

// On a network that takes seconds for each answer, a form shows that it is busy and is sent
// once; the way back sends nothing again.
func TestForms_SlowNetwork(t *testing.T) {
	t.Parallel()
	d := newDeciding(t)
	tab := d.tab
	tab.Go("/devices/" + d.device.AssetID)
	tab.Slow(1500 * time.Millisecond)
	lock := "form[action$='/commands/lock_device'] button"
	twice := `(() => { const button = document.querySelector("` + lock +
		`"); button.click(); button.click(); return button.ariaBusy ?? ""; })()`
	if busy := tab.Eval(twice); busy != "true" {
		t.Errorf("busy: %q", busy)
	}
	tab.Sees("#latest", "Lock")
	tab.Slow(0)
	tab.Eval(`(history.back(), "")`)
	tab.Sees("#latest", "Lock")
	if n := len(d.client.History(d.device.AssetID)); n != 1 {
		t.Errorf("%d commands were sent", n)
	}
}
