package portal_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/servertest"
)

// A command that is refused keeps what was typed, but no password, in its dialog alone, on the device's page and on the help
// desk.
func TestCommand_RefusedKeepsTheText(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	device := o.Devices(o.replica, servertest.FullyManaged(), 1)[0]
	ada := o.person(t, account.Admin)
	dialog := func(operation, desk string, form url.Values) string {
		t.Helper()
		form.Set("once", resource.NewID())
		form.Set("note-reason", "stolen & sold")
		if desk != "" {
			form.Set("desk", desk)
		}
		page := string(ada.Send(o.base+"/devices/"+device.AssetID+"/commands/"+operation, form).Want(t, 422).Body)
		if n := strings.Count(page, "stolen &amp; sold"); n != 1 {
			t.Errorf("%s: the reason is on the page %d times, want once", operation, n)
		}
		_, rest, found := strings.Cut(page, `<dialog id="`+operation+`"`)
		if desk == "" && !strings.Contains(page, `hx-get="/devices/`+device.AssetID+`"`) {
			t.Errorf("%s: the page does not keep up to date at its own address", operation)
		}
		if text, _, _ := strings.Cut(rest, "</dialog>"); found && strings.Contains(text, "data-shown") {
			return text
		}
		t.Fatalf("%s: the dialog is not shown again: %s", operation, page)
		return ""
	}
	for _, desk := range []string{"", "1"} {
		text := dialog("start_lost_mode", desk, url.Values{"message": {"Bring me <home>"}, "phoneNumber": {strings.Repeat("9", 5000)}})
		if !strings.Contains(text, "Bring me &lt;home&gt;") || !strings.Contains(text, `data-tone="bad"`) {
			t.Errorf("desk %q: %s", desk, text)
		}
	}
	if text := dialog("change_screen_lock_password", "", url.Values{"newPassword": {"hunter2hunter2"}}); strings.Contains(text, "hunter2") {
		t.Errorf("the password is on the page: %s", text)
	}
	gone := o.device(t, "d9", "S9", "Phone", o.Policy)
	if err := o.DB().MarkDeleted(t.Context(), gone.ID, gone.Device.Epoch, o.Now()); err != nil {
		t.Fatal(err)
	}
	ada.Send(o.base+"/devices/"+gone.ID+"/commands/reboot_device", url.Values{"once": {resource.NewID()}}).Want(t, 303)
	if page := o.get(t, ada, "/devices/"+gone.ID, 200); !strings.Contains(page, `data-tone="bad"`) {
		t.Error("a page without the command's dialog does not say that it was refused")
	}
}

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
	send := func(reason string, status int) {
		t.Helper()
		ada.Send(o.base+"/devices/"+device.AssetID+"/commands/reboot_device",
			url.Values{"once": {resource.NewID()}, "note-reason": {reason}, "note-ticket": {"OPS-7"}}).Want(t, status)
	}
	send(strings.Repeat("x", 201), 422)
	if history := o.get(t, ada, "/devices/"+device.AssetID+"/commands", 200); strings.Contains(history, "OPS-7") {
		t.Error("a command was sent with a reason that is too long")
	}
	send("the user <b>asked</b>", 303)
	for _, at := range []string{"/devices/" + device.AssetID + "/commands", "/activity?area=command"} {
		if text := o.get(t, ada, at, 200); !strings.Contains(text, "the user &lt;b&gt;asked&lt;/b&gt;") ||
			!strings.Contains(text, "OPS-7") {
			t.Errorf("%s does not have the reason and the ticket", at)
		}
	}
}
