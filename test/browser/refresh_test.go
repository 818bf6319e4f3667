package browser_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/test/browser"
	"github.com/musterhq/muster/test/needs"
)

// visitor is a person with a tab, whose account a test changes while a page is open.
func visitor(t *testing.T, role account.Role) (*servertest.Tenant, *servertest.Replica, *servertest.Browser, *browser.Tab) {
	t.Helper()
	needs.Chromium().Of(t)
	env := servertest.New(t)
	tenant, replica := env.NewTenant("acme"), env.Start()
	person, tab := env.Browser(tenant.Company, role), browser.Open(t, replica.PublicURL())
	tab.SignIn(person.User.Email, servertest.Password)
	return tenant, replica, person, tab
}

// A stream of live updates that a proxy, or the service itself, refuses is opened again, and the
// page then shows what changed while it was refused. The proxy's answer does not replace a part of the page.
func TestLiveUpdates_RefusedStreamComesBack(t *testing.T) {
	t.Parallel()
	for name, status := range map[string]int{"proxy": http.StatusBadGateway, "service": http.StatusServiceUnavailable} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			needs.Chromium().Of(t)
			env := servertest.New(t)
			tenant, replica := env.NewTenant("acme"), env.Start()
			to, err := url.Parse(replica.PublicURL())
			if err != nil {
				t.Fatal(err)
			}
			var refused, parts atomic.Int32
			var refuses atomic.Bool
			forward := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				part := r.Header.Get("HX-Source") == "div#rows"
				if refuses.Load() && (r.URL.Path == "/live" || part) {
					if part {
						parts.Add(1)
					} else {
						refused.Add(1)
					}
					w.Header().Set("Retry-After", "30")
					http.Error(w, "the service is away", status)
					return
				}
				forward.ServeHTTP(w, r)
			}))
			t.Cleanup(front.Close)
			tab := browser.Open(t, front.URL)
			tab.SignIn(env.Browser(tenant.Company, account.Admin).User.Email, servertest.Password)
			refuses.Store(true)
			tab.Go("/devices")
			comes := func(asked *atomic.Int32) {
				for end := time.Now().Add(30 * time.Second); asked.Load() == 0 && time.Now().Before(end); {
					time.Sleep(50 * time.Millisecond)
				}
			}
			comes(&refused)
			tab.Eval(`(portal.refresh(null), "")`)
			comes(&parts)
			tab.Sees("#interrupted", "Live updates broke off")
			if parts.Load() == 0 || tab.Eval(`String(document.querySelector("#rows") !== null)`) != "true" {
				t.Errorf("the list was asked for %d times, and an answer of the proxy replaced it", parts.Load())
			}
			device := tenant.Devices(replica, servertest.FullyManaged(), 1)[0]
			refuses.Store(false)
			tab.Waits(`document.documentElement.dataset.live === "on" && document.querySelector("#interrupted").hidden`)
			tab.Waits(`document.querySelector("#row-` + device.AssetID + `") !== null`)
			if bad := tab.Bad(); bad != "" {
				t.Error(bad)
			}
		})
	}
}

// A person whose right is taken away sees one notice, and no device any more, however often
// devices change; also while the pointer is on the list.
func TestLiveUpdates_RightTakenAway(t *testing.T) {
	t.Parallel()
	for name, pointed := range map[string]bool{"read": false, "used": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tenant, replica, person, tab := visitor(t, account.Viewer)
			devices := tenant.Devices(replica, servertest.FullyManaged(), 2)
			tab.Go("/devices")
			tab.Waits(`document.documentElement.dataset.live === "on" && document.querySelector("tr[data-row]") !== null`)
			tab.Eval(counted)
			if pointed {
				tab.Point("#list-box tr[data-row]")
			}
			person.Change(func(u *account.User) { u.Rights &^= account.ViewDevices })
			returns(tenant, devices[0])
			tab.Sees("#notices", "You may not see this")
			asked := tab.Eval(`String(asked)`)
			for range 3 {
				tab.Eval(`(portal.refresh(null), htmx.trigger("#rows", "live"), new Promise((done) => setTimeout(done, 3200, "")))`)
			}
			if got := tab.Eval(`String(document.querySelectorAll("#notices > .note").length)`); got != "1" {
				t.Errorf("%s notices are shown, want 1", got)
			}
			if got := tab.Eval(`String(document.querySelectorAll("tr[data-row]").length)`); got != "0" {
				t.Errorf("%s devices are shown, want 0", got)
			}
			if got := tab.Eval(`String(asked)`); got != asked {
				t.Errorf("the list was asked for %s times, want %s", got, asked)
			}
			if bad := tab.Bad() + tab.Axe(); bad != "" {
				t.Error(bad)
			}
		})
	}
}

// counted counts the answers to the refreshes of the device list.
const counted = `(window.asked = 0, document.addEventListener("htmx:before:response",
	(event) => { if (event.detail.ctx.sourceElement.id === "rows") asked++; }), "")`

// A device that a person no longer sees keeps its page as it was, with one notice that says so.
func TestLiveUpdates_DeviceNotFound(t *testing.T) {
	t.Parallel()
	tenant, replica, person, tab := visitor(t, account.Viewer)
	device := tenant.Devices(replica, servertest.FullyManaged(), 1)[0]
	other := tenant.Env.Policy(tenant.Company, "Other", policy.Platform)
	tab.Go("/devices/" + device.AssetID)
	heading := tab.Text("#head h1")
	tab.Waits(`document.documentElement.dataset.live === "on"`)
	person.Change(func(u *account.User) { u.Policies = []string{other.ID} })
	for range 3 {
		tab.Eval(`(portal.refresh(null), new Promise((done) => setTimeout(done, 700, "")))`)
	}
	tab.Sees("#notices", "Page not found")
	if got := tab.Eval(`String(document.querySelectorAll("#notices > .note").length)`); got != "1" {
		t.Errorf("%s notices are shown, want 1: %s", got, tab.Text("#notices"))
	}
	if got := tab.Text("#head h1"); got != heading {
		t.Errorf("the page shows %q, want %q", got, heading)
	}
	if got := tab.Eval(`String(document.querySelectorAll("[data-gone]").length > 0)`); got != "true" {
		t.Error("the parts of the page are still asked for")
	}
}
