package browser_test

import (
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/asset"
)

// A name of 100 characters without spaces makes no page wider than a phone's window.
func TestNames_LongOnesBreak(t *testing.T) {
	t.Parallel()
	d, long := newDeciding(t), strings.Repeat("W", 100)
	id := d.device.AssetID[strings.LastIndexByte(d.device.AssetID, '/')+1:]
	tags := []string{strings.Repeat("W", 60)}
	if _, err := d.env.DB().EditAsset(t.Context(), d.of.Company.ID, id, asset.Edit{Identification: &long, Tags: tags}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.env.DB().UpdateUser(t.Context(), d.of.Company.ID, d.admin.ID, func(u *account.User) error {
		u.Name = long
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	d.tab.Size(390, 844)
	narrow := func(where string) {
		t.Helper()
		if wide := d.tab.Eval(`String(Math.max(document.documentElement.scrollWidth,
			...[...document.querySelectorAll("dialog[open], .note")].map((e) => e.scrollWidth)))`); wide != "390" {
			t.Errorf("%s is %s pixels wide on a window of 390", where, wide)
		}
	}
	for _, path := range []string{"/devices/" + id, "/devices", "/bulk?command=tags&id=" + id, "/users/" + d.admin.ID, "/users"} {
		d.tab.Go(path)
		narrow(path)
	}
	d.tab.Go("/bulk?command=lock&id=" + id)
	if cut := d.tab.Eval(`[...document.querySelectorAll("#planned td")].filter((e) => e.getBoundingClientRect().right > 390)
		.map((e) => e.innerText).join("\n")`); cut != "" {
		t.Errorf("the plan is cut off: %s", cut)
	}
	d.tab.Go("/devices/" + id)
	d.tab.Eval(`document.querySelector("dialog#wipe_device").showModal(); ""`)
	narrow("the dialog of the wipe")
	d.tab.Eval(`document.querySelector("#notices").innerHTML = '<div class="note"><div class="min-w-0 flex-1"><p>` +
		long + `</p></div></div>';
		document.querySelector("dialog[open]").close(); ""`)
	narrow("a notice")
	d.proposes(t, "FACTORY_RESET")
	narrow("the page of a proposal")
}
