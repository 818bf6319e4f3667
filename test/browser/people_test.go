package browser_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/agent/simulated"
	domain "github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/emulator"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/servertest/oidctest"
	"github.com/musterhq/muster/test/browser"
	"github.com/musterhq/muster/test/needs"
)

// tenant is a service of its own, with one company and its administrator.
type tenant struct {
	env     *servertest.Env
	replica *servertest.Replica
	admin   account.User
	tab     *browser.Tab
}

func newSite(t *testing.T, settings access.Settings) tenant {
	t.Helper()
	needs.Chromium().Of(t)
	env := servertest.New(t)
	replica := env.Start(servertest.OnLocalhost(t))
	acme := env.Company("acme", settings)
	return tenant{env, replica, env.Browser(acme, account.Admin).User, browser.Open(t, replica.PublicURL())}
}

// sound fails the test for what must not be on any page, and keeps a picture.
func (s tenant) sound(t *testing.T, name string) {
	t.Helper()
	for _, theme := range []string{"light", "dark"} {
		s.tab.Theme(theme)
		// With reduced motion a theme changes at once: nothing is left to wait for.
		if moving := s.tab.Eval(
			`document.body.offsetWidth, String(document.getAnimations().filter((a) => a instanceof CSSTransition).length)`); moving != "0" {
			t.Errorf("%s, %s: %s transitions run after a change of theme", name, theme, moving)
		}
		if pictures := os.Getenv("MUSTER_SCREENSHOTS"); pictures != "" {
			if theme == "dark" {
				name += "-dark"
			}
			if err := os.WriteFile(filepath.Join(pictures, name+".png"), s.tab.Shot(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		violations := s.tab.Axe
		if theme == "dark" { // only colors differ
			violations = s.tab.AxeContrast
		}
		if bad := s.tab.Bad() + violations(); bad != "" {
			t.Errorf("%s, %s: %s", name, theme, bad)
		}
	}
}

// A key is refused to who may not make it, granted to who may, shown once, and
// works.
func TestKeyForm_RefusesGrantsAndShowsOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t, servertest.Everything())
	tab := s.tab
	tab.SignIn(s.admin.Email, servertest.Password)
	tab.Go("/access")
	tab.Follow("a[href='/access/keys/new']")
	tab.Type("#name", "ci <script>alert(1)</script>")
	tab.Click("input[value=DEVICES_READ]")
	tab.Click("input[value=POLICIES_WRITE]")
	tab.Follow("form[action='/access/keys'] button[type=submit]")
	tab.Sees("#main", "only time that the key is shown")
	secret := strings.TrimSpace(tab.Text("#shown-key"))
	s.sound(t, "key-shown")
	s.replica.As(secret).Get("/assets").Want(t, 200)
	tab.Go("/access")
	tab.Sees("table", "ci <script>alert(1)</script>")
	if strings.Contains(tab.Eval(`document.documentElement.outerHTML`), secret[12:]) {
		t.Error("the secret is shown again")
	}
	tab.Click("button[data-opens^='revoke-']")
	tab.Follow("dialog[open] button[type=submit]")
	tab.Sees("#notices", "revoked")
	s.replica.As(secret).Get("/assets").Want(t, 401)

	clerk := s.env.Browser(company(t, s), account.Viewer)
	viewer, _ := account.Viewer.Rights()
	clerk.Change(func(u *account.User) { u.Rights = viewer | account.ManageKeys })
	tab = browser.Open(t, s.replica.PublicURL())
	tab.SignIn(clerk.User.Email, servertest.Password)
	tab.Go("/access/keys/new")
	tab.Waits(
		`document.querySelector("input[value=POLICIES_WRITE]").disabled && document.querySelector("input[value=PROVISIONING]").disabled`)
	tab.Sees("form", "You do not have this permission yourself")
	// Who enables the box by hand is refused by the service.
	tab.Type("#name", "sneaky")
	tab.Eval(`document.querySelector("input[value=POLICIES_WRITE]").disabled = false, ""`)
	tab.Click("input[value=POLICIES_WRITE]")
	tab.Follow("form[action='/access/keys'] button[type=submit]")
	tab.Sees("[role=alert]", "cannot create a key")
}

// company is the tenant's company.
func company(t *testing.T, s tenant) domain.Company {
	t.Helper()
	c, err := s.env.DB().CompanyByID(t.Context(), s.admin.CompanyID)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A person signs in through their company's own provider, in a real browser.
func TestCompanySignIn_Browser(t *testing.T) {
	t.Parallel()
	s := newSite(t, access.Settings{})
	provider := oidctest.New(t, s.env.Now)
	provider.Be(oidctest.Browser{Subject: "1", Email: "grace@acme.test", Name: "Grace"}, nil)
	tab := s.tab
	tab.SignIn(s.admin.Email, servertest.Password)
	tab.Go("/settings/signin")
	tab.Click("input[name=enabled]")
	tab.Type("#issuer", provider.URL)
	tab.Type("#client-id", provider.ClientID)
	tab.Type("#client-secret", provider.Secret)
	tab.Type("#domains", "acme.test")
	tab.Click("input[name=createsUsers]")
	tab.Follow("form[action='/settings/signin'] button[type=submit]")
	tab.Sees("#notices", "Company sign-in saved")
	tab.Size(390, 900) // where the redirect address has to be scrolled
	s.sound(t, "signin-company-set")
	tab.Size(1440, 900)

	guest := browser.Open(t, s.replica.PublicURL())
	guest.Go("/signin?next=%2Faccount")
	guest.Type("#email", "grace@acme.test")
	guest.Click("button[formaction='/signin/company']")
	guest.Waits(`location.pathname === "/account"`)
	guest.Sees("#main", "Grace")
	if bad := guest.Bad(); bad != "" {
		t.Error(bad)
	}
	// For another proof, the provider asks again.
	s.env.Advance(account.ReauthFresh * 2)
	guest.Go("/account/prove?next=%2Faccess")
	guest.Click("form[action='/account/prove/company'] button")
	guest.Waits(`location.pathname === "/access"`)
	// From a form, the provider asks in another window; what was typed is sent after that.
	guest.Go("/account")
	s.env.Advance(account.ReauthFresh * 2)
	guest.Type("form[action='/account/password'] input[name=password]", "another long password")
	guest.Type("form[action='/account/password'] input[name=again]", "another long password")
	guest.Click("form[action='/account/password'] button[type=submit]")
	guest.Sees("#prove", "Sign in again with")
	guest.Click("#prove form[action='/account/prove/company'] button")
	guest.Sees("#notices", "The password is changed")
}

// A passkey is added, is then asked for at sign-in and before what is
// dangerous, and a recovery code stands in for it once.
func TestPasskeys_SignInAndProof(t *testing.T) {
	t.Parallel()
	s := newSite(t, access.Settings{DeviceCommands: true})
	tab := s.tab
	tab.Authenticator()
	tab.SignIn(s.admin.Email, servertest.Password)
	tab.Go("/account/passkeys/new")
	s.sound(t, "passkey-new")
	tab.Type("#name", "My key")
	tab.Click("form[data-passkey=create] button[type=submit]")
	tab.Sees("#main", "Recovery codes")
	codes := strings.Fields(tab.Text("#shown-codes"))
	if len(codes) != 10 {
		t.Fatalf("%d recovery codes", len(codes))
	}
	s.sound(t, "recovery-codes")
	tab.Go("/account")
	tab.Sees("#main", "My key")
	s.sound(t, "account-passkey")

	signOut := func() {
		tab.Eval(`fetch("/signout", {method: "POST"}).then(() => "")`)
		tab.SignIn(s.admin.Email, servertest.Password)
		tab.Sees("main", "Second factor")
	}
	signOut()
	s.sound(t, "signin-second")
	tab.Click("form[data-passkey=get] button[type=submit]")
	tab.Waits(`location.pathname === "/"`)

	s.env.Advance(account.ReauthFresh * 2)
	gate := tab.Within(3, "/")
	tab.Agrees(false)
	tab.Follow("a[href='/access']")
	tab.Click("#gate-destructiveCommands button[type=submit]")
	tab.Sees("#prove", "Nothing was confirmed")
	s.sound(t, "prove-passkey")
	tab.Agrees(true)
	tab.Click("#prove form[data-passkey=get] button[type=submit]")
	tab.Sees("#notices", "Destructive commands: on")
	gate("opening a gate")

	for i, wanted := range []string{`location.pathname === "/"`, `document.body.innerText.includes("second factor was not right")`} {
		signOut()
		tab.Type("#code", strings.ToUpper(codes[0]))
		tab.Follow("form:not([data-passkey]) button[type=submit]")
		tab.Waits(wanted)
		if i == 0 {
			tab.Go("/account")
			tab.Sees("#main", "9 recovery codes left")
		}
	}
}

// The company is bound to the platform, by way of the vendor's page; left half
// way, it is gone on with, also where the platform failed on the way back.
func TestConnect_Browser(t *testing.T) {
	t.Parallel()
	s := newSite(t, access.Settings{})
	s.env.Policy(company(t, s), "Office phones", policy.Platform)
	tab := s.tab
	tab.SignIn(s.admin.Email, servertest.Password)
	tab.Go("/")
	tab.Sees("#main", "Welcome to Muster")
	tab.Sees("#overview", "Connect to the platform")
	tab.Go("/setup")
	s.sound(t, "setup-empty")
	tab.Go("/settings/platform")
	tab.Sees("#main", "Not connected")
	tab.Follow("form[action='/settings/platform'] button")
	tab.Sees("#main", "Step 2 of 3")
	s.sound(t, "connecting")
	page := tab.Eval(`document.querySelector("#signup").href`)
	tab.Go("/settings/platform")
	tab.Sees("#main", "Started, not finished")
	s.sound(t, "platform-begun")
	tab.Follow("a[href='/settings/platform/signup']")
	if again := tab.Eval(`document.querySelector("#signup").href`); again != page {
		t.Errorf("another sign-up: %s, not %s", again, page)
	}
	tab.Follow("#signup")
	tab.Sees("body", "Bring Android to work")
	s.env.Fault(emulator.Fault{Method: "enterprises.create", Status: 503})
	tab.Follow("button[type=submit]")
	tab.Waits(`location.pathname === "/settings/platform"`)
	tab.Sees("#notices", "did not answer as it should")
	tab.Sees("#main", "Signed up, not connected yet")
	s.sound(t, "platform-returned")
	tab.Follow("form[action='/settings/platform/finish'] button")
	tab.Sees("#notices", "Connected. 1 policy sent to Google.")
	tab.Sees("#main", "Connected")
	s.sound(t, "platform-connected")
	if c := company(t, s); !c.Connected() {
		t.Error("the company is not connected")
	}
	tab.Go("/activity?area=company")
	tab.Sees("tbody", "connected to the platform")
}

// People who may do little see what is missing, and who can help; nothing throws.
func TestPages_LimitedUsers(t *testing.T) {
	t.Parallel()
	s := newSite(t, access.Settings{})
	viewer := s.env.Browser(company(t, s), account.Viewer)
	s.tab.SignIn(viewer.User.Email, servertest.Password)
	for i, path := range []string{"/access", "/activity", "/users", "/settings", "/settings/signin", "/setup", "/access/keys/new"} {
		s.tab.Go(path)
		s.tab.Sees("main", "need the permission to")
		s.sound(t, fmt.Sprintf("viewer-%d", i))
	}
}

// Two assets of one serial number are compared before one is kept, and a code
// to enroll one again is shown.
func TestSameSerial_IsComparedBeforeMerging(t *testing.T) {
	t.Parallel()
	needs.Chromium().Of(t)
	env := servertest.New(t)
	replica := env.Start(servertest.OnLocalhost(t))
	acme := env.NewAgentSite("acme", "CAMERA=BLOCK")
	same := func(s *simulated.State) { s.Facts.SerialNumber = "SN-same" }
	old, reset := acme.AgentDevice(replica, same), acme.AgentDevice(replica, same)
	old.MustCheckIn()
	reset.MustCheckIn()
	s := tenant{env, replica, env.Browser(acme.Company, account.Admin).User, browser.Open(t, replica.PublicURL())}
	tab := s.tab
	tab.SignIn(s.admin.Email, servertest.Password)
	tab.Go("/devices/" + old.AssetID)
	tab.Sees("#body", "Same serial number as")
	s.sound(t, "same-serial")
	tab.Follow("a[href*='/merge?other=']")
	tab.Sees("#main", old.AssetID)
	tab.Sees("#main", reset.AssetID)
	tab.Sees("#main", "cannot be undone")
	tab.Size(390, 900)
	s.sound(t, "merge-390")
	if wide := tab.Eval(`String(document.documentElement.scrollWidth)`); wide != "390" {
		t.Errorf("the page is %s pixels wide in a window of 390", wide)
	}
	tab.Size(1440, 900)
	s.sound(t, "merge-1440")
	confirm := "#confirm-" + old.AssetID
	name := tab.Eval(`document.querySelector("[data-wants='confirm-` + old.AssetID + `']").dataset.text`)
	tab.Type(confirm, name+"x")
	tab.Waits(`document.querySelector("[data-wants='confirm-` + old.AssetID + `']").disabled`)
	tab.Press("\b\r") // with the keyboard alone
	tab.Sees("#notices", "Assets merged")
	tab.Follow("a[href$='/enroll']")
	tab.Sees("#main", "is no longer managed")
	tab.Size(390, 900)
	s.sound(t, "enroll-again-390")
	tab.Size(1440, 900)
	tab.Scripts(false)
	tab.Go("/devices/" + old.AssetID + "/enroll")
	tab.Type(confirm, name)
	tab.Follow("form[action$='/enroll'] button")
	tab.Sees("#main", "Works once")
	tab.Scripts(true)
	s.sound(t, "enroll-again")
}

// A form that takes a proof of identity asks for it in a dialog, keeps what was typed, and
// is sent once the proof is given; a wrong password is asked for again.
func TestProof_KeepsWhatWasTyped(t *testing.T) {
	t.Parallel()
	s := newSite(t, access.Settings{DeviceCommands: true})
	tab := s.tab
	tab.SignIn(s.admin.Email, servertest.Password)
	tab.Go("/settings")
	s.env.Advance(account.ReauthFresh * 2)
	tab.Eval(`(document.querySelector("#company-name").value = "", "")`)
	tab.Type("#company-name", "Another name")
	tab.Eval(`(document.querySelector("#keep-activity").value = "", "")`)
	tab.Type("#keep-activity", "40")
	tab.Click("form[action='/settings'] button[type=submit]")
	tab.Sees("#prove", "Your password")
	tab.Waits(`document.getAnimations().length === 0`)
	s.sound(t, "prove-dialog")
	tab.Size(390, 900)
	s.sound(t, "prove-dialog-small")
	tab.Size(1440, 900)
	tab.Type("#prove-password", "not the password")
	tab.Click("#prove form button[type=submit]")
	tab.Sees("#prove", "did not prove it")
	if typed := tab.Eval(`document.querySelector("#company-name").value`); typed != "Another name" {
		t.Errorf("what was typed became %q", typed)
	}
	tab.Type("#prove-password", servertest.Password)
	tab.Click("#prove form button[type=submit]")
	tab.Sees("#notices", "takes effect in 24 hours")
	tab.Sees("#main", "Another name")

	s.env.Advance(account.ReauthFresh * 2)
	gate := tab.Within(3, "/access")
	tab.Click("#gate-destructiveCommands button[type=submit]")
	tab.Type("#prove-password", servertest.Password)
	tab.Click("#prove form button[type=submit]")
	tab.Sees("#notices", "Destructive commands: on")
	gate("opening a gate")
}

// TestUserForm_RightOfTheUserAlone: changing one right selects the user's own rights.
func TestUserForm_RightOfTheUserAlone(t *testing.T) {
	t.Parallel()
	_, _, tab := enter(t, account.Admin)
	tab.Go("/users/new")
	tab.Type("#email", "vera@acme.test")
	tab.Click("details summary:not(header summary)")
	tab.Click("input[name=right][value=view-activity]")
	if tab.Eval(`String(document.querySelector("input[name=custom]").checked)`) != "true" {
		t.Error("the box for the user's own rights is not ticked")
	}
	tab.Follow("main form button[type=submit]")
	tab.Sees("h1", "Invitation for")
	tab.Go("/users")
	tab.Sees("tr", "Viewer, changed")
}

// TestUserForm_RoleAgain: unticking the box for the user's own rights takes back what was changed among them.
func TestUserForm_RoleAgain(t *testing.T) {
	t.Parallel()
	tenant, _, tab := enter(t, account.Admin)
	tab.Go("/users/new")
	tab.Type("#email", "vera@acme.test")
	tab.Click("input[name=role][value=operator]")
	tab.Click("details summary:not(header summary)")
	tab.Click("input[name=right][value=destroy-devices]")
	tab.Click("input[name=custom]")
	if tab.Eval(`String(document.querySelector("input[name=right][value=destroy-devices]").checked)`) != "false" {
		t.Error("the right is still ticked")
	}
	tab.Follow("main form button[type=submit]")
	tab.Sees("h1", "Invitation for")
	users, err := tenant.Env.DB().Users(t.Context(), tenant.Company.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range users {
		if rights, _ := account.Operator.Rights(); u.Email == "vera@acme.test" && (u.Role != account.Operator || u.Rights != rights) {
			t.Errorf("role %s with the rights %v, want %v", u.Role, u.Rights.Names(), rights.Names())
		}
	}
}
