package browser_test

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/test/browser"
	"github.com/musterhq/muster/test/needs"
)

// small finds what is less than 44 pixels high of what a finger presses on the help desk,
// and what runs out of the window.
const small = `[...document.querySelectorAll("main .btn, main summary, main input:not([type=hidden]), main li > a")]
	.filter((e) => e.checkVisibility() && e.getClientRects().length
		&& e.getBoundingClientRect().height < 44).map((e) => e.outerHTML.slice(0, 120))
	.concat(document.documentElement.scrollWidth > innerWidth ? ["runs out of the window"] : []).join("\n")`

// On a phone the help desk is one press away. A scanner types a serial number and presses
// Enter; a device found is locked in two more presses, one more opens the reason. axe finds nothing.
func TestHelpDesk_OnAPhone(t *testing.T) {
	t.Parallel()
	needs.Chromium().Of(t)
	demo := browser.StartUsedDemo(t)
	tab := browser.Open(t, demo.URL)
	tab.SignIn(demo.Email, demo.Password)
	tab.Go("/devices?q=pixel&status=ACTIVE")
	tab.Follow("a[data-open]")
	serial := tab.Eval(
		`[...document.querySelectorAll("dt")].find((e) => e.textContent === "Serial number").nextElementSibling.textContent.trim()`)
	looks := func(name string) {
		t.Helper()
		if dir := os.Getenv("MUSTER_SCREENSHOTS"); dir != "" {
			if err := os.WriteFile(filepath.Join(dir, name+".png"), tab.Shot(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if bad := tab.Bad() + tab.Axe() + tab.Eval(small); bad != "" {
			t.Errorf("%s: %s", name, bad)
		}
	}
	for _, c := range []struct {
		name, way string
		width     int64
	}{{"wide", "nav a[href='/helpdesk']", 1440}, {"phone", "header > div > a[href='/helpdesk']", 390}} {
		tab.Size(c.width, 844)
		end := tab.Within(4, "/")
		tab.Follow(c.way)
		tab.Waits(`document.activeElement?.id === "desk-serial"`)
		looks("helpdesk-" + c.name)
		tab.Press(serial + "\r")
		tab.Sees("#card", serial)
		tab.Waits(`document.activeElement?.id === "desk-serial" && document.activeElement.value === ""`)
		looks("helpdesk-card-" + c.name)
		tab.Click("[data-opens=lock_device]")
		tab.Click("#lock_device summary")
		looks("helpdesk-lock-" + c.name)
		tab.Follow("#lock_device button[type=submit]")
		tab.Sees("#card [role=status]", "Lock")
		end("lock a device at " + c.name)
		tab.Go("/helpdesk?q=pixel")
		looks("helpdesk-list-" + c.name)
	}
}

// A command that is refused leaves its dialog open, with the reason and what was typed, on the device's page and on the help
// desk; it can be sent from there.
func TestCommand_RefusedDialogStaysOpen(t *testing.T) {
	t.Parallel()
	needs.Chromium().Of(t)
	demo := browser.StartUsedDemo(t)
	tab := browser.Open(t, demo.URL)
	tab.SignIn(demo.Email, demo.Password)
	tab.Go("/devices?q=pixel&status=ACTIVE")
	tab.Follow("a[data-open]")
	device := tab.Path()
	id := path.Base(device)
	for n, at := range []string{"/helpdesk?id=" + id, device, "/helpdesk?id=" + id, device} {
		tab.Size([]int64{1440, 390}[n/2], 844)
		tab.Go(at)
		tab.Eval(`document.querySelector("#more")?.setAttribute("open", "") ?? ""`)
		tab.Click("[data-opens=start_lost_mode]")
		tab.Eval(`document.querySelector("#start_lost_mode-message").value = "Please bring me home", ""`)
		tab.Eval(`(() => { const phone = document.querySelector("#start_lost_mode-phoneNumber");
			phone.removeAttribute("maxlength"); phone.value = "9".repeat(9000); return ""; })()`)
		tab.Follow("#start_lost_mode button[type=submit]")
		tab.Waits(`document.querySelector("#start_lost_mode").open`)
		tab.Sees("#start_lost_mode [data-tone=bad]", "Phone")
		if dir := os.Getenv("MUSTER_SCREENSHOTS"); dir != "" {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("refused-", n, ".png")), tab.Shot(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got := tab.Eval(`document.querySelector("#start_lost_mode-message").value`); got != "Please bring me home" {
			t.Errorf("%s: the message is %q", at, got)
		}
		if got := tab.Eval(`location.pathname + location.search`); got != at {
			t.Errorf("the page that can be loaded again is %s, want %s", got, at)
		}
		if bad := tab.Bad() + tab.Axe(); bad != "" {
			t.Errorf("%s: %s", at, bad)
		}
	}
	tab.Eval(`document.querySelector("#start_lost_mode-phoneNumber").value = "555", ""`)
	tab.Follow("#start_lost_mode button[type=submit]")
	tab.Waits(`!document.querySelector("dialog[open]")`)
	if got := tab.Path(); got != device {
		t.Errorf("after it was sent, the page is %s, want %s", got, device)
	}
}

// The card offers the end of lost mode when a colleague starts it while the page is open: its button opens the dialog.
func TestHelpDesk_ButtonThatBecameLive(t *testing.T) {
	t.Parallel()
	tenant, replica, tab := enter(t, account.Admin)
	device := tenant.Devices(replica, servertest.FullyManaged(), 1)[0]
	tab.Go("/helpdesk?id=" + device.AssetID)
	tab.Waits(`document.documentElement.dataset.live === "on"`)
	tab.Eval(`(window.kept = "yes", "")`)
	tenant.Client(replica, access.All).Post("/assets/"+device.AssetID+"/commands/lost-mode",
		map[string]any{"message": "Call us", "phoneNumber": "555"}).Want(t, 200)
	tab.Click("#card [data-opens=stop_lost_mode]")
	tab.Waits(`document.querySelector("#stop_lost_mode").open`)
	if got := tab.Eval(`window.kept ?? "loaded again"`); got != "yes" {
		t.Errorf("the page is %s", got)
	}
}

// A button whose dialog the page does not have, as the person gets the right while the page is open, loads the page again
// and opens the dialog; on the help desk and on the device's page.
func TestCommand_ButtonWithoutDialogLoadsThePage(t *testing.T) {
	t.Parallel()
	tenant, replica, person, tab := visitor(t, account.Viewer)
	device := tenant.Devices(replica, servertest.FullyManaged(), 1)[0]
	for _, at := range []string{"/helpdesk?id=" + device.AssetID, "/devices/" + device.AssetID} {
		person.Change(func(u *account.User) { u.Rights &^= account.CommandDevices })
		tab.Go(at)
		tab.Waits(`document.documentElement.dataset.live === "on"`)
		if n := tab.Eval(`String(document.querySelectorAll("#start_lost_mode, [data-opens=start_lost_mode]").length)`); n != "0" {
			t.Errorf("%s: without the right there are %s buttons and dialogs, want 0", at, n)
		}
		person.Change(func(u *account.User) { u.Rights |= account.CommandDevices })
		tab.Eval(`(portal.refresh(null), "")`)
		tab.Waits(`document.querySelector("[data-opens=start_lost_mode]") !== null`)
		tab.Eval(`document.querySelector("#more")?.setAttribute("open", "") ?? ""`)
		tab.Click("[data-opens=start_lost_mode]")
		tab.Waits(`document.querySelector("#start_lost_mode")?.open === true`)
		if got := tab.Eval(`location.pathname + location.search`); got != at {
			t.Errorf("the page is %s, want %s", got, at)
		}
		if bad := tab.Bad(); bad != "" {
			t.Errorf("%s: %s", at, bad)
		}
	}
}

// A dialog that waits for its page to be loaded again opens on no other page, such as another device's after a sign-in.
func TestCommand_DialogOpensAtItsOwnAddress(t *testing.T) {
	t.Parallel()
	tenant, replica, tab := enter(t, account.Admin)
	device := tenant.Devices(replica, servertest.FullyManaged(), 1)[0]
	waits := func(at string) {
		t.Helper()
		tab.Go(at)
		tab.Eval(`(addEventListener("pagehide", () => sessionStorage.setItem("waiting", sessionStorage.getItem("to-open"))),
			document.querySelector("#wipe_device")?.remove(), document.querySelector("[data-palette]").dataset.opens = "wipe_device")`)
		tab.Follow("[data-palette]")
		tab.Eval(`(sessionStorage.setItem("to-open", sessionStorage.getItem("waiting")), "")`)
	}
	page := "/devices/" + device.AssetID
	for at, want := range map[string]string{"/devices": "false null", page: "true null"} {
		waits(at)
		tab.Go(page)
		got := tab.Eval(`document.querySelector("#wipe_device").open + " " + sessionStorage.getItem("to-open")`)
		if got != want {
			t.Errorf("asked for at %s, on %s the dialog is open and kept: %s, want %s", at, page, got, want)
		}
	}
}
