package browser_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/account"
	companies "github.com/musterhq/muster/internal/company"
)

// Each decision takes three clicks from the overview, in a wide window and a narrow one.
func TestDecisions_ThreeClicks(t *testing.T) {
	t.Parallel()
	d := newDeciding(t)
	item := "#needs-you li a.btn"
	for _, width := range []int64{1440, 390} {
		d.tab.Size(width, 844)
		d.env.Advance(2 * time.Minute) // the key's calls are counted by the minute
		task := func(name, notice string, asks func(), decides ...string) {
			t.Helper()
			asks()
			end := d.tab.Within(3, "/")
			d.tab.Follow(item)
			if name == "approve" {
				d.tab.Type("#confirmation", d.of.Policy.Name)
			}
			if name == "decline" {
				d.tab.Type("#reason", "not now")
			}
			for _, one := range decides {
				d.tab.Click(one)
			}
			d.tab.Sees("#notices", notice)
			end(fmt.Sprintf("%s at %d pixels", name, width))
		}
		command := func(name string) func() {
			return func() {
				d.client.Post("/assets/"+d.device.AssetID+"/commands/"+name, map[string]any{}).Want(t, http.StatusForbidden)
			}
		}
		task("approve", "Approved", func() { d.proposes(t, "FACTORY_RESET") }, approves+"button[type=submit]")
		task("decline", "Declined", func() { d.proposes(t, "CONFIGURE_WIFI") }, declines+"button[type=submit]")
		task("authorize", "Authorized", command("reset-screen-lock"), approves+"button[type=submit]")
		d.client.Post("/assets/"+d.device.AssetID+"/commands/reset-screen-lock", map[string]any{}).Want(t, http.StatusOK)
		task("confirm", "Confirmed", func() {
			ada := d.env.Browser(d.of.Company, account.Admin).User
			loosen := func(c *companies.Company) { c.Settings.Controls.DestructiveLimit.Devices += 5 }
			if waiting, err := d.env.DB().ChangeControls(t.Context(), d.of.Company.ID, ada, loosen); err != nil || len(waiting) != 1 {
				t.Fatalf("%v, %v", waiting, err)
			}
		}, approves+"button[type=submit]")
	}
}

// A change is approved and a command declined with the keyboard alone.
func TestDecisions_WithTheKeyboard(t *testing.T) {
	t.Parallel()
	d := newDeciding(t)
	d.proposes(t, "FACTORY_RESET")
	d.tab.Go("/")
	reaches(d.tab, "#needs-you li a.btn")
	d.tab.Press("\r")
	d.tab.Sees("#decide", "Approve with a passkey")
	reaches(d.tab, "#confirmation")
	d.tab.Press(d.of.Policy.Name)
	reaches(d.tab, approves+"button[type=submit]")
	d.tab.Press("\r")
	d.tab.Sees("#notices", "Approved")
	d.asks(t, http.StatusForbidden, "/assets/"+d.device.AssetID+"/commands/wipe", nil)
	reaches(d.tab, "#reason")
	d.tab.Press("not this one")
	d.tab.Press("\r")
	d.tab.Sees("#notices", "Declined")
	d.tab.Sees("#decide", "not this one")
}

// A session that ends while a decision is open keeps what was typed, and nothing is decided.
func TestDecisions_SessionEnds(t *testing.T) {
	t.Parallel()
	d := newDeciding(t)
	apply := d.proposes(t, "CONFIGURE_WIFI")
	d.tab.Type("#reason", "not now")
	d.tab.Forget()
	d.tab.Click(declines + "button[type=submit]")
	d.tab.Waits(`document.querySelector("#signed-out").open`)
	if got := d.tab.Eval(`document.querySelector("#reason")?.value ?? location.pathname`); got != "not now" {
		t.Errorf("the reason is %q", got)
	}
	if was := d.client.Get(apply[:len(apply)-len("/apply")]).Want(t, http.StatusOK).Members(t); was["approval"].(map[string]any)["state"] !=
		"WAITING" {
		t.Errorf("decided: %v", was)
	}
}
