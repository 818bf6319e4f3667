package portal_test

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/enrollment"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/servertest"
)

// office is a company with two policies and devices of its own making.
type office struct {
	*servertest.Tenant
	replica *servertest.Replica
	base    string
	other   policy.Policy
}

func newOffice(t *testing.T) *office {
	t.Helper()
	return officeOf(servertest.New(t))
}

func officeOf(env *servertest.Env) *office {
	o := &office{Tenant: env.NewTenant("acme"), replica: env.Start()}
	o.base = o.replica.PublicURL()
	o.other = env.Policy(o.Company, "The other policy", policy.Platform)
	return o
}

// device is a platform device that says what it is told to say.
func (o *office) device(t *testing.T, key, serial, text string, p policy.Policy) asset.Asset {
	t.Helper()
	now := o.Now()
	report, err := json.Marshal(map[string]any{"reportedAt": now, "batteryLevel": 50, "securityPosture": text, "networkOperatorName": text,
		"nonComplianceDetails": []map[string]string{{"settingName": text, "packageName": text, "nonComplianceReason": text}}})
	if err != nil {
		t.Fatal(err)
	}
	change, err := o.DB().Observe(t.Context(), enrollment.Observation{CompanyID: o.Company.ID, Device: "enterprises/LC/devices/" + key,
		Management: asset.Platform, Ownership: asset.CompanyOwned, Mode: asset.FullyManaged, SerialNumber: serial, Brand: text, Model: text,
		Enrolling: true, EnrolledAt: now, ReportedAt: now, ObservedAt: now, PolicyID: p.ID, AppliedPolicy: p.ID, AppliedVersion: 1,
		Specifications: map[string]string{"manufacturer": text, "osVersion": text, "securityPatchLevel": text, "imei": text},
		Apps:           []asset.App{{Package: "com.example.<i>" + key, Name: text, Version: text, Source: text}},
		StatusReport:   report, Location: &asset.Location{Latitude: 52.5, Longitude: 13.4, AccuracyMeters: 20, ReportedAt: now}})
	if err != nil {
		t.Fatal(err)
	}
	a, err := o.DB().Asset(t.Context(), o.Company.ID, change.AssetID)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (o *office) person(t *testing.T, role account.Role, policies ...string) *servertest.Browser {
	t.Helper()
	p := o.Browser(o.Company, role, policies...)
	p.SignIn(o.base)
	return p
}

// pages are the pages of this package's sections, with a device's id in them.
func pages(id string) []string {
	device := "/devices/" + id
	return []string{"/", "/devices", "/devices?q=a&tag=b&status=ACTIVE",
		"/devices?cols=serial&cols=ownership&cols=management&cols=created&cols=tags&cols=os",
		device, device + "/commands", device + "/location", device + "/apps", device + "/policy", device + "/activity", device + "/quick",
		"/commands", "/bulk?command=lock&id=" + id, "/enrol", "/search?q=a", "/nowhere"}
}

func (o *office) get(t *testing.T, p *servertest.Browser, path string, status int, headers ...string) string {
	t.Helper()
	answer := p.Send(o.base+path, nil, headers...)
	if answer.Status != status {
		t.Fatalf("%s: %d, want %d: %.600s", path, answer.Status, status, answer.Body)
	}
	return string(answer.Body)
}

func TestSignIn_RequiredForEveryPage(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	a := o.device(t, "d1", "S1", "Phone", o.Policy)
	stranger := o.Browser(o.Company, account.Admin)
	for _, path := range pages(a.ID) {
		answer := stranger.Send(o.base+path, nil)
		if path == "/nowhere" {
			answer.Want(t, 404)
			continue
		}
		answer.Want(t, 303)
		if to := answer.Header.Get("Location"); !strings.HasPrefix(to, "/signin") {
			t.Errorf("%s: sent to %q", path, to)
		}
	}
	stranger.Send(o.base+"/devices/"+a.ID+"/commands/lock_device", url.Values{"once": {"x"}}).Want(t, 303)
	if n := o.history(t, a); n != 0 {
		t.Errorf("a stranger sent %d commands", n)
	}
}

func (o *office) history(t *testing.T, a asset.Asset) int {
	t.Helper()
	page, err := o.DB().OpenOf(t.Context(), a.ID)
	if err != nil {
		t.Fatal(err)
	}
	return len(page)
}

// TestHeaders_ContentSecurityPolicy: every page forbids inline scripts and styles, and has none.
func TestHeaders_ContentSecurityPolicy(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	a := o.device(t, "d1", "S1", "Phone", o.Policy)
	admin := o.person(t, account.Admin)
	for _, path := range pages(a.ID) {
		answer := admin.Send(o.base+path, nil)
		policy := answer.Header.Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "script-src 'self'") ||
			strings.Contains(policy, "unsafe") {
			t.Errorf("%s: policy %q", path, policy)
		}
		walk(t, string(answer.Body), func(tag string, attributes map[string]string, text string) {
			for key := range attributes {
				if key == "style" || strings.HasPrefix(key, "on") {
					t.Errorf("%s: <%s %s> is refused by the policy", path, tag, key)
				}
			}
			if tag == "script" && attributes["src"] == "" || tag == "style" {
				t.Errorf("%s: inline <%s>", path, tag)
			}
			for _, key := range []string{"src", "href", "action"} {
				at := attributes[key]
				if tag == "a" && attributes["rel"] == "noopener noreferrer" && (strings.HasPrefix(at, "https://www.openstreetmap.org/") ||
					strings.HasPrefix(at, "https://www.google.com/maps/")) {
					continue // a person follows it, and only the place goes with them
				}
				if strings.Contains(at, "//") || strings.HasPrefix(at, "javascript:") {
					t.Errorf("%s: <%s %s=%q> leads elsewhere", path, tag, key, at)
				}
			}
		})
	}
}

// walk shows every element of a page.
func walk(t *testing.T, page string, see func(tag string, attributes map[string]string, text string)) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		attributes := map[string]string{}
		for _, a := range n.Attr {
			attributes[a.Key] = a.Val
		}
		text := ""
		if n.FirstChild != nil && n.FirstChild.Type == html.TextNode {
			text = n.FirstChild.Data
		}
		see(n.Data, attributes, text)
	}
}

// corpus is what devices and people might call themselves.
func corpus() []string {
	return []string{
		`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `'"><svg/onload=alert(1)>`, `javascript:alert(1)`,
		`</title><script>alert(1)</script>`, `{{constructor.constructor('alert(1)')()}}`, `<a href="javascript:alert(1)">x</a>`,
		"`${alert(1)}`", `&lt;script&gt;`, `--><script>alert(1)</script>`, `]]><script>alert(1)</script>`, `x" autofocus onfocus="alert(1)`,
		`<iframe srcdoc="<script>alert(1)</script>">`, `<base href=//evil.example>`, `</textarea><script>alert(1)</script>`,
	}
}

// TestEscape_HostileText puts the corpus into every field that devices and
// people supply. No page gets an element or an attribute of it, and each shows
// the text.
func TestEscape_HostileText(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	admin := o.person(t, account.Admin)
	for i, text := range corpus() {
		p := o.Env.Policy(o.Company, fmt.Sprintf("%d%.40s", i, text), policy.Platform)
		a := o.device(t, fmt.Sprint("d", i), fmt.Sprint("S", i), text, p)
		err := o.Admin().Assets.ImportAssets(t.Context(),
			[]asset.Asset{{ID: resource.NewID(), CompanyID: o.Company.ID, CompanySlug: "acme", Identification: text,
				CreatedAt: o.Now(), Tags: []string{text}, CustomData: map[string]string{text: text},
				Specifications: map[string]string{"model": text, "serialNumber": text}}})
		if err != nil {
			t.Fatal(err)
		}
		c, _, err := o.DB().Begin(t.Context(), command.Command{ID: resource.NewID(), CompanyID: o.Company.ID, AssetID: a.ID,
			Epoch: a.Device.Epoch, Type: command.Lock,
			State: command.Prepared, CreatedAt: o.Now(), Actor: access.Actor{Kind: access.APIKey, ID: "key", Prefix: text, Name: text}},
			nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := o.DB().Advance(t.Context(), c.ID, command.Transition{From: []command.State{command.Prepared}, To: command.Failed,
			Outcome: text}); err != nil {
			t.Fatal(err)
		}
		for _, path := range append(pages(a.ID), "/devices?q="+url.QueryEscape(text)+"&tag="+url.QueryEscape(text)+"&policy="+
			url.QueryEscape(text), "/devices?seen="+url.QueryEscape(text)) {
			notRun(t, path, text, o.get(t, admin, path, statusOf(path)))
		}
		if page := o.get(t, admin, "/devices/"+a.ID, 200); !strings.Contains(textOf(t, page), text) {
			t.Errorf("the device's page does not show %q as text", text)
		}
		if page := o.get(t, admin, "/devices/"+a.ID+"/commands", 200); !strings.Contains(textOf(t, page), text) {
			t.Errorf("the history does not show %q as text", text)
		}
	}
}

// notRun fails where a text of the corpus became an element or an attribute of a page.
func notRun(t *testing.T, path, text, page string) {
	t.Helper()
	walk(t, page, func(tag string, attributes map[string]string, inner string) {
		if strings.Contains(inner, "alert(1)") && tag == "script" || tag == "iframe" || tag == "base" {
			t.Errorf("%s: %q became <%s>", path, text, tag)
		}
		for key, value := range attributes {
			address := key == "href" || key == "src" || key == "data-href"
			script := strings.HasPrefix(strings.TrimSpace(strings.ToLower(value)), "javascript:")
			if strings.HasPrefix(key, "on") || address && script {
				t.Errorf("%s: %q became <%s %s=%q>", path, text, tag, key, value)
			}
		}
	})
}

func statusOf(path string) int {
	switch {
	case path == "/nowhere":
		return 404
	case strings.HasPrefix(path, "/devices?seen="): // a filter that there is not
		return 400
	}
	return 200
}

// textOf is the text of a page.
func textOf(t *testing.T, page string) string {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for n := range root.Descendants() {
		if n.Type == html.TextNode {
			b.WriteString(n.Data + " ")
		}
	}
	return b.String()
}

// A page leads nowhere that its reader may not go, and counts nothing that they may not see.
func TestPages_OfferWhatTheReaderMay(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	phone := o.device(t, "d1", "S1", "Phone", o.Policy)
	o.Client(o.replica, access.All)
	reader, keeper := o.person(t, account.Viewer), o.person(t, account.Viewer)
	reader.Change(func(u *account.User) { u.Rights = account.ViewPolicies | account.ManageUsers })
	keeper.Change(func(u *account.User) { u.Rights = account.ViewDevices | account.ManageKeys })
	for _, c := range []struct {
		who       *servertest.Browser
		path, not string
	}{
		{reader, "/", "/access/controls|/devices?policy=|outcomes-table"},
		{reader, "/policies/" + o.Policy.ID, o.Policy.ID + "/devices"},
		{reader, "/users/" + reader.User.ID, "/activity?by="},
		{keeper, "/devices/" + phone.ID, "/policies/" + o.Policy.ID},
		{keeper, "/access", "/activity?actor="},
	} {
		page := o.get(t, c.who, c.path, 200)
		for one := range strings.SplitSeq(c.not, "|") {
			if strings.Contains(page, one) {
				t.Errorf("%s has %s", c.path, one)
			}
		}
	}
	people := map[string]*servertest.Browser{"an administrator of one policy": o.person(t, account.Admin, o.Policy.ID)}
	for _, right := range []account.Right{account.DestroyDevices, account.EditPolicies, account.ProvisionDevices, account.ManageCompany} {
		one := o.person(t, account.Viewer)
		one.Change(func(u *account.User) { u.Rights = right })
		people["who may only "+right.Words()] = one
	}
	for name, who := range people {
		page := o.get(t, who, "/", 200)
		if who.User.Rights.Has(account.ManageCompany) {
			page += o.get(t, who, "/access/controls", 200)
		}
		_, main, _ := strings.Cut(page, "</nav>") // the navigation marks what is barred
		for _, link := range pageLink.FindAllStringSubmatch(main, -1) {
			if answer := who.Send(o.base+strings.ReplaceAll(link[1], "&amp;", "&"), nil); answer.Status >= 400 {
				t.Errorf("%s is led to %s: %d", name, link[1], answer.Status)
			}
		}
	}
}

var pageLink = regexp.MustCompile(`href="(/[a-z][^"]*)"`)

// What is about all of the company's devices is refused to a person who is limited to policies.
func TestPages_WholeCompanyIsNotForALimitedUser(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	limited := o.person(t, account.Admin, o.Policy.ID)
	var hook struct{ ID string }
	o.CLI(&hook, "webhook", "create", "--company", "acme", "--url", "https://192.0.2.1/hook", "--event", "platform.failing")
	(&desk{office: o, T: t}).disable(hook.ID)
	for _, path := range []string{"/settings/webhooks", "/settings/webhooks/new", "/settings/webhooks/" + hook.ID, "/settings/updates",
		"/devices/import"} {
		if body := o.get(t, limited, path, 403); !strings.Contains(body, "You need the permission to see all policies and devices.") {
			t.Errorf("%s does not say what is missing", path)
		}
	}
	for _, path := range []string{"/settings/webhooks", "/settings/webhooks/" + hook.ID + "/enable", "/settings/updates", "/devices/import",
		"/activity/verify", "/policies", "/policies/" + o.Policy.ID + "/copy"} {
		limited.Send(o.base+path, url.Values{"url": {"https://192.0.2.2/"}, "all": {"true"}}).Want(t, 403)
	}
	for path, not := range map[string]string{"/settings/system": "Commands without a result", "/needs-you": "192.0.2.1",
		"/activity": "Verify chain", "/settings": "/settings/webhooks", "/policies": `data-opens="new-policy"`,
		"/policies/" + o.Policy.ID: `"copy"`} {
		if strings.Contains(o.get(t, limited, path, 200), not) || !strings.Contains(o.get(t, o.person(t, account.Admin), path, 200), not) {
			t.Errorf("%s: %q is to be seen by who sees all policies, alone", path, not)
		}
	}
}

// TestPolicies_LimitedUserSeesOwn: a person who is limited to a policy sees its
// devices, and nothing reveals others.
func TestPolicies_LimitedUserSeesOwn(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	mine := o.device(t, "mine", "MINE-1", "Minephone", o.Policy)
	theirs := o.device(t, "theirs", "THEIRS-1", "Secretphone", o.other)
	limited := o.person(t, account.Manager, o.Policy.ID)
	if page := o.get(t, limited, "/devices", 200); !strings.Contains(page, mine.Identification) ||
		strings.Contains(page, theirs.Identification) {
		t.Error("the list shows too little or too much")
	}
	for _, path := range []string{"/", "/devices?q=Secretphone&size=50", "/devices?policy=" + o.other.ID, "/search?q=Secretphone", "/enrol",
		"/enrol/codes", "/jobs", "/devices/export.csv",
		"/devices/export.csv?id=" + theirs.ID, "/enrol/joined?since=0&policy=" + o.other.ID,
		"/bulk?command=lock&id=" + mine.ID + "&id=" + theirs.ID} {
		body := o.get(t, limited, path, 200)
		body = strings.ReplaceAll(strings.ReplaceAll(body, "q=Secretphone", ""), "search=Secretphone", "")
		body = strings.ReplaceAll(strings.ReplaceAll(body, `value="Secretphone"`, ""), "“Secretphone”", "")
		for _, secret := range []string{"Secretphone", theirs.ID, "THEIRS-1", o.other.Name} {
			if secret == theirs.ID && strings.Contains(path, theirs.ID) {
				continue
			}
			if strings.Contains(body, secret) {
				t.Errorf("%s tells of %s", path, secret)
			}
		}
	}
	for _, path := range pages(theirs.ID)[4:11] {
		o.get(t, limited, path, 404)
	}
	limited.Send(o.base+"/devices/"+theirs.ID+"/commands/lock_device", url.Values{"once": {"x"}}).Want(t, 404)
	limited.Send(o.base+"/jobs", url.Values{"once": {resource.NewID()}, "command": {"lock"}, "id": {theirs.ID}}).Want(t, 303)
	if listed := o.get(t, limited, "/jobs", 200); !strings.Contains(listed, "no job yet") {
		t.Error("there is a job for a device that the person may not see")
	}
	if n := o.history(t, theirs); n != 0 {
		t.Errorf("%d commands reached a device that the person may not see", n)
	}
}

// TestIsolation_OtherCompanies: nothing of a company is there for the people of another.
func TestIsolation_OtherCompanies(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	a := o.device(t, "d1", "S1", "Phone", o.Policy)
	elsewhere := o.Env.Company("elsewhere", servertest.Everything())
	spy := o.Browser(elsewhere, account.Admin)
	spy.SignIn(o.base)
	for _, path := range pages(a.ID)[4:11] {
		o.get(t, spy, path, 404)
	}
	for _, path := range []string{"/", "/devices", "/devices?q=S1", "/search?q=Phone", "/devices/export.csv", "/enrol", "/enrol/codes",
		"/jobs", "/enrol/joined?since=0&policy=" + o.Policy.ID} {
		if body := o.get(t, spy, path, 200); strings.Contains(body, a.ID) || strings.Contains(body, o.Policy.Name) {
			t.Errorf("%s tells of another company", path)
		}
	}
	spy.Send(o.base+"/devices/"+a.ID+"/commands/wipe_device", url.Values{"confirm": {a.Identification}}).Want(t, 404)
	spy.Send(o.base+"/enrol", url.Values{"policy": {o.Policy.ID}, "personalUsage": {"DISALLOWED"}}).Want(t, 404)
}

// TestRights: a user without a right sees which permission is missing
// and who can grant it, and it is not done.
func TestRights(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	a := o.device(t, "d1", "S1", "Phone", o.Policy)
	boss := o.person(t, account.Admin)
	boss.Change(func(u *account.User) { u.Name = "Grace Granter" })
	viewer, operator := o.person(t, account.Viewer), o.person(t, account.Operator)

	page := o.get(t, viewer, "/devices/"+a.ID, 200)
	if !strings.Contains(page, "You need the permission to send commands to devices. Ask Grace Granter.") ||
		strings.Contains(page, `action="/devices/`+a.ID+`/commands/lock_device"`) {
		t.Error("a viewer's device page does not say what is missing, or offers it")
	}
	for _, c := range []struct {
		who       *servertest.Browser
		operation string
	}{{viewer, "lock_device"}, {viewer, "wipe_device"}, {operator, "wipe_device"}, {operator, "reset_screen_lock"}} {
		t.Run(c.operation, func(t *testing.T) {
			answer := c.who.Send(o.base+"/devices/"+a.ID+"/commands/"+c.operation, url.Values{"confirm": {a.Identification}})
			if answer.Status != 403 || !strings.Contains(string(answer.Body), "Ask Grace Granter.") {
				t.Errorf("%s: %d", c.operation, answer.Status)
			}
		})
	}
	o.get(t, viewer, "/enrol", 403)
	o.get(t, viewer, "/bulk?command=lock&id="+a.ID, 403)
	viewer.Send(o.base+"/enrol", url.Values{"policy": {o.Policy.ID}}).Want(t, 403)
	if n := o.history(t, a); n != 0 {
		t.Errorf("%d commands were sent", n)
	}
	blind := o.person(t, account.Viewer)
	blind.Change(func(u *account.User) { u.Rights = account.ViewActivity })
	for _, path := range append(pages(a.ID)[1:11], "/devices/export.csv") {
		o.get(t, blind, path, 403)
	}
	if body := o.get(t, blind, "/", 200); strings.Contains(body, a.ID) ||
		!strings.Contains(body, "You need the permission to see devices") {
		t.Error("the overview of a user who may not see devices")
	}
}

// TestCommands_DestructiveAskForTheName: without the device's name nothing is sent,
// and a form that is sent twice commands once.
func TestCommands_DestructiveAskForTheName(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	device := o.Devices(o.replica, servertest.FullyManaged(), 1)[0]
	admin := o.person(t, account.Admin)
	a, err := o.DB().Asset(t.Context(), o.Company.ID, device.AssetID)
	if err != nil {
		t.Fatal(err)
	}
	at := o.base + "/devices/" + a.ID + "/commands/"
	wrong := admin.Send(at+"wipe_device", url.Values{"confirm": {"something else"}, "once": {"1"}}).Want(t, 422)
	if !strings.Contains(string(wrong.Body), "Nothing was sent") {
		t.Error("the page does not say that nothing was sent")
	}
	for range 2 {
		admin.Send(at+"reset_screen_lock", url.Values{"confirm": {" " + strings.ToUpper(a.Identification) + " "}, "once": {"2"}}).Want(t,
			303)
	}
	history := o.Client(o.replica, access.All).History(a.ID)
	if len(history) != 1 || history[0].Type != "RESET_SCREEN_LOCK" {
		t.Errorf("history: %+v", history)
	}
	admin.Send(at+"no_such_thing", url.Values{}).Want(t, 404)
	admin.Send(o.base+"/jobs", url.Values{"once": {"3"}, "command": {"wipe"}, "id": {a.ID}}).Want(t, 404)
	if page := o.get(t, admin, "/devices/"+a.ID+"/commands", 200); !strings.Contains(page, admin.User.Name) {
		t.Error("the history does not name the person")
	}
}

// TestCommands_NameTheirKey: contract 1.6.
func TestCommands_NameTheirKey(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	device := o.Devices(o.replica, servertest.FullyManaged(), 1)[0]
	key, text := o.KeyRow(o.Company, access.All)
	o.replica.As(text).Post("/assets/"+device.AssetID+"/commands/lock", nil).Want(t, 200)
	page := o.get(t, o.person(t, account.Viewer), "/devices/"+device.AssetID+"/commands", 200)
	for _, want := range []string{"api-key", key.ID, key.Prefix} {
		if !strings.Contains(page, want) {
			t.Errorf("the history does not show %q", want)
		}
	}
	if strings.Contains(page, text) {
		t.Error("the history shows the key itself")
	}
}

// TestExport: exactly what the list shows, and no formulas.
func TestExport(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	formula := `=HYPERLINK("http://evil.example","x")`
	o.device(t, "d1", "S1", formula, o.Policy)
	for i := range 40 {
		o.device(t, fmt.Sprint("other", i), fmt.Sprint("S-", i), "Otherphone", o.other)
	}
	viewer := o.person(t, account.Viewer)
	answer := viewer.Send(o.base+"/devices/export.csv?cols=serial&cols=policy&policy="+o.Policy.ID, nil).Want(t, 200)
	rows, err := csv.NewReader(bytes.NewReader(answer.Body)).ReadAll()
	if err != nil || len(rows) != 2 || strings.Join(rows[0], "|") != "id|Name|Policy|Assigned to|Serial number" {
		t.Fatalf("%v %q", err, rows)
	}
	if got := rows[1][1]; !strings.HasPrefix(got, "'=HYPERLINK") {
		t.Errorf("name %q would be a formula", got)
	}
	if rows[1][4] != "S1" {
		t.Errorf("row %q", rows[1])
	}
	all, err := csv.NewReader(bytes.NewReader(viewer.Send(o.base+"/devices/export.csv?q=otherphone", nil).Want(t, 200).Body)).ReadAll()
	if err != nil || len(all) != 41 {
		t.Errorf("%v, %d rows, want 41", err, len(all))
	}
}

// TestForms_FromOtherSitesAreRefused: another site's form does nothing.
func TestForms_FromOtherSitesAreRefused(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	a := o.device(t, "d1", "S1", "Phone", o.Policy)
	admin := o.person(t, account.Admin)
	for _, path := range []string{"/devices/" + a.ID + "/commands/lock_device", "/enrol", "/views", "/jobs"} {
		admin.Send(o.base+path, url.Values{"once": {"x"}}, "Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example").Want(t, 403)
	}
	if n := o.history(t, a); n != 0 {
		t.Errorf("%d commands were sent", n)
	}
}

// TestEnroll_Form: what is wrong is said at its field, and the password is
// never shown again.
func TestEnroll_Form(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	admin := o.person(t, account.Admin)
	form := url.Values{"policy": {o.Policy.ID}, "personalUsage": {"DISALLOWED"}, "wifiSsid": {" Yard "}, "wifiPassword": {"short"}}
	answer := admin.Send(o.base+"/enrol", form)
	if page := string(answer.Body); answer.Status != 400 || !strings.Contains(page, "wifiPassword-wrong") ||
		strings.Contains(page, "short") && strings.Contains(page, `value="short"`) {
		t.Errorf("%d", answer.Status)
	}
	form.Set("wifiPassword", "long-enough-secret")
	answer = admin.Send(o.base+"/enrol", form).Want(t, 200)
	page := string(answer.Body)
	if !strings.Contains(page, "data:image/png;base64,") || strings.Contains(page, "long-enough-secret") ||
		!strings.Contains(page, "“ Yard ”") {
		t.Error("the code's page")
	}
	const link = "https://enterprise.google.com/android/enroll?et="
	if strings.Contains(page, link) {
		t.Error("the code of a company device can be opened on a phone in use")
	}
	form.Set("personalUsage", "ALLOWED")
	if page = string(admin.Send(o.base+"/enrol", form).Want(t, 200).Body); !strings.Contains(page, link) ||
		!strings.Contains(page, "Work profile of "+o.Company.Name) {
		t.Error("the code of a work profile has no link, or does not say what it is for")
	}
}

// Wi-Fi without a network name is refused at its field: the code would have none of it.
func TestEnroll_WifiWithoutAName(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	admin := o.person(t, account.Admin)
	for field, value := range map[string]string{"wifiPassword": "long-enough-secret", "wifiSecurity": "NONE", "wifiHidden": "yes"} {
		form := url.Values{"policy": {o.Policy.ID}, "personalUsage": {"DISALLOWED"}, "wifiSsid": {""}, field: {value}}
		page := string(admin.Send(o.base+"/enrol", form).Want(t, 400).Body)
		if !strings.Contains(page, `<p id="`+field+`-wrong"`) || !strings.Contains(page, "Needs a network name.") {
			t.Errorf("with %s alone the page does not say at the field that a network name is missing", field)
		}
	}
	form := url.Values{"policy": {o.Policy.ID}, "personalUsage": {"DISALLOWED"}, "wifiSsid": {""}, "wifiSecurity": {""},
		"wifiPassword": {""}}
	admin.Send(o.base+"/enrol", form).Want(t, 200)
}

// TestPages_Weight: a page and all that it loads stay under 200 KB on the wire.
func TestPages_Weight(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	var a asset.Asset
	for i := range 30 {
		a = o.device(t, fmt.Sprint("d", i), fmt.Sprint("S", i), "Phone of a usual name", o.Policy)
	}
	admin := o.person(t, account.Admin)
	linked := regexp.MustCompile(`(?:href|src)="(/static/[^"#]+)`)
	for _, path := range pages(a.ID)[:10] {
		answer := admin.Send(o.base+path, nil, "Accept-Encoding", "gzip")
		weight := len(answer.Body)
		page := string(answer.Body)
		if answer.Header.Get("Content-Encoding") == "gzip" {
			zip, err := gzip.NewReader(bytes.NewReader(answer.Body))
			if err != nil {
				t.Fatal(err)
			}
			plain, err := io.ReadAll(zip)
			if err != nil {
				t.Fatal(err)
			}
			page = string(plain)
		} else {
			t.Errorf("%s is not compressed", path)
		}
		seen := map[string]bool{}
		for _, m := range linked.FindAllStringSubmatch(page, -1) {
			if !seen[m[1]] {
				seen[m[1]] = true
				weight += len(admin.Send(o.base+m[1], nil, "Accept-Encoding", "gzip").Want(t, 200).Body)
			}
		}
		if len(seen) < 6 {
			t.Errorf("%s loads only %v", path, seen)
		}
		if weight > 200<<10 {
			t.Errorf("%s weighs %d KB: %v", path, weight>>10, seen)
		}
		t.Logf("%s: %d KB", path, weight>>10)
	}
}

// TestLive: a page that listens hears of its own device, and of no other.
func TestLive(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	devices := o.Devices(o.replica, servertest.FullyManaged(), 2)
	admin := o.person(t, account.Admin)
	mine, theirs := "command:"+devices[0].AssetID, "command:"+devices[1].AssetID
	events := admin.Stream(t, o.base+"/live?on="+mine)
	elsewhere := o.Env.Company("elsewhere", servertest.Everything())
	spy := o.Browser(elsewhere, account.Admin)
	spy.SignIn(o.base)
	spyEvents := spy.Stream(t, o.base+"/live?on="+mine+"&on="+theirs+"&on=commands&on=assets")
	client := o.Client(o.replica, access.All)
	client.Post("/assets/"+devices[1].AssetID+"/commands/lock", nil).Want(t, 200)
	client.Post("/assets/"+devices[0].AssetID+"/commands/lock", nil).Want(t, 200)
	select {
	case line := <-events:
		if line != "data: "+mine {
			t.Errorf("received %q", line)
		}
	case <-time.After(20 * time.Second):
		t.Error("received nothing")
	}
	select {
	case line := <-spyEvents:
		t.Errorf("another company received %q", line)
	default:
	}
	admin.Send(o.base+"/live", nil).Want(t, http.StatusBadRequest)
}
