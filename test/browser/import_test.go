package browser_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/musterhq/muster/test/browser"
	"github.com/musterhq/muster/test/needs"
)

// onImport previews a file.
func onImport(file string) func(*testing.T, *browser.Tab, browser.Demo) {
	return func(t *testing.T, tab *browser.Tab, _ browser.Demo) {
		t.Helper()
		tab.Go("/devices/import")
		chooses(t, tab, file)
		tab.Click("button[value=preview]")
		tab.Waits(`document.querySelector("#import-plan .note") !== null`)
	}
}

// chooses chooses a file of this text.
func chooses(t testing.TB, tab *browser.Tab, file string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "devices.csv")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	tab.File("#import-file", path)
}

// A file is previewed and imported without being chosen twice: the page still has it. Without
// scripts it is chosen again, and what is shown is written as well.
func TestImport_PreviewThenImport(t *testing.T) {
	t.Parallel()
	needs.Chromium().Of(t)
	demo := browser.StartDemo(t)
	tab := browser.Open(t, demo.URL)
	tab.SignIn(demo.Email, demo.Password)
	pictures := os.Getenv("MUSTER_SCREENSHOTS")
	for _, width := range []int64{1440, 390} {
		tab.Size(width, 900)
		tab.Go("/devices/import")
		serial := map[int64]string{1440: "DE-1", 390: "DE-2"}[width]
		chooses(t, tab, "Device name;Serial number;Owner?\nFront desk;"+serial+";Ada\n")
		tab.Click("button[value=preview]")
		tab.Sees("#import-plan", "Nothing is written yet. 1 line: 1 new")
		tab.Choose("select[name='target.2']", "user")
		tab.Click("button[value=preview]")
		tab.Sees("#import-plan", "Assigned to: Ada")
		if violations := tab.Axe(); violations != "" {
			t.Errorf("at %d: %s", width, violations)
		}
		if pictures != "" {
			if err := os.WriteFile(filepath.Join(pictures, "import-"+serial+".png"), tab.Shot(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		tab.Follow("button[value=import]")
		tab.Sees("#notices", "1 asset made")
		tab.Sees("main", serial+" · Ada")
	}
	tab.Size(1440, 900)
	tab.Go("/devices/import")
	chooses(t, tab, "identification\n=1+1\n\"no end\n")
	tab.Click("button[value=preview]")
	tab.Sees("#import-plan", "a quote is not closed")
	if n := tab.Eval(`String(document.querySelectorAll("button[value=import]").length)`); n != "0" {
		t.Error("a faulty file can be imported")
	}
	if bad := tab.Bad(); bad != "" {
		t.Error(bad)
	}

	tab.Scripts(false)
	tab.Go("/devices/import")
	chooses(t, tab, "identification,serialNumber\nPlain,PLAINONE3\n")
	tab.Follow("button[value=preview]")
	chooses(t, tab, "identification,serialNumber\nPlain,PLAINONE3\n")
	tab.Follow("button[value=import]")
	tab.Scripts(true)
	tab.Go("/devices?q=PLAINONE3")
	tab.Sees("main", "Plain")
}
