package portal_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/resource"
)

// Lost mode is a state of the device's page: nothing ends it where it is not on, its form
// begins with the company's texts, and while it is on the page says since when, by whom and
// where the device was last. What a wipe and a lost answer leave is said above all else.
func TestDevice_SaysHowItStands(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	a := o.device(t, "d1", "S1", "Phone", o.Policy)
	admin := o.person(t, account.Admin)
	says := func(when string, wanted bool, texts ...string) {
		t.Helper()
		page := string(admin.Send(o.base+"/devices/"+a.ID, nil).Body)
		for _, text := range texts {
			if strings.Contains(page, text) != wanted {
				t.Errorf("%s: the page says %q: %t", when, text, !wanted)
			}
		}
	}
	admin.Send(o.base+"/settings", url.Values{"name": {"Acme"}, "inactiveAfter": {"30"}, "keepActivity": {"400"},
		"lostMessage": {"Please call"}, "lostPhone": {"+49 30 1"}, "lostOrganization": {"Acme <GmbH>"}}).Want(t, 303)
	says("before", true, "Please call</textarea>", `value="+49 30 1"`, `value="Acme &lt;GmbH&gt;"`)
	says("before", false, "End lost mode", "Lost mode is on", "Lost mode was asked for")
	begin := func(kind command.Type, s command.State) command.Command {
		c, begun, err := o.DB().Begin(t.Context(), command.Command{ID: resource.NewID(), CompanyID: o.Company.ID, AssetID: a.ID,
			Epoch: a.Device.Epoch, Type: kind,
			State: s, CreatedAt: o.Now(), Actor: access.Actor{Kind: access.User, ID: "u1", Name: "Ada"},
			Note: access.Note{Reason: "left in a <train>"}}, nil)
		if err != nil || !begun {
			t.Fatalf("%s: %t, %v", kind, begun, err)
		}
		return c
	}
	start := begin(command.StartLostMode, command.Sent)
	says("asked for", true, "Lost mode was asked for", "End lost mode", "openstreetmap.org/?mlat=52.50000")
	if _, done, err := o.DB().Advance(t.Context(), start.ID, command.Transition{From: []command.State{command.Sent}, To: command.Succeeded,
		Feedback: o.Now()}); err != nil || !done {
		t.Fatal(done, err)
	}
	says("on", true, "Lost mode is on", "End lost mode", "Ada", "Google Maps")
	if list := string(admin.Send(o.base+"/devices", nil).Body); !strings.Contains(list, ">Lost</span>") {
		t.Error("the list does not say that the device is lost")
	}
	begin(command.Lock, command.Unconfirmed)
	says("unconfirmed", true, "Lock: the outcome is not known.", "Refresh report")
}

// A device that was asked to enter lost mode is no longer one when its company is disconnected: its pages say that the
// outcome is not known, and the device that is enrolled as the asset after that is not lost.
func TestDevice_LostModeThatTheDisconnectionLeavesOpen(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	a, admin := o.device(t, "d1", "S1", "Phone", o.Policy), o.person(t, account.Admin)
	if _, begun, err := o.DB().Begin(t.Context(), command.Command{ID: resource.NewID(), CompanyID: o.Company.ID, AssetID: a.ID,
		Epoch: a.Device.Epoch, Type: command.StartLostMode, State: command.Sent, CreatedAt: o.Now()}, nil); err != nil || !begun {
		t.Fatalf("begun %t, %v", begun, err)
	}
	if err := o.DB().BeginDisconnection(t.Context(), o.Company.ID, o.Company.Enterprise, true, o.Now()); err != nil {
		t.Fatal(err)
	}
	if err := o.DB().FinishDisconnection(t.Context(), o.Company.ID, o.Company.Enterprise, o.Now()); err != nil {
		t.Fatal(err)
	}
	device, desk := "/devices/"+a.ID, "/helpdesk?id="+a.ID
	for _, path := range []string{device, device + "/commands", device + "/location", device + "/apps", device + "/policy",
		device + "/activity", device + "/logs", device + "/quick", device + "?part=head", desk} {
		if page := o.get(t, admin, path, 200); strings.Contains(page, "Lost mode was asked for") || strings.Contains(page, ">Lost mode<") {
			t.Errorf("%s: an asset without a device is in lost mode", path)
		}
	}
	if page := o.get(t, admin, device, 200); !strings.Contains(page, "Start lost mode: the outcome is not known.") {
		t.Error("the page does not say that the outcome is not known")
	}
	if again := o.device(t, "d2", "S1", "Phone", o.Policy); again.ID != a.ID || again.Device.Epoch == a.Device.Epoch {
		t.Fatalf("the device is asset %s, epoch %d", again.ID, again.Device.Epoch)
	}
	if page := o.get(t, admin, desk, 200); strings.Contains(page, `data-opens="stop_lost_mode"`) ||
		!strings.Contains(page, `data-opens="start_lost_mode"`) {
		t.Error("the device that is enrolled as the asset now is offered the end of a lost mode that it never had")
	}
}
