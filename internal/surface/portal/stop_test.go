package portal_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/account"
)

// While the portal is stopped too, every form is refused but those that end what
// a stolen account can do.
func TestStopAll(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	admin, viewer, other := o.person(t, account.Admin), o.person(t, account.Viewer), o.Browser(o.Company, account.Viewer)
	o.CLI(new(any), "company", "stop", "--company", "acme", "--reason", "a stolen account", "--all")
	for path, form := range map[string]url.Values{
		"/settings":                             {"name": {"Other"}, "inactiveAfter": {"30"}, "keepActivity": {"400"}},
		"/access/gates":                         {"gate": {"provisioning"}, "on": {"false"}},
		"/access/keys":                          {"name": {"x"}, "permission": {"DEVICES_READ"}, "expires": {"never"}},
		"/users":                                {"email": {"new@acme.test"}, "name": {"New"}, "role": {"admin"}},
		"/account/passkeys":                     {},
		"/users/" + other.User.ID:               {"name": {"Other"}, "role": {"admin"}},
		"/policies/" + o.Policy.ID + "/details": {"name": {"Other"}},
	} {
		t.Run(path, func(t *testing.T) {
			answer := admin.Send(o.base+path, form)
			if answer.Status == 404 || answer.Status == 405 {
				t.Errorf("there is no form %s any more", path)
			} else if answer.Status != 403 || !strings.Contains(string(answer.Body), "a stolen account") {
				t.Errorf("%s: %d: %.300s", path, answer.Status, answer.Body)
			}
		})
	}
	if page := o.get(t, admin, "/devices", 200); !strings.Contains(page, "a stolen account") ||
		!strings.Contains(page, "Limits and stop</a>") {
		t.Error("the page does not show the stop, its reason and the way to it")
	}
	if page := o.get(t, viewer, "/devices", 200); !strings.Contains(page, "a stolen account") ||
		strings.Contains(page, "Limits and stop</a>") {
		t.Error("a viewer's page does not show the stop, or links to a page that a viewer may not see")
	}
	admin.Send(o.base+"/users/"+other.User.ID+"/disabled", url.Values{"disabled": {"true"}}).Want(t, 303)
	admin.Send(o.base+"/users/"+other.User.ID+"/disabled", url.Values{"disabled": {"false"}}).Want(t, 403)
	sessions, err := o.DB().Sessions(t.Context(), admin.User.ID)
	if err != nil || len(sessions) != 1 {
		t.Fatal(sessions, err)
	}
	admin.Send(o.base+"/account/sessions/"+sessions[0].ID+"/end", url.Values{}).Want(t, 303)
	admin.SignIn(o.base)
	o.get(t, admin, "/devices", 200)
}

// A refusal because of a stop is in the stop's own words, and sends to no administrator for a right.
func TestStopAll_IsNotARightThatIsMissing(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	admin, other := o.person(t, account.Admin), o.Browser(o.Company, account.Admin)
	o.CLI(new(any), "company", "stop", "--company", "acme", "--reason", "a stolen account", "--all")
	page := string(admin.Send(o.base+"/settings", url.Values{"name": {"Other"}}).Want(t, 403).Body)
	if !strings.Contains(page, "an administrator can ask to resume") || strings.Contains(page, "Ask "+other.User.Name) ||
		strings.Contains(page, "You may not do this") {
		t.Errorf("got %s", page)
	}
}
