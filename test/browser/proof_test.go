package browser_test

import (
	"fmt"
	"testing"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/test/browser"
	"github.com/musterhq/muster/test/needs"
)

// A device is wiped in four clicks from the overview, and its name is typed once: with a
// proof that is fresh or not, by passkey or password, in a wide window and a narrow one.
func TestWipe_FourClicks(t *testing.T) {
	t.Parallel()
	needs.Chromium().Of(t)
	env := servertest.New(t)
	of, replica := env.NewTenant("acme"), env.Start(servertest.OnLocalhost(t))
	s := tenant{env, replica, env.Browser(of.Company, account.Admin).User, browser.Open(t, replica.PublicURL())}
	tab := s.tab
	tab.Authenticator()
	tab.SignIn(s.admin.Email, servertest.Password)
	for _, way := range []string{"fresh", "password", "passkey"} {
		if way == "passkey" {
			tab.Forget()
			tab.SignIn(s.admin.Email, servertest.Password) // what was proved above has aged
			tab.Go("/account/passkeys/new")
			tab.Type("#name", "My key")
			tab.Click("form[data-passkey=create] button[type=submit]")
			tab.Sees("#main", "Recovery codes")
		}
		for _, width := range []int64{1440, 390} {
			t.Run(fmt.Sprintf("%s %d", way, width), func(t *testing.T) {
				s := s
				s.tab = s.tab.For(t)
				device := of.Devices(replica, servertest.FullyManaged(), 1)[0]
				s.tab.Size(width, 900)
				if way != "fresh" {
					s.env.Advance(account.ReauthFresh * 2)
				}
				s.wipes(t, device.AssetID, way)
			})
		}
	}
}

func (s tenant) wipes(t *testing.T, id, way string) {
	t.Helper()
	tab := s.tab
	end := tab.Within(4, "/")
	tab.Follow("#overview a[href='/devices?status=ENROLLED']")
	tab.Follow("a[data-open][href='/devices/" + id + "']")
	tab.Click("[data-opens=wipe_device]")
	if way == "password" {
		tab.Sees("#wipe_device", "Your password")
		tab.Type("#wipe_device-password", "not the password")
	}
	tab.Type("#wipe_device-confirm", tab.Text("h1"))
	if way == "password" { // a wrong one is reported in the dialog, and costs nothing that was typed
		tab.Press("\r")
		tab.Sees("#wipe_device [role=alert]", "did not prove it")
		tab.Size(390, 900)
		tab.Waits(`document.getAnimations().length === 0`)
		s.sound(t, "wipe-wrong-password")
		tab.Type("#wipe_device-password", servertest.Password)
	}
	tab.Click("#wipe_device form[data-proof] button[type=submit]")
	tab.Sees("#head", "Deleted")
	end("a wipe")
	if wipes :=
		tab.Eval(
			`fetch(location.pathname + "/commands").then((r) => r.text()).then((text) => String(new DOMParser().parseFromString(text, "text/html").querySelectorAll("#body details[id^=steps-]").length))`); wipes != "1" {
		t.Errorf("%s commands are in the history, want 1", wipes)
	}
}

// A passkey that the person does not give at once is asked for in the dialog, which keeps
// what was typed; closed, it asks again.
func TestWipe_PasskeyInTheDialog(t *testing.T) {
	t.Parallel()
	d := newDeciding(t)
	tab := d.tab
	tab.Go("/devices/" + d.device.AssetID)
	d.env.Advance(account.ReauthFresh * 2)
	name := tab.Text("h1")
	tab.Agrees(false)
	for range 2 {
		tab.Click("[data-opens=wipe_device]")
		tab.Type("#wipe_device-confirm", name)
		tab.Click("#wipe_device form[data-proof] button[type=submit]")
		tab.Sees("#wipe_device", "Nothing was confirmed")
		d.looks(t, "wipe-passkey")
		tab.Click("#wipe_device form[data-proof] [data-close]")
		tab.Waits(`document.querySelector("#wipe_device [data-prove]").hidden`)
	}
	tab.Agrees(true)
	tab.Click("[data-opens=wipe_device]")
	tab.Click("#wipe_device form[data-proof] button[type=submit]")
	tab.Sees("#head", "Deleted")
}

// A form that waits for its proof is sent once, however often its button is pressed.
func TestProof_CarriedOutOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t, servertest.Everything())
	tab := s.tab
	tab.SignIn(s.admin.Email, servertest.Password)
	tab.Go("/access/keys/new")
	tab.Type("#name", "once")
	tab.Click("input[value=DEVICES_READ]")
	tab.Click("input[value=DEVICES_COMMAND]")
	tab.Eval(
		`(() => { window.sent = 0; addEventListener("submit", (e) => { if (!e.defaultPrevented) { e.preventDefault(); window.sent++; } });
		const form = document.querySelector("form[action='/access/keys']"), button = form.querySelector("button[type=submit]");
		form.requestSubmit(button); form.requestSubmit(button); setTimeout(() => form.requestSubmit(button), 300); return ""; })()`)
	tab.Waits(`window.sent > 0`)
	if sent := tab.Eval(`new Promise((done) => setTimeout(() => done(String(window.sent)), 600))`); sent != "1" {
		t.Errorf("the form was sent %s times", sent)
	}
}
