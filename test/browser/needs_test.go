package browser_test

import (
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	companies "github.com/musterhq/muster/internal/company"
)

// What waits appears on an open overview, with its count, within two seconds, and a person
// decides it in three clicks. Then the count is gone.
func TestNeedsYou_LiveAndThreeClicks(t *testing.T) {
	t.Parallel()
	d := newDeciding(t)
	d.tab.Go("/")
	d.tab.Waits(`document.documentElement.dataset.live === "on"`)
	if got := d.tab.Eval(
		`document.querySelector("#waiting").textContent.trim() + document.querySelector("#needs-you").innerText.trim()`); got != "" {
		t.Errorf("nothing waits, and the page says %q", got)
	}
	d.client.Post("/assets/"+d.device.AssetID+"/commands/wipe", nil).Want(t, 403)
	d.appears(t, "#waiting", "1")
	d.appears(t, "#needs-you", "asks for a wipe of")
	d.looks(t, "needs-you")
	d.tab.Theme("dark")
	d.looks(t, "needs-you-dark")
	d.tab.Theme("light")
	end := d.tab.Within(3, "/")
	d.tab.Follow("#needs-you li a.btn")
	d.tab.Click(approves + "button[type=submit]")
	d.tab.Sees("#notices", "Authorized")
	end("authorize a wipe from the overview")
	d.tab.Go("/")
	if got := d.tab.Eval(`document.querySelector("#waiting").textContent.trim()`); got != "" {
		t.Errorf("nothing waits, and the navigation counts %q", got)
	}
}

// appears waits for a text, at most two seconds.
func (d deciding) appears(t *testing.T, selector, text string) {
	t.Helper()
	begun := time.Now()
	d.tab.Sees(selector, text)
	if took := time.Since(begun); took > 2*time.Second {
		t.Errorf("%s was there after %s", selector, took)
	}
}

// A second administrator confirms a loosening in three clicks from the overview.
func TestNeedsYou_ConfirmLoosening(t *testing.T) {
	t.Parallel()
	d := newDeciding(t)
	ada := d.env.Browser(d.of.Company, account.Admin).User
	_, err := d.env.DB().ChangeControls(t.Context(), d.of.Company.ID, ada, func(c *companies.Company) {
		c.Settings.Controls.ApplyApproval = access.ApproveNone
	})
	if err != nil {
		t.Fatal(err)
	}
	end := d.tab.Within(3, "/")
	d.tab.Follow("#needs-you li a.btn")
	d.tab.Click(approves + "button[type=submit]")
	d.tab.Sees("#notices", "Confirmed")
	end("confirm a loosening from the overview")
	d.tab.Go("/activity")
	d.tab.Sees("#main", "turn approval of policy changes off")
	d.looks(t, "activity-loosened")
	d.tab.Go("/account")
	d.tab.Click(`form[action="/account/mail"] input[value="proposal.waiting"]`)
	d.tab.Follow(`form[action="/account/mail"] button`)
	d.tab.Sees("#notices", "Saved which mail you get.")
	if got :=
		d.tab.Eval(
			`[...document.querySelectorAll('form[action="/account/mail"] input')].filter((e) => !e.checked).map((e) => e.value).join()`); got != "proposal.waiting" {
		t.Errorf("not chosen is %s", got)
	}
	d.looks(t, "account-mail")
	d.tab.Go("/needs-you")
	d.tab.Sees("#main", "Nothing waits.")
	d.looks(t, "needs-you-empty")
}
