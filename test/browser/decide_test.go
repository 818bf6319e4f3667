package browser_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	companies "github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/test/browser"
	"github.com/musterhq/muster/test/needs"
)

// deciding is a company in which persons decide, with a person who has a passkey in a
// browser and a key that asks.
type deciding struct {
	tenant
	of     *servertest.Tenant
	device servertest.Device
	risky  policy.Policy
	client servertest.Client
}

func newDeciding(t *testing.T) deciding {
	t.Helper()
	needs.Chromium().Of(t)
	env := servertest.New(t)
	of, replica := env.NewTenant("acme"), env.Start(servertest.OnLocalhost(t))
	env.CLI(new(any), "company", "set", "--company", "acme", "--approver-age", "0s", "--apply-approval", "all",
		"--destructive-approval", "on")
	d := deciding{tenant{env, replica, env.Browser(of.Company, account.Admin).User, browser.Open(t, replica.PublicURL())}, of,
		of.Devices(replica, servertest.FullyManaged(), 1)[0], env.Policy(of.Company, "Locked down", policy.Platform),
		of.Client(replica, access.All)}
	env.CLI(new(any), "policy", "set", d.risky.PathName(), "--company", "acme", "--set", "FACTORY_RESET=BLOCK", "--set",
		"CONFIGURE_WIFI=BLOCK")
	d.tab.Authenticator()
	d.tab.SignIn(d.admin.Email, servertest.Password)
	d.tab.Go("/account/passkeys/new")
	d.tab.Type("#name", "My key")
	d.tab.Click("form[data-passkey=create] button[type=submit]")
	d.tab.Sees("#main", "Recovery codes")
	return d
}

// asks sends what needs a person, and opens the page that the refusal names.
func (d deciding) asks(t *testing.T, status int, path string, body any) {
	t.Helper()
	refused := d.client.Post(path, body).Want(t, status).Members(t)
	page, err := url.Parse(refused["approvalUrl"].(string))
	if err != nil {
		t.Fatal(err)
	}
	d.tab.Go(page.Path)
	d.tab.Sees("#decide", "Decide")
}

// proposes asks for a change of HIGH impact, and returns the path at which it is applied.
func (d deciding) proposes(t *testing.T, setting string) (apply string) {
	t.Helper()
	made := d.client.Post("/policies/"+d.of.Policy.ID+"/changes",
		map[string]any{"changes": []any{map[string]string{"setting": setting, "value": "BLOCK"}}}).
		Want(t, http.StatusCreated).Members(t)
	apply = "/policy-proposals/" + made["proposalId"].(string) + "/apply"
	d.asks(t, http.StatusUnprocessableEntity, apply, map[string]any{"confirmation": d.of.Policy.Name})
	return apply
}

// looks holds the page against what must not be on any, at two widths, and wants that
// nothing is cut off.
func (d deciding) looks(t *testing.T, name string) {
	t.Helper()
	d.tab.Size(390, 844)
	d.tab.Waits(`document.getAnimations().length === 0`)
	if wide := d.tab.Eval(`String(document.documentElement.scrollWidth)`); wide != "390" {
		t.Errorf("%s is %s pixels wide on a window of 390", name, wide)
	}
	d.sound(t, name+"-390")
	d.tab.Size(1440, 900)
	d.sound(t, name+"-1440")
}

const (
	approves = `form[data-passkey]:has(input[name=decision][value=APPROVE]) `
	declines = `form[data-passkey]:has(input[name=decision][value=DECLINE]) `
)

// A person types the name of a policy and signs with a passkey; a wrong name is refused on
// the page, before the passkey is asked, and nothing that was typed is lost.
func TestApprove_TypedNameThenPasskey(t *testing.T) {
	t.Parallel()
	d := newDeciding(t)
	apply := d.proposes(t, "FACTORY_RESET")
	d.looks(t, "decide-change")
	d.answersFirst(t)
	d.tab.Click("#main details summary")
	d.tab.Sees("#main details pre", "{")
	d.looks(t, "decide-change-document")
	d.tab.Type("#confirmation", "Warehouse")
	asleep := fmt.Sprintf(`document.querySelector(%q).disabled`, approves+"button[type=submit]")
	d.tab.Waits(asleep)
	d.looks(t, "decide-change-problem")
	d.tab.Type("#confirmation", strings.ToUpper(d.of.Policy.Name))
	d.tab.Waits("!" + asleep)
	d.tab.Click(approves + "button[type=submit]")
	d.tab.Sees("#notices", "Approved")
	d.tab.Sees("#main", "approved it already")
	d.looks(t, "decide-change-approved")
	d.tab.Eval(`(window.stayed = true, "")`)
	d.client.Post(apply, map[string]any{"confirmation": d.of.Policy.Name}).Want(t, http.StatusOK)
	d.tab.Sees("#standing", "Applied")
	d.tab.Sees("#decide", "1 of 1 device has applied it")
	if d.tab.Eval(`String(window.stayed)`) != "true" {
		t.Error("the page was loaded again")
	}
	d.looks(t, "decide-change-applied")
}

// answersFirst fails the test if the first screen does not answer what a person asks first.
func (d deciding) answersFirst(t *testing.T) {
	t.Helper()
	for _, size := range [][2]int64{{390, 844}, {1440, 900}} {
		d.tab.Size(size[0], size[1])
		d.tab.Eval(`(scrollTo(0, 0), "")`)
		for _, question := range []string{"What happens", "Device", "Asked by", "Can be undone"} {
			d.tab.Sees("#main dt", question)
		}
		d.tab.Sees("#standing a[href='#no'], #no button", "Decline")
		if below := d.tab.Eval(`[...document.querySelectorAll("[aria-label='In short'] dd"),
			[...document.querySelectorAll("#standing a[href='#no'], #no button")].find((e) => e.checkVisibility())]
			.filter((e) => e.getBoundingClientRect().bottom > innerHeight)
			.map((e) => e.innerText + " ends at " + e.getBoundingClientRect().bottom).join("; ")`); below != "" {
			t.Errorf("below the first screen of %d pixels: %s", size[0], below)
		}
	}
}

// A page that is open shows that another one decided, and its buttons are gone.
func TestDecide_Elsewhere(t *testing.T) {
	t.Parallel()
	d := newDeciding(t)
	d.proposes(t, "CONFIGURE_WIFI")
	other := d.tab.Another()
	other.Go(d.tab.Path())
	other.Sees("#decide", "Decline with a passkey")
	d.tab.Type("#reason", "not now")
	d.tab.Click(declines + "button[type=submit]")
	d.tab.Sees("#standing", "Declined")
	decided := time.Now()
	other.Sees("#standing", "Declined")
	other.Waits(`document.querySelector("#decide [type=submit]") === null`)
	if took := time.Since(decided); took > 2*time.Second {
		t.Errorf("the other window shows it after %s", took)
	}
	other.Sees("#decide", "not now")
	if bad := other.Bad(); bad != "" {
		t.Error(bad)
	}
	d.tab.Go("/proposals")
	d.tab.Sees("#proposals td", "Declined")
	d.tab.Eval(`(history.back(), "")`) // the page that it was declined on
	d.tab.Waits(`document.querySelector("#standing") !== null && document.querySelector("#decide [type=submit]") === null`)
}

// A person without a passkey adds one, and comes back to the decision.
func TestDecide_AddingAPasskeyReturns(t *testing.T) {
	t.Parallel()
	d := newDeciding(t)
	d.proposes(t, "FACTORY_RESET")
	page := d.tab.Path()
	d.tab.Forget()
	d.tab.SignIn(d.env.Browser(d.of.Company, account.Admin).User.Email, servertest.Password)
	d.tab.Go(page)
	d.tab.Sees("#decide", "can decide this now")
	d.looks(t, "decide-no-passkey")
	d.tab.Follow("#decide a[href^='/account/passkeys/new']")
	d.tab.Click("form[data-passkey=create] button[type=submit]")
	d.tab.Sees("#main", "Recovery codes")
	d.tab.Follow("#main a.btn")
	d.tab.Waits(fmt.Sprintf(`location.pathname === %q`, page))
	d.tab.Sees("#decide", "Approve with a passkey")
}

// The reason of a decline is signed, shown, and told to the caller.
func TestDecline_WithReason(t *testing.T) {
	t.Parallel()
	d := newDeciding(t)
	apply := d.proposes(t, "CONFIGURE_WIFI")
	three := d.tab.Within(3, "/")
	d.tab.Follow("#overview a[href='/proposals?waiting=1']")
	d.tab.Follow("#proposals a[data-open]")
	d.tab.Type("#reason", "not <b>before</b> Friday")
	d.tab.Click(declines + "button[type=submit]")
	d.tab.Sees("#notices", "Declined")
	three("a decline with a reason")
	d.tab.Sees("#main", "The reason: not <b>before</b> Friday")
	d.looks(t, "decide-change-declined")
	ended := d.client.Get(strings.TrimSuffix(apply, "/apply")).Want(t, http.StatusOK).Members(t)
	if got := ended["approval"].(map[string]any)["reason"]; got != "not <b>before</b> Friday" || ended["status"] != "FAILED" {
		t.Errorf("declined as %v", ended)
	}
}

// One wipe, and one move to a policy whose name is typed, are authorized in the browser.
func TestAuthorize_WipeAndMove(t *testing.T) {
	t.Parallel()
	d := newDeciding(t)
	wipe, move := "/assets/"+d.device.AssetID+"/commands/wipe", "/assets/"+d.device.AssetID+"/commands/change-policy"
	to := map[string]string{"policyId": d.risky.PathName()}
	d.asks(t, http.StatusForbidden, move, to)
	d.looks(t, "decide-move")
	d.answersFirst(t)
	d.tab.Type("#confirmation", d.risky.Name)
	d.tab.Click(approves + "button[type=submit]")
	d.tab.Sees("#notices", "Authorized")
	d.client.Post(move, to).Want(t, http.StatusOK)
	d.asks(t, http.StatusForbidden, wipe, nil)
	d.looks(t, "decide-wipe")
	d.answersFirst(t)
	d.tab.Click(approves + "button[type=submit]")
	d.tab.Sees("#notices", "Authorized")
	d.looks(t, "decide-wipe-authorized")
	d.client.Post(wipe, nil).Want(t, http.StatusOK)
	d.tab.Sees("#standing", "Used")
	d.tab.Sees("#decide", "The device confirmed it")
	d.looks(t, "decide-wipe-used")
}

// A second administrator confirms a loosening.
func TestConfirm_Loosening(t *testing.T) {
	t.Parallel()
	d := newDeciding(t)
	first := d.env.Browser(d.of.Company, account.Admin).User
	waiting, err := d.env.DB().ChangeControls(t.Context(), d.of.Company.ID, first, func(c *companies.Company) {
		c.Settings.Controls.ApplyApproval = access.ApproveNone
	})
	if err != nil || len(waiting) != 1 {
		t.Fatalf("%v, %v", waiting, err)
	}
	d.tab.Go("/access/controls")
	d.looks(t, "loosening-waits")
	d.tab.Go("/access/controls/" + waiting[0].ID + "/confirm")
	d.tab.Sees("#decide", "Decide")
	d.looks(t, "decide-loosening")
	other := d.tab.Another()
	other.Go(d.tab.Path())
	other.Sees("#decide", "Confirm with a passkey")
	d.tab.Click(approves + "button[type=submit]")
	d.tab.Sees("#notices", "effect")
	d.looks(t, "loosening-confirmed")
	other.Sees("#decide", "confirmed the request to")
	other.Waits(`document.querySelector("#decide [type=submit]") === null`)
}

// Changes are stopped in three clicks from the overview, and resuming is asked for in two from
// any page; the portal as well takes the company's name. Another administrator who has the page
// open sees what was asked. A second request asks before it replaces the first.
func TestStop_ThreeClicksAndResumeTwo(t *testing.T) {
	t.Parallel()
	d := newDeciding(t)
	tab := d.tab
	tab.Go("/access/controls")
	tab.Click("input[name=limited]")
	tab.Follow("form[action='/access/controls'] button[type=submit]")
	tab.Sees("#controls", "no limit")
	tab.Type("#limit", "20")
	tab.Type("#minutes", "30")
	tab.Follow("form[action='/access/controls'] button[type=submit]")
	tab.Sees("#main", "Replace a waiting change")
	d.looks(t, "controls-replace")
	tab.Follow("#main a.btn")
	tab.Sees("#controls", "no limit")
	d.looks(t, "controls-waiting")
	for _, width := range []int64{1440, 390} {
		tab.Size(width, 900)
		stop := tab.Within(3, "/")
		tab.Follow("#overview a[href='/access']")
		tab.Follow("#main a[href='/access/controls']")
		tab.Type("#reason", "a stolen key")
		tab.Press("\r") // with the keyboard alone
		tab.Sees("#notices", "Changes are stopped")
		stop("a stop")
		d.looks(t, "controls-stopped")
		tab.Size(width, 900)
		resume := tab.Within(2, "/devices")
		tab.Follow("#main .note a[href='/access/controls']")
		tab.Click("form[action='/access/controls/resume'] button")
		tab.Sees("#controls", "Resume asked")
		// but as a clock here says
		tab.Waits(`[...document.querySelectorAll("#controls time[data-at]")].every((t) => !t.textContent.includes("UTC"))`)
		resume("asking to resume")
		d.looks(t, "controls-resume-asked")
		other := tab.Another()
		other.Go("/access/controls")
		other.Click("#controls li:last-child form[action$='/cancel'] button")
		tab.Sees("#controls", "Ask to resume")
		d.env.CLI(new(any), "company", "resume", "--company", "acme")
		d.env.Advance(2 * time.Second)
	}
	tab.Go("/access/controls")
	tab.Type("#reason", "a stolen account")
	tab.Click("input[name=all]")
	tab.Sees("form[action$='/stop']", "Type the company's name")
	tab.Type("#confirm", "another")
	tab.Follow("form[action$='/stop'] button[type=submit]")
	tab.Sees("form[action$='/stop']", "nothing is stopped yet")
	d.looks(t, "controls-stop-name")
	tab.Type("#confirm", "acme")
	tab.Follow("form[action$='/stop'] button[type=submit]")
	tab.Sees("#controls", "people in the portal change nothing")
}

// Without scripts a page says what a decision needs.
func TestDecide_WithoutScripts(t *testing.T) {
	t.Parallel()
	d := newDeciding(t)
	d.proposes(t, "FACTORY_RESET")
	address := d.tab.Path()
	d.tab.Scripts(false)
	d.tab.Go(address)
	d.tab.Sees("#main", "JavaScript, which is off")
	d.tab.Scripts(true)
}
