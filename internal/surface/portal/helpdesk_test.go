package portal_test

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/resource"
)

// The help desk finds a device by its whole serial number before all others, lists several,
// and shows no device beyond the person's policies.
func TestHelpDesk_FindsBySerialNumber(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	one, other := o.device(t, "h1", "HD-1", "Phone", o.Policy), o.device(t, "h2", "HD-12", "Phone", o.other)
	admin, limited := o.person(t, account.Admin), o.person(t, account.Operator, o.Policy.ID)
	card := func(id string) string { return "/helpdesk?id=" + id }
	for _, c := range []struct {
		name, query string
		has, hasNot []string
	}{
		{"nothing asked", "", []string{"Type or scan", "autofocus"}, []string{`id="card"`}},
		{"exact", "?q=hd-1", []string{`id="card"`, "HD-1<", "Follows its policy", "Last seen"}, []string{"HD-12<"}},
		{"several", "?q=hd", []string{card(one.ID), card(other.ID)}, []string{`id="card"`}},
		{"none", "?q=HD-9", []string{"No device has the serial number"}, []string{`id="card"`}},
		{"hostile", "?q=" + url.QueryEscape("<b>x</b>\u202e"), []string{"No device has"}, []string{"<b>x"}},
	} {
		page := o.get(t, admin, "/helpdesk"+c.query, 200)
		for _, want := range c.has {
			if want == "Follows its policy" {
				want = "has not reported whether it follows"
			}
			if !strings.Contains(page, want) {
				t.Errorf("%s: no %q", c.name, want)
			}
		}
		for _, wrong := range c.hasNot {
			if strings.Contains(page, wrong) {
				t.Errorf("%s: %q is shown", c.name, wrong)
			}
		}
	}
	if page := o.get(t, limited, "/helpdesk?q=HD-12", 200); strings.Contains(page, other.ID) {
		t.Error("a device beyond the person's policies was found")
	}
	o.get(t, limited, card(other.ID), 404)
	if policy := admin.Send(o.base+"/helpdesk", nil).Header.Get("Permissions-Policy"); !strings.Contains(policy, "camera=(self)") {
		t.Errorf("the page cannot use the camera: %s", policy)
	}
	if policy := admin.Send(o.base+"/devices", nil).Header.Get("Permissions-Policy"); !strings.Contains(policy, "camera=()") {
		t.Errorf("another page may use the camera: %s", policy)
	}
}

// A command of the help desk is sent like one of the device's page, with its reason, and
// leads back to the card. It takes the right to send commands.
func TestHelpDesk_SendsCommandsWithReason(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	a := o.device(t, "h1", "HD-1", "Phone", o.Policy)
	admin, viewer := o.person(t, account.Admin), o.person(t, account.Viewer)
	page := o.get(t, admin, "/helpdesk?q=HD-1", 200)
	dialog := regexp.MustCompile(`(?s)<dialog id="lock_device".*?</dialog>`).FindString(page)
	once := regexp.MustCompile(`name="once" value="([^"]+)"`).FindStringSubmatch(dialog)
	if once == nil || !strings.Contains(dialog, `name="note-reason"`) || !strings.Contains(dialog, `name="desk"`) {
		t.Fatalf("no dialog to lock the device: %s", dialog)
	}
	answer := admin.Send(o.base+"/devices/"+a.ID+"/commands/lock_device",
		url.Values{"once": {once[1]}, "desk": {"1"}, "note-reason": {"left in a taxi"}})
	answer.Want(t, 303)
	if to := answer.Header.Get("Location"); to != "/helpdesk?id="+a.ID {
		t.Errorf("sent to %q", to)
	}
	sent, _, err := o.DB().History(t.Context(), o.Company.ID, a.ID, operation.PageRequest{Size: 5})
	if err != nil || len(sent) != 1 || sent[0].Type != command.Lock || sent[0].Note.Reason != "left in a taxi" {
		t.Errorf("the history has %+v, %v", sent, err)
	}
	if page := o.get(t, viewer, "/helpdesk?q=HD-1", 200); strings.Contains(page, `<dialog id="lock_device"`) ||
		!strings.Contains(page, "permission") {
		t.Error("a person without the right is offered the command, or is not told why not")
	}
}

// What was typed to start lost mode stays when it is refused after a colleague started it.
func TestHelpDesk_KeepsTheTextOfLostModeThatIsOn(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	a, admin := o.device(t, "h1", "HD-1", "Phone", o.Policy), o.person(t, account.Admin)
	if _, begun, err := o.DB().Begin(t.Context(), command.Command{ID: resource.NewID(), CompanyID: o.Company.ID, AssetID: a.ID,
		Epoch: a.Device.Epoch, Type: command.StartLostMode, State: command.Sent, CreatedAt: o.Now()}, nil); err != nil || !begun {
		t.Fatalf("begun %t, %v", begun, err)
	}
	page := string(admin.Send(o.base+"/devices/"+a.ID+"/commands/start_lost_mode", url.Values{"desk": {"1"},
		"message": {"Please bring me home"}, "phoneNumber": {strings.Repeat("9", 9000)}}).Want(t, 422).Body)
	dialog := regexp.MustCompile(`(?s)<dialog id="start_lost_mode".*?</dialog>`).FindString(page)
	if !strings.Contains(dialog, "data-shown") || !strings.Contains(dialog, ">Please bring me home</textarea>") {
		t.Errorf("the dialog is not open with the text: %s", dialog)
	}
}
