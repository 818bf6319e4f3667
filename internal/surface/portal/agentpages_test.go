package portal_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/servertest"
)

// The log of a device is on its page as text, and is downloaded as a file of plain text;
// what cannot be done with a lost device of an agent is said at the buttons.
func TestDevice_OfAnAgent(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	tenant, replica := env.NewAgentSite("acme"), env.Start()
	o := &office{Tenant: tenant, replica: replica, base: replica.PublicURL()}
	phone := tenant.AgentDevice(replica)
	phone.Options.Log.Info("<script>alert(1)</script>")
	phone.MustCheckIn()
	admin := o.person(t, account.Admin)
	path := "/devices/" + phone.AssetID
	if page := o.get(t, admin, path, 200); !strings.Contains(page, "or wipe it") || !strings.Contains(page, ">Logs<") {
		t.Error("the page does not say what is left for a lost device, or has no logs")
	}
	if page := o.get(t, admin, path+"/logs", 200); !strings.Contains(page, "has uploaded no log") {
		t.Error("without a log the tab does not say so")
	}
	tenant.Client(replica, access.All).Post("/assets/"+phone.AssetID+"/commands/upload-log", nil).Want(t, 200)
	phone.MustCheckIn()
	page := o.get(t, admin, path+"/logs", 200)
	if strings.Contains(page, "<script>alert") || !strings.Contains(page, "&lt;script&gt;alert(1)") {
		t.Error("the text is missing, or is not shown as text")
	}
	_, file, _ := strings.Cut(page, path+"/logs/")
	file, _, _ = strings.Cut(file, `"`)
	answer := admin.Send(o.base+path+"/logs/"+file, nil).Want(t, 200)
	if h := answer.Header; h.Get("Content-Type") != "text/plain; charset=utf-8" ||
		!strings.HasPrefix(h.Get("Content-Disposition"), "attachment") ||
		h.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(string(answer.Body), "<script>") {
		t.Errorf("the file: %v, %.100s", h, answer.Body)
	}
	foreign := &office{Tenant: env.NewTenant("beta"), replica: replica, base: o.base}
	foreign.get(t, foreign.person(t, account.Admin), path+"/logs/"+file, 404)
}

// A person sets when devices install updates of their system; what Android would refuse is
// refused in words.
func TestPolicy_SystemUpdateForm(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	p := o.AgentPolicy(o.Company, "Kiosk")
	admin := o.person(t, account.Admin)
	path := "/policies/" + p.ID
	send := func(version, kind, freezes string) {
		t.Helper()
		admin.Send(o.base+path+"/system-update", url.Values{"version": {version}, "type": {kind}, "start": {"23:00"}, "end": {"04:30"},
			"freezes": {freezes}}).Want(t, 303)
	}
	document := func() string {
		t.Helper()
		now, err := o.DB().Policy(t.Context(), o.Company.ID, p.ID)
		if err != nil {
			t.Fatal(err)
		}
		return string(now.Document)
	}
	send("1", policy.Windowed, "11-20 to 01-03\r\n\r\n4-1 to 4-30")
	want :=
		`"systemUpdate":{"type":"WINDOWED","startMinutes":1380,"endMinutes":270,"freezePeriods":[{"startDate":{"month":4,"day":1},"endDate":{"month":4,"day":30}},` +
			`{"startDate":{"month":11,"day":20},"endDate":{"month":1,"day":3}}]}`
	if got := document(); !strings.Contains(got, want) {
		t.Errorf("saved: %s", got)
	}
	if page := o.get(t, admin, path, 200); !strings.Contains(page,
		"installed from 23:00 to 04:30; none in 04-01 to 04-30, 11-20 to 01-03") {
		t.Error("the page does not say what was saved")
	}
	for _, wrong := range []string{"1-1 to 12-31", "soon", "2-30 to 3-1"} {
		send("2", policy.Postpone, wrong)
		if got := document(); !strings.Contains(got, want) {
			t.Errorf("after %q: %s", wrong, got)
		}
	}
	send("2", "", "")
	if got := document(); strings.Contains(got, "systemUpdate") {
		t.Errorf("removed: %s", got)
	}
	admin.Send(o.base+"/policies/"+o.Policy.ID+"/system-update", url.Values{"version": {"1"}, "type": {policy.Postpone}}).Want(t, 303)
	if now, err := o.DB().Policy(t.Context(), o.Company.ID, o.Policy.ID); err != nil ||
		strings.Contains(string(now.Document), "systemUpdate") {
		t.Errorf("a PLATFORM policy took it: %v", err)
	}
}
