package browser_test

import (
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/surface/portal/frame"
	"github.com/musterhq/muster/test/browser"
)

// sends is the button of the dialog that starts lost mode.
const sends = "#start_lost_mode form button[type=submit]"

// typesLost opens the dialog of a device that starts lost mode, and types a message.
func typesLost(tab *browser.Tab, device, message string) {
	tab.TB.Helper()
	tab.Go(frame.HelpDeskDevicePath(device))
	tab.Eval(`(portal.open("start_lost_mode"), "")`)
	tab.Type("#start_lost_mode-message", message)
}

// signsInBeside signs a person in in another window, where the dialog of the tab leads.
func signsInBeside(tab *browser.Tab, email string) {
	tab.TB.Helper()
	tab.Waits(`document.querySelector("#signed-out[open] [data-sign-in][target=_blank]") !== null`)
	window := tab.Another()
	window.Go(tab.Eval(`document.querySelector("[data-sign-in]").getAttribute("href")`))
	window.Type("#email", email)
	window.Type("#password", servertest.Password)
	window.Follow("form[action='/signin'] button[type=submit]")
}

// A form that is sent after its session ended keeps what was typed, and is sent once its
// person has signed in in another window. The dialog that says so can be closed.
func TestSession_EndedFormGoesOn(t *testing.T) {
	t.Parallel()
	tenant, replica, person, tab := visitor(t, account.Admin)
	device := tenant.Devices(replica, servertest.FullyManaged(), 1)[0]
	typesLost(tab, device.AssetID, "Call us")
	tab.Forget()
	for _, way := range []string{"Close", "Escape"} {
		tab.Click(sends)
		tab.Waits(`document.querySelector("#signed-out").open`)
		if got := tab.Eval(`document.querySelector("#start_lost_mode-message").value`); got != "Call us" {
			t.Errorf("the message is %q", got)
		}
		if way == "Close" {
			tab.Click("#signed-out [data-close]")
		} else {
			tab.Press("\x1b")
		}
		tab.Waits(`!document.querySelector("#signed-out").open`)
	}
	tab.Click(sends)
	signsInBeside(tab, person.User.Email)
	tab.Sees("#card [role=status]", "Start lost mode")
	sent := tenant.Client(replica, access.All).History(device.AssetID)
	if len(sent) != 1 {
		t.Errorf("%d commands were sent, want 1", len(sent))
	}
}

// What one person typed is never sent as another, who signed in in the meantime: the page is
// loaded again.
func TestSession_AnotherPersonSignsIn(t *testing.T) {
	t.Parallel()
	tenant, replica, person, tab := visitor(t, account.Admin)
	other := tenant.Env.Browser(tenant.Company, account.Admin).User
	device := tenant.Devices(replica, servertest.FullyManaged(), 1)[0]
	for name, sends := range map[string]func(){
		"from the dialog": func() {
			typesLost(tab, device.AssetID, "Call us")
			tab.Forget()
			tab.Click(sends)
			signsInBeside(tab, other.Email)
		},
		"in another tab": func() {
			typesLost(tab, device.AssetID, "Call us")
			tab.Forget()
			tab.Another().SignIn(other.Email, servertest.Password)
			tab.Click(sends)
		},
		"a form that is sent with a file": func() {
			tab.Go(frame.ImportPath)
			chooses(t, tab, "name\nA new device\n")
			tab.Forget()
			tab.Another().SignIn(other.Email, servertest.Password)
			tab.Eval(`(document.querySelector("#import-plan").textContent = "old", "")`)
			tab.Click("button[value=preview]")
		},
	} {
		tab.Forget()
		tab.SignIn(person.User.Email, servertest.Password)
		t.Run(name, func(t *testing.T) {
			sends()
			tab := tab.For(t)
			tab.Waits(`document.documentElement.dataset.user === "` + other.ID + `"`)
			if text := tab.Text("#import-plan"); text != "" {
				t.Errorf("the import shows %q", text)
			}
		})
	}
	if sent := tenant.Client(replica, access.All).History(device.AssetID); len(sent) != 0 {
		t.Errorf("%d commands were sent as another person", len(sent))
	}
}
