package browser_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/musterhq/muster/test/browser"
	"github.com/musterhq/muster/test/needs"
)

// An archived asset is deleted on its page, in a narrow window: its history is downloaded, and
// the code of the file and the name of the asset are typed.
func TestDelete_AfterTheDownload(t *testing.T) {
	t.Parallel()
	needs.Chromium().Of(t)
	demo := browser.StartDemo(t)
	tab := browser.Open(t, demo.URL)
	tab.SignIn(demo.Email, demo.Password)
	tab.Size(390, 844)
	tab.Go("/devices/import")
	chooses(t, tab, "identification,serialNumber\nOld phone,OLDPHONE9\n")
	tab.Click("button[value=preview]")
	tab.Sees("#import-plan", "1 line: 1 new")
	tab.Follow("button[value=import]")
	tab.Go("/devices?q=OLDPHONE9")
	tab.Follow("a[data-open]")
	page := tab.Path()
	tab.Follow("form[action$='/archive'] button")
	tab.Sees("#notices", "Archived")
	tab.Follow("a[href$='/delete']")
	if wide := tab.Eval(`String(document.documentElement.scrollWidth)`); wide != "390" {
		t.Errorf("the page is %s pixels wide on a window of 390", wide)
	}
	if found := tab.Axe() + tab.Eval(untidy); found != "" {
		t.Error(found)
	}
	if pictures := os.Getenv("MUSTER_SCREENSHOTS"); pictures != "" {
		if err := os.WriteFile(filepath.Join(pictures, "delete.png"), tab.Shot(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tab.Waits(`(async () => {
		const link = document.querySelector("a[download]");
		const name = (await fetch(link.href)).headers.get("Content-Disposition");
		document.body.dataset.code = name.match(/-([0-9a-f]{8})\.ndjson/)[1];
	})() && document.body.dataset.code !== undefined`)
	tab.Type("input[name=code]", tab.Eval(`document.body.dataset.code`))
	tab.Type("input[name=confirm]", "Old phone")
	tab.Follow("main form[data-proof] button[type=submit]")
	tab.Sees("#notices", "Deleted Old phone")
	tab.Go(page)
	tab.Sees("main", "no asset")
	if bad := tab.Bad(); bad != "" {
		t.Error(bad)
	}
}
