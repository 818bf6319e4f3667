package browser_test

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/emulator"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/test/browser"
	"github.com/musterhq/muster/test/needs"
)

// returns takes a device offline and back, so that it reports and pages with it
// change.
func returns(tenant *servertest.Tenant, d servertest.Device) {
	tenant.TB.Helper()
	off, on := false, true
	tenant.Behave(d, emulator.Behavior{Online: &off})
	tenant.Behave(d, emulator.Behavior{Online: &on})
}

// A session that ends is reported in a dialog: the page, and what was typed on it,
// stay. After signing in the edits are there.
func TestSession_EndsOnOpenPage(t *testing.T) {
	t.Parallel()
	tenant, replica, tab := enter(t, account.Admin)
	device := tenant.Devices(replica, servertest.FullyManaged(), 1)[0]
	tab.Go("/devices/" + device.AssetID)
	heading := tab.Text("h1")
	tab.Waits(`document.documentElement.dataset.live === "on"`)
	tab.Forget()
	tenant.Client(replica, access.All).Post("/assets/"+device.AssetID+"/commands/lock", nil).Want(t, 200)
	tab.Waits(`document.querySelector("#signed-out").open`)
	if got := tab.Text("#head h1"); got != heading {
		t.Errorf("the page shows %q, want %q", got, heading)
	}
	if n := tab.Eval(`String(document.querySelectorAll("main form[action='/signin']").length)`); n != "0" {
		t.Error("the sign-in form is inside the page")
	}
	signsInBeside(tab, tab.Eval(`document.querySelector("[data-popup] p.truncate").textContent`))
	tab.Waits(`!document.querySelector("#signed-out").open && document.documentElement.dataset.live === "on"`)
}

func TestSettings_EditsOutliveSession(t *testing.T) {
	t.Parallel()
	needs.Chromium().Of(t)
	env := servertest.New(t)
	tenant, replica := env.NewTenant("acme"), env.Start()
	person := env.Browser(tenant.Company, account.Admin)
	tab := browser.Open(t, replica.PublicURL())
	tab.SignIn(person.User.Email, servertest.Password)
	p := env.Policy(tenant.Company, "Edited", policy.Platform)
	tab.Go("/policies/" + p.ID)
	pick(tab, "CAMERA", "BLOCK")
	tab.Sees("[data-tally]", "1 change")
	tab.Forget()
	tab.Click("button[data-review]")
	signsInBeside(tab, person.User.Email)
	tab.Sees("h1", "Change settings of Edited")
}

// Discarding at the last look discards what the tab kept, too.
func TestSettings_DiscardedAreGone(t *testing.T) {
	t.Parallel()
	tenant, _, tab := enter(t, account.Admin)
	p := tenant.Env.Policy(tenant.Company, "Kiosk", policy.Agent)
	tab.Go("/policies/" + p.ID)
	setting := tab.Eval(`document.querySelector("[data-setting] input:not(:checked):not([value=''])").name.slice(2)`)
	pick(tab, setting, tab.Eval(`document.querySelector("[name='s.`+setting+`']:not(:checked):not([value=''])").value`))
	tab.Sees("[data-tally]", "1 change")
	tab.Follow("button[data-review]")
	tab.Sees("h1", "Review 1 change of Kiosk")
	tab.Follow("[data-discards]")
	tab.Sees("[data-tally]", "No changes")
}

// What changes while boxes are ticked is shown when they are not.
func TestDeviceList_WaitsForTickedBoxes(t *testing.T) {
	t.Parallel()
	tenant, replica, tab := enter(t, account.Admin)
	devices := tenant.Devices(replica, servertest.FullyManaged(), 2)
	tab.Go("/devices?sort=lastSeen,desc")
	tab.Waits(`document.documentElement.dataset.live === "on"`)
	first, oldest := tab.Eval(`document.querySelector("tr[data-row]").id`), devices[0]
	if first == "row-"+oldest.AssetID {
		oldest = devices[1]
	}
	tab.Eval(`(document.querySelector("input[name=id]").checked = document.querySelector("[data-all]").checked = true,
		window.told = new EventSource("/live?on=assets"), window.told.onmessage = () => { document.body.dataset.told = "yes"; }, "")`)
	tab.Waits("window.told.readyState === EventSource.OPEN")
	returns(tenant, oldest)
	tab.Waits(`document.body.dataset.told === "yes"`)
	if got := tab.Eval(`document.querySelector("tr[data-row]").id`); got != first {
		t.Errorf("the first row is %s: the list was replaced while a box was ticked", got)
	}
	tab.Eval(`(document.querySelector("input[name=id]").checked = false, "")`)
	tab.Waits(`document.querySelector("tr[data-row]").id === "row-` + oldest.AssetID + `"`)
}

// Live updates of the list leave the forms beside it as they are.
func TestDeviceList_KeepsOneOfEachForm(t *testing.T) {
	t.Parallel()
	tenant, replica, tab := enter(t, account.Admin)
	device := tenant.Devices(replica, servertest.FullyManaged(), 1)[0]
	tab.Go("/devices")
	tab.Waits(`document.documentElement.dataset.live === "on"`)
	tab.Eval(`(window.swaps = 0, document.addEventListener("htmx:after:swap", () => window.swaps++), "")`)
	for n := range 3 {
		returns(tenant, device)
		tab.Waits("window.swaps > " + strconv.Itoa(n))
	}
	if n := tab.Eval(`String(document.querySelectorAll("#forms").length)`); n != "1" {
		t.Errorf("the page has %s times its forms", n)
	}
}

// A live update leaves the list's scrolling as it is; while the pointer is on
// the list no row moves, and a button offers the new order.
func TestDeviceList_StaysWhileUsed(t *testing.T) {
	t.Parallel()
	tenant, replica, tab := enter(t, account.Admin)
	devices := tenant.Devices(replica, servertest.FullyManaged(), 30)
	tab.Size(1440, 700)
	tab.Go("/devices?size=50&sort=lastSeen,desc")
	tab.Waits(`document.documentElement.dataset.live === "on"`)
	tab.Eval(`(document.querySelector("#list-box").scrollTop = 300, document.querySelector("#list-box").marked = true, "")`)
	first := tab.Eval(`document.querySelector("tr[data-row]").id`)
	oldest := devices[0]
	for _, d := range devices {
		if "row-"+d.AssetID != first {
			oldest = d
		}
	}
	returns(tenant, oldest)
	tab.Waits(`document.querySelector("tr[data-row]").id === "row-` + oldest.AssetID + `"`)
	if got := tab.Eval(`document.querySelector("#list-box").scrollTop + " " + document.querySelector("#list-box").marked`); got !=
		"300 true" {
		t.Errorf("scrolled by %s after a live update; want 300, in the same box", got)
	}
	tab.Point("#list-box tr[data-row]:nth-child(10)")
	other := devices[0]
	if other == oldest {
		other = devices[1]
	}
	returns(tenant, other)
	tab.Waits(`!document.querySelector("[data-moved]").hidden`)
	if got := tab.Eval(`document.querySelector("tr[data-row]").id`); got != "row-"+oldest.AssetID {
		t.Errorf("the first row is %s: the list moved under the pointer", got)
	}
	tab.Click("[data-moved-show]")
	tab.Waits(`document.querySelector("tr[data-row]").id === "row-` + other.AssetID + `"`)
}

// The way back from a device leads to the list with its filters and scrolling.
func TestDeviceList_BackKeepsPlace(t *testing.T) {
	t.Parallel()
	tenant, replica, tab := enter(t, account.Admin)
	tenant.Devices(replica, servertest.FullyManaged(), 30)
	tab.Size(1440, 700)
	tab.Go("/devices?size=50&status=ACTIVE")
	tab.Eval(`(document.querySelector("#list-box").scrollTop = 240, "")`)
	tab.Follow("tr[data-row]:nth-child(12) a[data-open]")
	tab.Follow("a[data-back-to-list]")
	if got := tab.Path(); !strings.Contains(got, "status=ACTIVE") {
		t.Errorf("back leads to %s", got)
	}
	tab.Waits(`document.querySelector("#list-box").scrollTop === 240`)
}

// The overview's chart comes with the first device, and follows the commands. A fetch of the other tiles leaves it as it is.
func TestOverview_ChartIsLive(t *testing.T) {
	t.Parallel()
	tenant, replica, tab := enter(t, account.Admin)
	tab.Waits(`document.documentElement.dataset.live === "on"`)
	device := tenant.Devices(replica, servertest.FullyManaged(), 1)[0]
	tab.Waits(`document.querySelector("#overview-chart svg") !== null`)
	tab.Eval(`(document.querySelector("#overview-chart").marked = true, "")`)
	tenant.Client(replica, access.All).Post("/assets/"+device.AssetID+"/commands/lock", nil).Want(t, 200)
	tab.Waits(`document.querySelector("#outcomes-table tbody tr") !== null`)
	tab.Eval(`(document.querySelector("#outcomes-table tbody tr").remove(), document.querySelector("#overview > ul").remove(),
		portal.refresh(null), "")`)
	tab.Waits(`document.querySelector("#overview > ul") !== null`)
	if got := tab.Eval(`document.querySelector("#overview-chart").marked + " " +
		document.querySelectorAll("#overview-chart svg, #outcomes-table tbody tr").length`); got != "true 1" {
		t.Errorf("the chart is kept, and its drawings and rows are: %s; want true 1", got)
	}
}

// The buttons follow the device, and an opened part stays open.
func TestDevice_ButtonsAreLive(t *testing.T) {
	t.Parallel()
	tenant, replica, tab := enter(t, account.Admin)
	device := tenant.Devices(replica, servertest.FullyManaged(), 1)[0]
	client := tenant.Client(replica, access.All)
	client.Post("/assets/"+device.AssetID+"/commands/lock", nil).Want(t, 200)
	tab.Go("/devices/" + device.AssetID + "/commands")
	tab.Click("#body details summary")
	tab.Waits(`document.documentElement.dataset.live === "on"`)
	client.Post("/assets/"+device.AssetID+"/commands/wipe", nil).Want(t, 200)
	tab.Sees("#head", "Deleted")
	tab.Waits(`[...document.querySelectorAll("#head > div > .why button")].length >= 3`)
	if n :=
		tab.Eval(
			`String(document.querySelectorAll("#head form:not([action$='/archive']) button, #head [data-opens]:not([data-opens=edit])").length)`); n != "0" {
		t.Errorf("%s commands can still be sent to a device that is not managed", n)
	}
	tab.Sees("#head", "This device is no longer managed.")
	tab.Waits(`document.querySelectorAll("#body details").length === 2`)
	if n := tab.Eval(`String(document.querySelectorAll("#body details[open]").length)`); n != "1" {
		t.Errorf("%s of the opened parts are open after an update, want 1", n)
	}
}

// Dialogs begin with their first field, and close the menu that opened them.
func TestDialog_BeginsWithFirstField(t *testing.T) {
	t.Parallel()
	tenant, replica, tab := enter(t, account.Admin)
	device := tenant.Devices(replica, servertest.FullyManaged(), 1)[0]
	tab.Go("/devices/" + device.AssetID)
	for _, operation := range []string{"wipe_device", "start_lost_mode", "change_device_policy", "reset_screen_lock"} {
		if operation != "wipe_device" {
			tab.Click("#more summary")
		}
		tab.Click("[data-opens=" + operation + "]")
		if got := tab.Eval(`document.activeElement.tagName + " " + document.querySelector("#more").open`); !strings.HasSuffix(got,
			" false") ||
			strings.HasPrefix(got, "BUTTON") {
			t.Errorf("%s: the focus is on, and the menu open: %s", operation, got)
		}
		tab.Press(" ")
		if tab.Eval(`String(document.querySelector("#`+operation+`").open)`) != "true" {
			t.Errorf("%s: typing a space closes the dialog", operation)
		}
		tab.Eval(`(document.querySelector("#` + operation + `").close(), "")`)
	}
}

// Turning a device off asks for its name, restarting it for a confirmation.
func TestDevice_PowerCommandsAsk(t *testing.T) {
	t.Parallel()
	tenant, replica, tab := enter(t, account.Admin)
	device := tenant.Devices(replica, servertest.FullyManaged(), 1)[0]
	tab.Go("/devices/" + device.AssetID)
	tab.Click("#more summary")
	tab.Click("[data-opens=reboot_device]")
	tab.Sees("#reboot_device", "Unsaved work on it is lost")
	tab.Follow("#reboot_device button[type=submit]")
	tab.Sees("#latest", "Restart")
	kiosks := tenant.Env.NewAgentSite("kiosks")
	kiosk, person := kiosks.AgentDevice(replica), tenant.Env.Browser(kiosks.Company, account.Admin)
	person.SignIn(replica.PublicURL())
	path := replica.PublicURL() + "/devices/" + kiosk.AssetID
	person.Send(path+"/commands/shutdown_device", url.Values{"once": {resource.NewID()}}).Want(t, 422)
	if n := len(kiosks.Client(replica, access.All).History(kiosk.AssetID)); n != 0 {
		t.Error("a device is turned off without its name")
	}
}

// The settings' labels keep their width, and nothing lies over another part.
func TestSettings_LabelsKeepTheirWidth(t *testing.T) {
	t.Parallel()
	tenant, _, tab := enter(t, account.Admin)
	p := tenant.Env.Policy(tenant.Company, "Wide", policy.Platform)
	for _, width := range []int64{390, 768, 1024, 1100, 1440} {
		tab.Size(width, 900)
		tab.Go("/policies/" + p.ID)
		if bad := tab.Eval(`[...document.querySelectorAll(".setting")].filter((s) => {
			const label = s.querySelector("[id^=label-]").getBoundingClientRect(),
				control = s.querySelector(".segments, select").getBoundingClientRect();
			const over = !(control.left >= label.right || control.top >= label.bottom);
			return label.width < 200 || over || s.getBoundingClientRect().height > 200;
		}).map((s) => s.innerText.slice(0, 40)).join("; ")`); bad != "" {
			t.Errorf("at %d pixels: %s", width, bad)
		}
	}
}

// Every setting has a name and a description for assistive technology, is clear
// of the bar at the foot when it has the focus, and shows what is chosen also
// where the system forces its colors.
func TestSettings_Assistive(t *testing.T) {
	t.Parallel()
	tenant, _, tab := enter(t, account.Admin)
	p := tenant.Env.Policy(tenant.Company, "Read aloud", policy.Platform)
	tab.Size(1280, 720)
	tab.Theme("light") // with reduced motion
	tab.Go("/policies/" + p.ID)
	if bad := tab.Eval(`[...document.querySelectorAll(".setting")].filter((s) => {
		const by = (a) => document.getElementById(s.getAttribute(a));
		return !by("aria-labelledby") || !by("aria-describedby") || by("aria-describedby").closest("[aria-hidden=true]") ||
			s.dataset.high !== undefined && !by("aria-describedby").textContent.includes("High impact");
	}).length + ""`); bad != "0" {
		t.Errorf("%s settings lack a name or a description", bad)
	}
	if hidden := tab.Eval(`(() => {
		const bar = document.querySelector("[data-tally]").closest("div.sticky");
		return [...document.querySelectorAll(".setting input:checked, .setting select")].filter((c) => {
			c.focus();
			return (c.closest(".segments") ?? c).getBoundingClientRect().bottom > bar.getBoundingClientRect().top;
		}).length + "" })()`); hidden != "0" {
		t.Errorf("the focus is under the bar at %s settings", hidden)
	}
	if got := tab.Eval(`getComputedStyle(document.documentElement).scrollBehavior`); got != "auto" {
		t.Errorf("with reduced motion the page scrolls %q", got)
	}
	tab.ForceColors()
	if got :=
		tab.Eval(
			`(() => { const [on, off] = [":has(:checked)", ":not(:has(:checked))"].map((s) => getComputedStyle(document.querySelector(".segments label" + s)).backgroundColor); return String(on !== off) })()`); got != "true" {
		t.Error("with forced colors the chosen value looks like the others")
	}
}

// At 390 pixels the menu of a device is inside the window.
func TestDevice_MenuFitsNarrowWindow(t *testing.T) {
	t.Parallel()
	tenant, replica, tab := enter(t, account.Admin)
	device := tenant.Devices(replica, servertest.FullyManaged(), 1)[0]
	tab.Size(390, 780)
	tab.Go("/devices/" + device.AssetID)
	tab.Click("#more summary")
	if got :=
		tab.Eval(
			`(() => { const r = document.querySelector("#more > div").getBoundingClientRect(); return String(r.left >= 0 && r.right <= innerWidth && r.bottom <= innerHeight) })()`); got != "true" {
		t.Error("the menu leaves the window")
	}
}

// Names of devices are cut, and cannot change the order of the text around them.
func TestNames_LongAndBidirectional(t *testing.T) {
	t.Parallel()
	tenant, _, tab := enter(t, account.Admin)
	long, reversed := strings.Repeat("warehouse scanner ", 12), "exe\u202egnp.live"
	now := tenant.Env.Now()
	if err := tenant.DB().ImportAssets(t.Context(), []asset.Asset{
		{ID: resource.NewID(), CompanyID: tenant.Company.ID, Status: asset.Pending, Identification: long, CreatedAt: now},
		{ID: resource.NewID(), CompanyID: tenant.Company.ID, Status: asset.Pending, Identification: reversed, CreatedAt: now},
	}); err != nil {
		t.Fatal(err)
	}
	tab.Go("/devices")
	if got :=
		tab.Eval(
			`[...document.querySelectorAll("tr[data-row]")].map((r) => r.getBoundingClientRect().height).reduce((a, b) => Math.max(a, b)) + ""`); func() bool {
		height, err := strconv.ParseFloat(got, 64)
		return err != nil || height > 80
	}() {
		t.Errorf("a long name makes a row %s pixels high", got)
	}
	page := tab.Eval(`document.querySelector("main").innerText`)
	if strings.Contains(page, "\u202e") || !strings.Contains(page, "exegnp.live") {
		t.Error("a name changes the order of the text")
	}
	if n := tab.Eval(`String(document.querySelectorAll("tr[data-row] a[data-open] bdi").length)`); n != fmt.Sprint(2) {
		t.Errorf("%s names are isolated, want 2", n)
	}
}

// A job is paused, resumed and canceled while it runs, on its page, which follows it.
func TestJob_PausedAndResumed(t *testing.T) {
	t.Parallel()
	tenant, replica, tab := enter(t, account.Operator)
	devices := tenant.Devices(replica, servertest.FullyManaged(), 4)
	tab.Go("/devices")
	tab.Click("[data-all]")
	tab.Follow("button[value=lock]")
	tab.Click("#plan details summary")
	tab.Type("#bulk-rate", "20")
	tab.Follow("#plan button[type=submit]")
	tab.Sees("#job", "Running")
	tab.Follow("form[action$='/pause'] button")
	tab.Sees("#job", "Paused by")
	tab.Follow("form[action$='/resume'] button")
	tab.Sees("#job", "Running")
	tab.Follow("form[action$='/cancel'] button")
	tab.Sees("#job", "Canceled")
	sent := 0
	for _, d := range devices {
		sent += len(tenant.Client(replica, access.All).History(d.AssetID))
	}
	if sent == len(devices) {
		t.Error("every device was sent to although the job was canceled")
	}
}

// A permission brings what it needs, in the form and on the key.
func TestKeyForm_PermissionBringsReads(t *testing.T) {
	t.Parallel()
	tenant, _, tab := enter(t, account.Admin)
	tab.Go("/access/keys/new")
	tab.Type("#name", "robot")
	tab.Click("[data-chooses='DEVICES_READ POLICIES_READ']") // a preset keeps what was typed
	if got :=
		tab.Eval(
			`[...document.querySelectorAll("input[name=permission]:checked")].map((b) => b.value).join(" ") + " " + document.querySelector("#name").value`); got != "DEVICES_READ POLICIES_READ robot" {
		t.Errorf("the preset leaves %q", got)
	}
	tab.Click("input[name=permission][value=POLICIES_READ]")
	tab.Click("input[name=permission][value=DEVICES_READ]")
	tab.Click("input[name=permission][value=DEVICES_COMMAND]")
	if tab.Eval(`String(document.querySelector("input[name=permission][value=DEVICES_READ]").checked)`) != "true" {
		t.Error("DEVICES_COMMAND does not bring DEVICES_READ")
	}
	// as a browser without scripts sends it
	tab.Eval(`(document.querySelector("input[name=permission][value=DEVICES_READ]").disabled = true, "")`)
	tab.Follow("main form button[type=submit]")
	tab.Sees("h1", "Your new API key")
	keys, err := tenant.Admin().Keys.Keys(t.Context(), tenant.Company.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		if k.Name == "robot" && k.Permissions != access.DevicesCommand|access.DevicesRead {
			t.Errorf("the key may %s", k.Permissions)
		}
	}
}
