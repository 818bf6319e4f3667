package portal_test

import (
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/account"
)

// A filter that there is not, as an old bookmark has it, leaves the list with its form.
func TestDevices_AnInvalidFilterKeepsTheList(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.device(t, "d1", "S1", "Phone", o.Policy)
	admin := o.person(t, account.Admin)
	for query, says := range map[string]string{"status=GONE&q=Phone": "Status must be", "batteryBelow=many": "Battery below must be",
		"appBelow=3": "version code", "compliant=maybe": "Compliant must be"} {
		page := o.get(t, admin, "/devices?"+query, 400)
		for _, want := range []string{says, `aria-label="Search devices"`, "Clear "} {
			if !strings.Contains(page, want) {
				t.Errorf("%s: the page does not have %s", query, want)
			}
		}
		if strings.Contains(page, "data-row ") || strings.Contains(page, "No device matches") {
			t.Errorf("%s: the list has devices, or says that none matches", query)
		}
		if part := o.get(t, admin, "/devices?"+query, 200, "HX-Request-Type", "partial"); !strings.Contains(part, says) {
			t.Errorf("%s: the live part does not say it", query)
		}
	}
}

// The export of such a list, and the plan for all that it finds, lead to the list.
func TestDevices_AnInvalidFilterLeadsToTheList(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.device(t, "d1", "S1", "Phone", o.Policy)
	admin := o.person(t, account.Admin)
	for path, to := range map[string]string{
		"/devices/export.csv?batteryBelow=many":                      "/devices?batteryBelow=many",
		"/bulk?command=tags&all=1&match=batteryBelow%3Dmany":         "/devices?batteryBelow=many",
		"/bulk?command=tags&all=1&match=q%3DPhone%26compliant%3D%25": "/devices?q=Phone",
	} {
		answer := admin.Send(o.base+path, nil).Want(t, 303)
		if got := answer.Header.Get("Location"); got != to {
			t.Errorf("%s leads to %q, not to %q", path, got, to)
		}
	}
}
