package browser_test

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/musterhq/muster/test/browser"
	"github.com/musterhq/muster/test/needs"
)

// A task of daily work, and the most clicks that it may take from the overview. What is
// typed, and a proof of identity, are no clicks. In a narrow window a way that begins in the
// navigation has one more, to open it.
type task struct {
	name   string
	clicks int
	do     func(w worker)
}

// worker does tasks in a window of the used demo.
type worker struct {
	*browser.Tab
	narrow bool
	keys   bool   // the keyboard alone is used
	serial string // of a device
}

// Click presses what a selector finds.
func (w worker) Click(selector string) {
	w.TB.Helper()
	if !w.keys {
		w.Tab.Click(selector)
		return
	}
	reaches(w.Tab, selector)
	key := "\r"
	if w.Eval(`String(document.activeElement.matches("input[type=checkbox]"))`) == "true" {
		key = " "
	}
	w.Press(key)
}

// Follow presses what leads to another page, and waits for it.
func (w worker) Follow(selector string) {
	w.TB.Helper()
	if !w.keys {
		w.Tab.Follow(selector)
		return
	}
	w.Eval(`(window.leaves = true, "")`)
	w.Click(selector)
	w.Waits(`window.leaves !== true && document.readyState === "complete"`)
}

// Type writes into a field.
func (w worker) Type(selector, text string) {
	w.TB.Helper()
	if !w.keys {
		w.Tab.Type(selector, text)
		return
	}
	reaches(w.Tab, selector)
	w.Press(text)
}

// picks gives a setting of a policy, which has two values, the other one.
func (w worker) picks(setting string) {
	w.TB.Helper()
	field := "input[name='s." + setting + "']"
	if w.keys {
		reaches(w.Tab, field+":checked")
		w.Press(kb.ArrowRight)
		return
	}
	w.Click("label:has(" + field + ":not(:checked):not([value='']))")
}

// opens begins a way in the navigation.
func (w worker) opens(path string) {
	w.TB.Helper()
	if w.narrow {
		w.Click("[data-toggles=menu]")
	}
	w.Follow("nav a[href='" + path + "']")
}

// figure opens the list behind a number of the overview, which has as many rows.
func (w worker) figure(query string) {
	w.TB.Helper()
	link := "#overview a[href='/devices?" + query + "']"
	number := w.Text(link + " .text-3xl")
	w.Follow(link)
	w.Sees("main a[download]", "Export "+number+" device")
}

// named is the selector of a row's link to what has a name.
func (w worker) named(text string) string {
	w.TB.Helper()
	return "a[data-open][href='" +
		w.Eval(
			fmt.Sprintf(
				`[...document.querySelectorAll("a[data-open]")].find((a) => a.textContent.includes(%q))?.getAttribute("href") ?? ""`,
				text)) + "']"
}

func tasks() []task {
	return []task{
		{"find a device by its serial number", 0, func(w worker) {
			if w.narrow {
				w.Click("[data-toggles=menu]")
				w.Click("[data-palette]")
			} else {
				w.Eval(`(document.dispatchEvent(new KeyboardEvent("keydown", {key: "k", ctrlKey: true, bubbles: true})), "")`)
			}
			w.Waits(`document.querySelector("#palette").open`)
			w.Press(w.serial + "\r")
			w.Waits(`location.pathname.startsWith("/devices/")`)
			w.Sees("main", w.serial)
		}},
		{"find a device by a person's name", 2, func(w worker) {
			w.opens("/devices")
			w.Type("input[name=q]", "lovel")
			w.Press("\r")
			w.Waits(`location.search.includes("lovel") && document.querySelectorAll("tr[data-row]").length === 1`)
			w.Sees("tr[data-row]", "Ada Lovelace")
		}},
		{"list the devices that are behind on policy", 1, func(w worker) { w.figure("policyBehind=true") }},
		{"list the devices with an old security patch", 1, func(w worker) { w.figure("patchBefore=90d") }},
		{"list the devices with an old version of an app", 3, func(w worker) {
			w.opens("/devices")
			w.Click("#app-filter > summary")
			w.Type("#app-package", "com.android.chrome")
			w.Type("#app-below", "100")
			w.Follow("button[form=by-app]")
			w.Sees("main", "com.android.chrome below version code 100")
		}},
		{"see why a command is unconfirmed, and what to do", 2, func(w worker) {
			w.Follow("#needs-you a.btn[href*='/devices/']")
			w.Sees("main", "not known")
		}},
		{"send a message to five devices", 8, func(w worker) {
			w.opens("/devices")
			w.Choose("select[name=management]", "AGENT")
			w.Waits(`document.querySelectorAll("tr[data-row]").length === 5 && location.search.includes("AGENT")`)
			for n := range 5 {
				w.Click(fmt.Sprintf("tr[data-row]:nth-child(%d) input[name=id]", n+1))
			}
			w.Sees("[data-selected]", "5 selected")
			w.Follow("button[value=message]")
			w.Type("#plan input[required]", "Closing time")
			w.Type("#plan textarea", "The office closes at five.")
			w.Follow("#plan button[type=submit]")
			w.Sees("#job", "of 5 have a result")
		}},
		{"tag twenty filtered devices", 5, func(w worker) {
			w.opens("/devices")
			w.Choose("select[name=management]", "PLATFORM")
			w.Waits(`document.querySelectorAll("tr[data-row]").length > 20 && location.search.includes("PLATFORM")`)
			w.Click("[data-all]")
			w.Follow("button[value=tags]")
			w.Type("#bulk-add", "store-12")
			w.Follow("#plan button[type=submit]")
			w.Sees("#job", "Done")
		}},
		{"restart all devices of a store", 6, func(w worker) {
			w.opens("/devices")
			w.Follow("tr[data-row] a[href*='tag=store-12']")
			w.Click("[data-all]")
			w.Follow("button[value=reboot]")
			w.Follow("#plan button[type=submit]")
			w.Sees("#job", "have a result")
		}},
		{"switch lost mode on, with the company's texts", 5, func(w worker) {
			w.Follow("#overview a[href='/devices?status=ENROLLED']")
			w.Follow(w.named("Pixel 9"))
			w.Click("#more > summary")
			w.Click("#more [data-opens=start_lost_mode]")
			w.Click("#start_lost_mode form button[type=submit]")
			w.Sees("#head", "Lost mode")
		}},
		{"change a policy and apply it", 6, func(w worker) {
			w.opens("/policies")
			w.Follow(w.named("Meeting rooms"))
			w.picks("TETHERING")
			w.Follow("button[data-review]")
			w.Follow("form[action$='/apply'] button[type=submit]")
			w.Sees("main", "saved as version")
		}},
		{"make a key with the least rights for an assistant", 4, func(w worker) {
			w.opens("/access")
			w.Follow("main a[href='/access/keys/new']")
			w.Type("#name", "An assistant")
			w.Click("[data-chooses]:nth-of-type(3)")
			w.Click("form[action='/access/keys'] button[type=submit]")
			w.Sees("h1", "Your new API key")
		}},
		{"make a code that enrolls devices", 2, func(w worker) {
			w.opens("/enrol")
			w.Follow("form[action='/enrol'] button[type=submit]")
			w.Sees("#joined", "waiting")
		}},
		{"revoke an enrollment code", 3, func(w worker) {
			w.opens("/enrol")
			w.Follow("main a[href='/enrol/codes']")
			w.Follow("form[action$='/revoke'] button[type=submit]")
			w.Sees("main", "Revoked")
		}},
		{"turn destructive commands off", 3, func(w worker) {
			w.opens("/access")
			w.Click("#gate-destructiveCommands button")
			w.Sees("#notices", "Destructive commands: off")
		}},
		{"turn destructive commands on", 3, func(w worker) {
			w.opens("/access")
			w.Click("#gate-destructiveCommands button")
			w.Sees("#notices", "Destructive commands: on")
		}},
		{"wipe a device", 4, func(w worker) {
			w.Follow("#overview a[href='/devices?status=ENROLLED']")
			w.Follow(w.named("Tab M10"))
			w.Click("[data-opens=wipe_device]")
			w.Type("#wipe_device-confirm", w.Text("h1"))
			w.Click("#wipe_device form[data-proof] button[type=submit]")
			w.Sees("#head", "Deleted")
		}},
		{"see who wiped a device, and when", 1, func(w worker) {
			w.Follow("section[aria-label='Latest activity'] li a[href^='/devices/']")
			w.Sees("h1", "Tab M10")
			w.Sees("main .note", "Ada Admin")
			w.Sees("main .note", "wipe")
		}},
		{"list all wipes of a month", 1, func(w worker) {
			w.opens("/activity")
			w.Choose("select[name=area]", "destructive")
			w.Waits(`location.search.includes("destructive") && document.querySelectorAll("tr[data-row]").length === 1`)
			w.Sees("tr[data-row]", "wiped")
			w.Type("#filter-q", "no such name")
			w.Press("\r")
			w.Sees("main", "Nothing in this range matches")
		}},
		{"disable a user who has left", 4, func(w worker) {
			w.opens("/settings")
			w.Follow("main a[href='/users']")
			w.Follow(w.named("Bea"))
			w.Click("#disable button")
			w.Sees("#notices", "isabled")
		}},
	}
}

// emptyPanels names the panels and the figures of the overview that show nothing.
const emptyPanels = `(() => {
	const figures = [...document.querySelectorAll("#overview ul:first-of-type > li")].filter((e) => /(^|\s)0(\s|$)/.test(e.innerText));
	const panels = [...document.querySelectorAll("#overview section.panel")].filter((e) => !e.querySelector("li, rect, circle"));
	return figures.concat(panels).map((e) => e.innerText.slice(0,
		60)).concat(document.querySelectorAll("#overview section.panel").length < 4 ? ["four panels"] : []).join(" | ");
})()`

// TestTasks: the tasks of daily work take no more clicks than they may, in a wide window and
// in a narrow one, and all can be done with the keyboard alone. The tasks of who decides are in TestDecisions_ThreeClicks,
// TestNeedsYou_ConfirmLoosening, TestStop_ThreeClicksAndResumeTwo and TestConsent_*.
func TestTasks(t *testing.T) {
	t.Parallel()
	needs.Chromium().Of(t)
	for _, way := range []string{"1440", "390", "keyboard"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			width, keys := int64(1440), way == "keyboard"
			if way == "390" {
				width = 390
			}
			demo := browser.StartUsedDemo(t)
			tab := browser.Open(t, demo.URL)
			tab.Size(width, 900)
			tab.SignIn(demo.Email, demo.Password)
			if empty := tab.Eval(emptyPanels); empty != "" {
				t.Errorf("the first page shows nothing of: %s", empty)
			}
			tab.Go("/settings")
			tab.Type("#lost-message", "This phone was lost.")
			tab.Type("#lost-phone", "+49 30 5550142")
			tab.Type("#lost-organization", "Acme")
			tab.Click("form[action='/settings'] button[type=submit]")
			tab.Sees("#notices", "Saved")
			tab.Go("/devices/import")
			chooses(t, tab, "identification,serialNumber,user\nReception,DE-77,Ada Lovelace\n")
			tab.Click("button[value=preview]")
			tab.Sees("#import-plan", "1 new")
			tab.Follow("button[value=import]")
			tab.Go("/devices?q=Pixel")
			serial := tab.Eval(`document.querySelector("tr[data-row] td[data-main] bdi.num").textContent`)
			for _, one := range tasks() {
				t.Run(one.name, func(t *testing.T) {
					w := worker{tab.For(t), width < 768, keys, serial}
					most := one.clicks
					if w.narrow {
						most++
					}
					if w.narrow && one.clicks == 0 {
						most++ // the search is in the navigation, too
					}
					end := w.Within(most, "/")
					one.do(w)
					end(one.name)
					if bad := w.Bad(); bad != "" {
						t.Error(bad)
					}
				})
			}
		})
	}
}
