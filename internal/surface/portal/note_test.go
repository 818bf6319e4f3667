package portal_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/servertest"
)

// A person gives a reason and a ticket with a command. The device's history and the log have
// them; a text that is too long is refused, and nothing is sent.
func TestCommand_ReasonAndTicket(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	device := o.Devices(o.replica, servertest.FullyManaged(), 1)[0]
	ada := o.person(t, account.Admin)
	page := o.get(t, ada, "/devices/"+device.AssetID, 200)
	for _, want := range []string{`id="wipe_device-note-reason"`, `id="reboot_device-note-ticket"`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	send := func(reason string) {
		t.Helper()
		ada.Send(o.base+"/devices/"+device.AssetID+"/commands/reboot_device",
			url.Values{"once": {resource.NewID()}, "note-reason": {reason}, "note-ticket": {"OPS-7"}}).Want(t, 303)
	}
	send(strings.Repeat("x", 201))
	if history := o.get(t, ada, "/devices/"+device.AssetID+"/commands", 200); strings.Contains(history, "OPS-7") {
		t.Error("a command was sent with a reason that is too long")
	}
	send("the user <b>asked</b>")
	for _, at := range []string{"/devices/" + device.AssetID + "/commands", "/activity?area=command"} {
		if text := o.get(t, ada, at, 200); !strings.Contains(text, "the user &lt;b&gt;asked&lt;/b&gt;") ||
			!strings.Contains(text, "OPS-7") {
			t.Errorf("%s does not have the reason and the ticket", at)
		}
	}
}
