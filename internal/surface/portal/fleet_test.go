package portal_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/enrollment"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/resource"
)

// TestDevices_BySecurityPatch: all devices count, not the latest ones; the
// newest months have a bar each, older ones one together, and who is limited to
// policies sees only theirs.
func TestDevices_BySecurityPatch(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	for n := range 9 {
		a := o.device(t, fmt.Sprint("d", n), fmt.Sprint("S", n), "Phone", o.Policy)
		if _, err := o.DB().Observe(t.Context(), enrollment.Observation{CompanyID: o.Company.ID, Device: a.Device.Name, ObservedAt: o.Now(),
			ReportedAt:     o.Now(),
			Specifications: map[string]string{"securityPatchLevel": fmt.Sprintf("2026-%02d-05", 1+n)}}); err != nil {
			t.Fatal(err)
		}
	}
	o.device(t, "silent", "S10", "Phone", o.other)
	page := o.get(t, o.person(t, account.Admin), "/", 200)
	for _, want := range []string{"2026-09", "2026-05", "before 2026-05", "not reported"} {
		if !strings.Contains(page, ">"+want+"<") {
			t.Errorf("no bar of %q", want)
		}
	}
	if strings.Contains(page, ">2026-04<") {
		t.Error("an old month has a bar of its own")
	}
	page = o.get(t, o.person(t, account.Viewer, o.other.ID), "/", 200)
	if strings.Contains(page, "2026-09") || !strings.Contains(page, ">not reported<") {
		t.Error("a person who is limited to a policy sees other policies' devices, or not their own")
	}
}

// TestCommands_Open: the overview's figure leads to the commands that it counts.
func TestCommands_Open(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	a, hidden := o.device(t, "d1", "S1", "Phone of <b>Ada</b>", o.Policy), o.device(t, "d2", "S2", "Tablet", o.other)
	for _, c := range []struct {
		id    string
		epoch int
		kind  command.Type
		ago   time.Duration
	}{{a.ID, a.Device.Epoch, command.Reboot, 2 * time.Hour}, {a.ID, a.Device.Epoch, command.Lock, time.Minute},
		{a.ID, a.Device.Epoch, command.Shutdown, 31 * 24 * time.Hour},
		{hidden.ID, hidden.Device.Epoch, command.StatusReport, 3 * time.Hour}} {
		t.Run(c.id, func(t *testing.T) {
			if _, _, err := o.DB().Begin(t.Context(), command.Command{ID: resource.NewID(), CompanyID: o.Company.ID, AssetID: c.id,
				Epoch: c.epoch, Type: c.kind,
				State: command.Prepared, CreatedAt: o.Now().Add(-c.ago), Actor: access.Actor{Kind: access.User, ID: "u", Name: "Ada"}},
				nil); err != nil {
				t.Fatal(err)
			}
		})
	}
	admin := o.get(t, o.person(t, account.Admin), "/commands", 200)
	for text, want := range map[string]bool{"Restart": true, "Refresh report": true, "&lt;b&gt;Ada": true, ">Lock<": false,
		">Shut down<": false} {
		t.Run(text, func(t *testing.T) {
			if strings.Contains(admin, text) != want {
				t.Errorf("%q is listed: %v", text, !want)
			}
		})
	}
	limited := o.get(t, o.person(t, account.Viewer, o.Policy.ID), "/commands", 200)
	if !strings.Contains(limited, "Restart") || strings.Contains(limited, "Refresh report") {
		t.Error("a person who is limited to a policy does not see just its commands")
	}
	if overview := o.get(t, o.person(t, account.Admin), "/", 200); !strings.Contains(overview, `href="/commands"`) {
		t.Error("the figure does not lead there")
	}
}

// TestDevices_FilterByPlaceAndEnrollment: what the filters say is what the list shows.
func TestDevices_FilterByPlaceAndEnrollment(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	here := o.device(t, "d1", "S1", "Phone", o.Policy)
	gone := o.device(t, "d2", "S2", "Tablet", o.Policy)
	if err := o.DB().MarkDeleted(t.Context(), gone.ID, gone.Device.Epoch, o.Now()); err != nil {
		t.Fatal(err)
	}
	admin := o.person(t, account.Admin)
	for path, want := range map[string][2]bool{
		"/devices":                            {true, true},
		"/devices?status=ENROLLED":            {true, false},
		"/devices?status=ENROLLED&place=day":  {true, false},
		"/devices?place=week":                 {true, false},
		"/devices?place=none":                 {false, false},
		"/devices?status=DELETED":             {false, true},
		"/devices?place=week&status=INACTIVE": {false, false},
	} {
		t.Run(path, func(t *testing.T) {
			page := o.get(t, admin, path, 200)
			if got := [2]bool{strings.Contains(page, "row-"+here.ID), strings.Contains(page, "row-"+gone.ID)}; got != want {
				t.Errorf("%s shows %v, want %v", path, got, want)
			}
		})
	}
}

// The forms of the list keep what its address asks for, besides their own fields: also a policy that is named as in the API, or
// that the form does not offer, the order, and the size of a page.
func TestDevices_FormsKeepTheList(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	admin := o.person(t, account.Admin)
	const rest = "archived=true&cols=os&cols=serial&density=compact&lost=false&patch=2026-09&size=50&sort=identification%2Casc&tag=a&tag=b"
	const app, fields = "app=com.example&appBelow=7", "management=PLATFORM&place=day&q=ab&status=ACTIVE"
	for policy, offered := range map[string]string{o.Policy.ID: o.Policy.ID, o.Policy.PathName(): o.Policy.ID, "gone": "gone",
		"enterprises/other/policies/" + o.Policy.ID: "enterprises/other/policies/" + o.Policy.ID} {
		page := o.get(t, admin, "/devices?"+rest+"&"+app+"&"+fields+"&page=3&policy="+url.QueryEscape(policy), 200)
		for form, want := range map[string]string{`role="search"`: rest + "&" + app,
			`id="columns"`: strings.ReplaceAll(rest, "cols=os&cols=serial&density=compact&", "") + "&" + app + "&" + fields + "&policy=" + policy,
			`id="by-app"`:  rest + "&" + fields + "&policy=" + policy} {
			_, after, _ := strings.Cut(page, form)
			inputs, _, _ := strings.Cut(after, "</form>")
			got := url.Values{}
			hidden := regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]+)"`)
			for _, found := range hidden.FindAllStringSubmatch(inputs, -1) {
				got.Add(found[1], found[2])
			}
			if wanted, err := url.ParseQuery(want); err != nil || got.Encode() != wanted.Encode() {
				t.Errorf("the form %s of policy %q keeps\n%s, want\n%s", form, policy, got.Encode(), wanted.Encode())
			}
		}
		if chosen := regexp.MustCompile(`<option value="`+offered+`" selected>`).FindAllString(page, -1); len(chosen) != 1 {
			t.Errorf("the policy %q is chosen %d times, want 1", policy, len(chosen))
		}
		if says := strings.Contains(page, "Policy: "+o.Policy.Name); says != (offered == o.Policy.ID) {
			t.Errorf("the list of policy %q names it: %t", policy, says)
		}
	}
}

// TestDevices_ListAsCurl: the command asks for what the list shows.
func TestDevices_ListAsCurl(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	admin := o.person(t, account.Admin)
	for path, want := range map[string]string{
		"/devices":                         "/api/v1/assets&#39;",
		"/devices?status=ACTIVE":           "/api/v1/assets?status=ACTIVE&#39;",
		"/devices?status=ENROLLED":         "/api/v1/assets&#39;",
		"/devices?sort=identification,asc": "/api/v1/assets?sort=identification%2Casc&#39;",
		"/devices?policy=" + o.Policy.ID + "&q=ab": "/api/v1/assets?policy=" + strings.ReplaceAll(o.Policy.PathName(), "/", "%2F") +
			"&amp;search=ab&#39;",
		"/devices?policy=gone": "/api/v1/assets?policy=gone&#39;",
	} {
		t.Run(path, func(t *testing.T) {
			if page := o.get(t, admin, path, 200); !strings.Contains(page, want) {
				t.Errorf("%s has no %s", path, want)
			}
		})
	}
}

// TestDevice_Apps: what it reports beside what its policy says, and what is
// missing.
func TestDevice_Apps(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	p := o.Env.Policy(o.Company, "Kiosks", policy.Platform)
	document := json.RawMessage(`{"applications":[{"packageName":"com.acme.till","installType":"FORCE_INSTALLED"},
		{"packageName":"com.acme.absent","installType":"FORCE_INSTALLED"},{"packageName":"com.acme.game","installType":"BLOCKED"},
		{"packageName":"com.acme.offered","installType":"AVAILABLE"}]}`)
	p.Document = document
	if _, err := o.DB().SavePolicy(t.Context(), p, p.Version, policy.Revision{SavedAt: o.Now(), Origin: policy.FromPortal}); err != nil {
		t.Fatal(err)
	}
	a := o.device(t, "d1", "S1", "Phone", p)
	if _, err := o.DB().Observe(t.Context(), enrollment.Observation{CompanyID: o.Company.ID, Device: a.Device.Name, ObservedAt: o.Now(),
		ReportedAt: o.Now(),
		Apps: []asset.App{{Package: "com.acme.game", Name: "Game", Version: "3.1"},
			{Package: "com.acme.till", Name: "Till", Version: "2.0", Source: "INSTALLED_FROM_PLAY_STORE"},
			{Package: "com.other", Removed: true}}}); err != nil {
		t.Fatal(err)
	}
	admin := o.person(t, account.Admin)
	page := o.get(t, admin, "/devices/"+a.ID+"/apps", 200)
	for text, want := range map[string]bool{"2 apps are": true, ">Till<": true, ">2.0<": true, "Play Store": true, "com.acme.absent": true,
		"Not installed":          true,
		"Installed, but blocked": true, ">Removed<": true, "com.acme.offered": false} {
		t.Run(text, func(t *testing.T) {
			if strings.Contains(page, text) != want {
				t.Errorf("%q: %v", text, !want)
			}
		})
	}
	page = o.get(t, admin, "/devices/"+a.ID+"/apps?q=TILL", 200)
	if !strings.Contains(page, ">Till<") || strings.Contains(page, ">Game<") {
		t.Error("the search does not find what it asks for")
	}
	if page = o.get(t, admin, "/devices/"+a.ID+"/apps?q=nothing", 200); !strings.Contains(page, "No app matches") {
		t.Error("nothing found is not said")
	}
}

// TestDevice_BehindItsPolicy: the head of its page says so, on every tab; who
// may not see policies is not told of versions.
func TestDevice_BehindItsPolicy(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	p := o.Env.Policy(o.Company, "Field", policy.Platform)
	a := o.device(t, "d1", "S1", "Phone", p)
	admin := o.person(t, account.Admin)
	if page := o.get(t, admin, "/devices/"+a.ID, 200); !strings.Contains(page, "v1 applied<") {
		t.Error("a device that is up to date is not said to be")
	}
	p.Document = json.RawMessage(`{"cameraDisabled":true}`)
	if _, err := o.DB().SavePolicy(t.Context(), p, p.Version, policy.Revision{SavedAt: o.Now(), Origin: policy.FromPortal}); err != nil {
		t.Fatal(err)
	}
	for _, tab := range []string{"", "/commands", "/location?part=head"} {
		if page := o.get(t, admin, "/devices/"+a.ID+tab, 200); !strings.Contains(page, "v1 applied, v2 wanted") {
			t.Errorf("%q does not say that the device is behind", tab)
		}
	}
}
