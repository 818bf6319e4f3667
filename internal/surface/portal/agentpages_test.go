package portal_test

import (
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/test/expect"
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
	send := func(version, kind, freezes string, status int) string {
		t.Helper()
		return string(admin.Send(o.base+path+"/system-update", url.Values{"version": {version}, "type": {kind}, "start": {"23:00"},
			"end": {"04:30"}, "freezes": {freezes}}).Want(t, status).Body)
	}
	document := func() string {
		t.Helper()
		now, err := o.DB().Policy(t.Context(), o.Company.ID, p.ID)
		if err != nil {
			t.Fatal(err)
		}
		return string(now.Document)
	}
	send("1", policy.Windowed, "11-20 to 01-03\r\n\r\n4-1 to 4-30", 303)
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
		if page := send("2", policy.Postpone, wrong, 422); !strings.Contains(page, ">"+wrong+"</textarea>") ||
			!strings.Contains(page, `value="POSTPONE" selected`) || !strings.Contains(page, "data-shown") {
			t.Errorf("after %q the dialog is not open with what was filled in: %.3000s", wrong, page)
		}
		if got := document(); !strings.Contains(got, want) {
			t.Errorf("after %q: %s", wrong, got)
		}
	}
	if page := send("1", policy.Postpone, "5-1 to 5-2", 409); !strings.Contains(page, ">5-1 to 5-2</textarea>") ||
		!strings.Contains(page, "saved version 2 while you edited version 1") || !strings.Contains(page, `name="version" value="2"`) {
		t.Errorf("after a save in between: %.3000s", page)
	}
	send("2", "", "", 303)
	if got := document(); strings.Contains(got, "systemUpdate") {
		t.Errorf("removed: %s", got)
	}
	admin.Send(o.base+"/policies/"+o.Policy.ID+"/system-update", url.Values{"version": {"1"}, "type": {policy.Postpone}}).Want(t, 422)
	if now, err := o.DB().Policy(t.Context(), o.Company.ID, o.Policy.ID); err != nil ||
		strings.Contains(string(now.Document), "systemUpdate") {
		t.Errorf("a PLATFORM policy took it: %v", err)
	}
}

// What a person filled in is still there when the policy's details are not saved.
func TestPolicy_DetailsNotSaved(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	admin := o.person(t, account.Admin)
	send := func(version, name string, status int) string {
		t.Helper()
		return string(admin.Send(o.base+"/policies/"+o.Policy.ID+"/details", url.Values{"version": {version}, "name": {name},
			"description": {"For <b>vans</b>"}, "labels": {"a, b"}, "group": {"north"}}).Want(t, status).Body)
	}
	for what, page := range map[string]string{
		"a name of another policy": send("1", o.other.Name, 422),
		"a version from before":    send("7", "Vans", 409),
	} {
		for _, kept := range []string{"For &lt;b&gt;vans&lt;/b&gt;</textarea>", `value="a, b"`, `value="north"`, "data-shown",
			`role="alert"`} {
			if !strings.Contains(page, kept) {
				t.Errorf("after %s the dialog lacks %s: %.3000s", what, kept, page)
			}
		}
	}
	if page := send("1", " ", 422); !strings.Contains(page, `<p id="details-name-wrong"`) || !strings.Contains(page, "Must not be blank.") {
		t.Error("the dialog does not say at the field that the name is blank")
	}
	send("1", "Vans", 303)
}

// A person who saves a policy's details after another one changes what they changed alone.
func TestPolicy_DetailsOfTwoPeople(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	ada, bea := o.person(t, account.Admin), o.person(t, account.Admin)
	path := o.base + "/policies/" + o.Policy.ID + "/details"
	shown := url.Values{"version": {"1"}, "name": {o.Policy.Name}, "was-name": {o.Policy.Name}, "description": {""},
		"was-description": {""}, "labels": {""}, "was-labels": {""}, "group": {""}, "was-group": {""}}
	form := func(changes ...string) url.Values {
		changed := maps.Clone(shown)
		for i := 0; i < len(changes); i += 2 {
			changed.Set(changes[i], changes[i+1])
		}
		return changed
	}
	ada.Send(path, form("name", "Vans", "labels", "north, south", "group", "fleet")).Want(t, 303)
	page := string(bea.Send(path, form("description", "For vans")).Want(t, 409).Body)
	for _, want := range []string{`name="name" value="Vans"`, `name="labels" value="north, south"`, `name="group" value="fleet"`,
		`>For vans</textarea>`, `name="version" value="2"`, `name="was-name" value="Vans"`, `name="was-description" value=""`,
		"saved version 2 while you edited version 1"} {
		if !strings.Contains(page, want) {
			t.Errorf("the dialog that is open again lacks %s", want)
		}
	}
	shown = url.Values{"version": {"2"}, "name": {"Vans"}, "was-name": {"Vans"}, "description": {"For vans"}, "was-description": {""},
		"labels": {"north, south"}, "was-labels": {"north, south"}, "group": {"fleet"}, "was-group": {"fleet"}}
	bea.Send(path, shown).Want(t, 303)
	now, err := o.DB().Policy(t.Context(), o.Company.ID, o.Policy.ID)
	if err != nil {
		t.Fatal(err)
	}
	expect.Equal(t, "policy", expect.Values{"name": {now.Name, "Vans"}, "description": {now.Description, "For vans"},
		"labels": {strings.Join(now.Labels, "|"), "north|south"}, "group": {now.Group, "fleet"}, "version": {now.Version, 3}})
}

// Labels that the field cannot show stay as they are when other details are saved.
func TestPolicy_LabelWithAComma(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	admin := o.person(t, account.Admin)
	labels := []string{"Berlin, Mitte"}
	_, err := o.Admin().Policies.Save(t.Context(), o.Company.ID, o.Policy.ID, 1, policy.Edit{Labels: &labels},
		policy.Author{Name: "operator"})
	if err != nil {
		t.Fatal(err)
	}
	page := o.get(t, admin, "/policies/"+o.Policy.ID, 200)
	if strings.Contains(page, `name="labels"`) || !strings.Contains(page, "on the command line (--label, --no-labels).") {
		t.Error("the dialog has a field for labels that it cannot show")
	}
	admin.Send(o.base+"/policies/"+o.Policy.ID+"/details", url.Values{"version": {"2"}, "name": {o.Policy.Name},
		"was-name": {o.Policy.Name}, "description": {"new"}, "was-description": {""}, "group": {""}, "was-group": {""}}).Want(t, 303)
	now, err := o.DB().Policy(t.Context(), o.Company.ID, o.Policy.ID)
	if err != nil || !slices.Equal(now.Labels, labels) || now.Description != "new" {
		t.Errorf("labels %q, description %q, %v", now.Labels, now.Description, err)
	}
}

// A person who saves when updates are installed after another one changes what they changed alone. What they filled in and
// the other one's choice does not use is refused, not dropped.
func TestPolicy_SystemUpdateOfTwoPeople(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	p := o.AgentPolicy(o.Company, "Kiosk")
	ada, bea := o.person(t, account.Admin), o.person(t, account.Admin)
	path := o.base + "/policies/" + p.ID + "/system-update"
	form := func(kind, freezes string) url.Values {
		return url.Values{"version": {"1"}, "type": {kind}, "was-type": {""}, "start": {""}, "was-start": {""}, "end": {""},
			"was-end": {""}, "freezes": {freezes}, "was-freezes": {""}}
	}
	ada.Send(path, form(policy.Postpone, "")).Want(t, 303)
	page := string(bea.Send(path, form("", "5-1 to 5-2")).Want(t, 409).Body)
	for _, want := range []string{`value="POSTPONE" selected`, `name="was-type" value="POSTPONE"`, ">5-1 to 5-2</textarea>"} {
		if !strings.Contains(page, want) {
			t.Errorf("the dialog that is open again lacks %s", want)
		}
	}
	refused := func(reason string, fields ...string) {
		t.Helper()
		again := form("", "")
		again.Set("version", "3")
		for i := 0; i < len(fields); i += 2 {
			again.Set(fields[i], fields[i+1])
		}
		page := string(bea.Send(path, again).Want(t, 422).Body)
		if !strings.Contains(page, reason) || !strings.Contains(page, "data-shown") || !strings.Contains(page, fields[1]) {
			t.Errorf("the dialog is not open with %q and what was filled in", reason)
		}
	}
	left := form("", "")
	left.Set("version", "2")
	ada.Send(path, left).Want(t, 303)
	refused("Freeze periods need a choice other than", "freezes", "5-1 to 5-2")
	refused("Only the daily window has a start and an end", "start", "22:00")
	refused("Only the daily window has a start and an end", "end", "04:00", "type", policy.Postpone)
	chosen := form(policy.Automatic, "5-1 to 5-2\r\n")
	chosen.Set("version", "3")
	bea.Send(path, chosen).Want(t, 303)
	chosen = form("", "05-01 to 05-02\r\n")
	chosen.Set("version", "4")
	bea.Send(path, chosen).Want(t, 303) // freeze periods as they were shown go with the choice
	if now, err := o.DB().Policy(t.Context(), o.Company.ID, p.ID); err != nil || now.Version != 5 {
		t.Errorf("the policy is at version %d, want 5, %v", now.Version, err)
	}
}

// A copy that is refused leaves its dialog open with the name that was typed.
func TestPolicy_CopyRefused(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	admin := o.person(t, account.Admin)
	path := "/policies/" + o.Policy.ID
	for typed, reason := range map[string]string{o.other.Name: "There is a policy of that name already",
		"bad\u202ename": "visible characters"} {
		page := string(admin.Send(o.base+path+"/copy", url.Values{"name": {typed}}).Want(t, 422).Body)
		_, dialog, _ := strings.Cut(page, `<dialog id="copy"`)
		dialog, _, _ = strings.Cut(dialog, "</dialog>")
		for _, want := range []string{`data-shown="` + path + `"`, `value="` + typed + `"`, reason} {
			if !strings.Contains(dialog, want) {
				t.Errorf("after %q the dialog lacks %s: %s", typed, want, dialog)
			}
		}
		if strings.Count(page, "data-shown") != 1 {
			t.Errorf("after %q another dialog is open, too", typed)
		}
	}
	admin.Send(o.base+path+"/copy", url.Values{"name": {"Another"}}).Want(t, 303)
}

// What is too long is said at its field, line breaks count as one character, and no description turns the text around it.
func TestPolicy_Texts(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	admin := o.person(t, account.Admin)
	path := "/policies/" + o.Policy.ID
	send := func(version, description, labels, group string, status int) string {
		t.Helper()
		return string(admin.Send(o.base+path+"/details", url.Values{"version": {version}, "name": {o.Policy.Name},
			"description": {description}, "labels": {labels}, "group": {group}}).Want(t, status).Body)
	}
	page := send("1", strings.Repeat("d", 1001), strings.Repeat("l", 65), strings.Repeat("g", 65), 422)
	for _, field := range []string{"description", "labels", "group"} {
		if !strings.Contains(page, `<p id="details-`+field+`-wrong"`) {
			t.Errorf("the dialog does not say that the %s is too long", field)
		}
	}
	send("1", strings.Repeat("d\r\n", 499)+"\u202eb", "", "", 303)
	// Two fields of the dialog have it as it is.
	if page := o.get(t, admin, path, 200); strings.Count(page, "\u202e") != 2 {
		t.Error("the description turns the text around it")
	}
}
