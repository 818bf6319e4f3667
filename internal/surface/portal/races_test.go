package portal_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/servertest"
)

// tells fails the test if the next page of a person lacks one of the texts.
func (o *office) tells(t *testing.T, who *servertest.Browser, path string, wants ...string) {
	t.Helper()
	page := plain(o.get(t, who, path, 200))
	for _, want := range wants {
		if !strings.Contains(page, want) {
			t.Errorf("%s should say %q: %.1500s", path, want, page)
		}
	}
}

// Whose decision comes second is told what was decided, by whom and when.
func TestDecide_SaysWhoWasFaster(t *testing.T) {
	t.Parallel()
	d := newDesk(t, servertest.New(t))
	id := d.proposed()
	path := "/approvals/" + id
	approve, decline := d.signs(path, `action="`+path+`/approve"`), d.signs(path, `action="`+path+`/decline"`)
	d.signer.Send(d.base+path+"/approve", approve).Want(t, 303)
	d.tells(t, d.signer, path, "Approved. The caller can apply it")
	d.signer.Send(d.base+path+"/decline", decline).Want(t, 303)
	d.tells(t, d.signer, path, "Your decision came too late and does not count. "+d.signer.User.Name+" approved it already, at "+
		d.Now().UTC().Format("2006-01-02 15:04"))
}

// Who confirms or cancels a change that does not wait any more is told how it ended.
func TestLoosening_SaysWhoEndedIt(t *testing.T) {
	t.Parallel()
	d := newDesk(t, servertest.New(t))
	id := d.waits(func(s *access.Settings) { s.Controls.DestructiveLimit.Devices = 20 })
	path := "/access/controls/" + id
	confirm := d.signs(path+"/confirm", `action="`+path+`/confirm"`)
	d.plain.Send(d.base+path+"/cancel", url.Values{}).Want(t, 303)
	for where, form := range map[string]url.Values{path + "/cancel": {}, path + "/confirm": confirm} {
		d.signer.Send(d.base+where, form).Want(t, 303)
		d.tells(t, d.signer, "/access/controls", d.plain.User.Name[1:]+" canceled")
	}
}

// What cancels a request that waits says so, and does not only say that it is saved.
func TestControls_SayWhatTheyCancel(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	ada, bob := o.person(t, account.Admin), o.person(t, account.Admin)
	const path = "/access/controls"
	limit := func(who *servertest.Browser, devices string) {
		t.Helper()
		who.Send(o.base+path, url.Values{"limited": {"true"}, "limit": {devices}, "minutes": {"60"}, "age": {"24"}}).Want(t, 303)
	}
	limit(ada, "30")
	o.tells(t, ada, path, "This loosens a control: it takes effect in 24 hours")
	limit(bob, "5")
	o.tells(t, bob, path, "Saved. This canceled the request of "+ada.User.Name+
		" to change “Limit of destructive commands” to 30 devices in 60 minutes.")
	limit(bob, "4")
	if page := plain(o.get(t, bob, path, 200)); !strings.Contains(page, "Saved.") || strings.Contains(page, "This canceled") {
		t.Errorf("a change that cancels nothing: %.900s", page)
	}
}

// A stop says whom it keeps from what and how it ends, and so does the request to resume.
// What is loosened during a stop is not said to take effect in 24 hours.
func TestStop_SaysWhatItHolds(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	ada, bob := o.person(t, account.Admin), o.person(t, account.Admin)
	const path, limited = "/access/controls", "API keys and AI clients can read but not change anything, and jobs are paused."
	ada.Send(o.base+path+"/stop", url.Values{"reason": {"a leak"}}).Want(t, 303)
	o.tells(t, ada, path, "Changes are stopped until an administrator resumes them. "+limited)
	ada.Send(o.base+path, url.Values{"limited": {"true"}, "limit": {"30"}, "minutes": {"60"}, "age": {"24"}}).Want(t, 303)
	o.tells(t, ada, path, "This loosens a control: it takes effect when the stop has ended, and not before ")
	ada.Send(o.base+path+"/resume", url.Values{}).Want(t, 303)
	o.tells(t, ada, path, "Resuming takes effect in 24 hours, at ", "Until then "+limited)
	bob.Send(o.base+path+"/stop", url.Values{"reason": {"a leak"}, "all": {"true"}, "confirm": {"acme"}}).Want(t, 303)
	o.tells(t, bob, path, "API keys, AI clients and the people in the portal can read but not change anything",
		"This canceled the request of "+ada.User.Name+" to resume changes.")
	o.CLI(new(any), "company", "resume", "--company", "acme")
	bob.Send(o.base+path+"/resume", url.Values{}).Want(t, 303)
	o.tells(t, bob, path, "Changes are not stopped any more: there was nothing to resume.")
}
