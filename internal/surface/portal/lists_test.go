package portal_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/resource"
)

// A filter that there is not, as an old bookmark has it, leaves the list with its form.
func TestDevices_AnInvalidFilterKeepsTheList(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.device(t, "d1", "S1", "Phone", o.Policy)
	admin := o.person(t, account.Admin)
	for query, says := range map[string]string{"status=GONE&q=Phone": "Status must be", "batteryBelow=many": "Battery below must be",
		"appBelow=3": "version code", "compliant=maybe": "Compliant must be", "search=Phone": "“search” is not a filter",
		"management=OTHER": "The kind is none of the choices", "place=here": "The place is none of the choices",
		"seen=often": "“seen” is not", "q=Phone&q=other": "The search stands twice",
		"q=" + strings.Repeat("x", 300): "The search must have at most 200 characters"} {
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
	a := o.device(t, "d1", "S1", "Phone", o.Policy)
	admin := o.person(t, account.Admin)
	for path, to := range map[string]string{
		"/devices/export.csv?batteryBelow=many":                "/devices?batteryBelow=many",
		"/bulk?command=tags&all=1&match=batteryBelow%3Dmany":   "/devices?batteryBelow=many",
		"/bulk?command=tags&all=1&match=search%3DPhone":        "/devices?search=Phone",
		"/devices/export.csv?search=Phone":                     "/devices?search=Phone",
		"/devices/export.csv?id=d1&match=search%3DPhone&all=1": "/devices?search=Phone",
	} {
		answer := admin.Send(o.base+path, nil).Want(t, 303)
		if got := answer.Header.Get("Location"); got != to {
			t.Errorf("%s leads to %q, not to %q", path, got, to)
		}
	}
	for path, says := range map[string]string{
		"/bulk?command=tags&all=1&search=Phone":                      "not known here", // a filter that stands beside the list's address
		"/bulk?command=tags&all=1&match=q%3DPhone%26compliant%3D%25": "address of the list is malformed",
		"/devices/export.csv?match=%25":                              "address of the list is malformed",
		"/bulk?command=tags&all=0&id=" + a.ID:                        "must be 1",
		"/devices/export.csv?all=0&id=" + a.ID:                       "must be 1",
	} {
		if page := o.get(t, admin, path, 400); !strings.Contains(page, says) {
			t.Errorf("%s: the page does not say %q", path, says)
		}
	}
}

// The log of activity is not shown, and not exported, without a filter that it does not have.
func TestActivity_RefusesAnInvalidFilter(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	admin := o.person(t, account.Admin)
	for _, query := range []string{"who=USER", "q=a&q=b", "range=1d", "from=yesterday", "area=bogus", "outcome=ok",
		"actor=ROBOT", "q=" + strings.Repeat("x", 101)} {
		for _, path := range []string{"/activity?", "/activity/export?format=csv&"} {
			page := o.get(t, admin, path+query, 400)
			if !strings.Contains(page, `href="/activity">Show all<`) || strings.Contains(page, "Try again") {
				t.Errorf("%s%s: the page does not lead to the list without a filter, or to the same error", path, query)
			}
		}
	}
	page := o.get(t, admin, "/activity?q=Ada&area=destructive&outcome=FAILED&by=x", 200)
	if want := "Only entries of: “Ada”, Wipes and other destructive commands, Failed, actor x<"; !strings.Contains(page, want) {
		t.Errorf("on paper the log does not say %q", want)
	}
	long := strings.Repeat("й", 100)
	if page := o.get(t, admin, "/activity?q="+long, 200); !strings.Contains(page, "Nothing") {
		t.Error("a name of 100 letters is not looked for")
	}
}

// A page refuses an unknown value in its address, and leads to itself without it. It does not show the
// rest as if that was asked for.
func TestPages_RefuseAWrongQuery(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	a, admin := o.device(t, "d1", "S1", "Phone", o.Policy), o.person(t, account.Admin)
	job := admin.Send(o.base+"/jobs", url.Values{"once": {resource.NewID()}, "command": {"reboot"}, "id": {a.ID}}).Want(t, 303).
		Header.Get("Location")
	revisions, location := "/policies/"+o.Policy.ID+"/revisions", "/devices/"+a.ID+"/location"
	for _, wrong := range [][2]string{{"/activity", "after=garbage"}, {job, "result=NOPE"}, {job, "from=x"}, {"/proposals", "waiting=no"},
		{"/proposals", "before=x"}, {revisions, "from=1&to=99999999999"}, {revisions, "from=x&to=1"}, {location, "at=x"}} {
		if page := o.get(t, admin, wrong[0]+"?"+wrong[1], 400); !strings.Contains(page, `href="`+wrong[0]+`">Show all<`) {
			t.Errorf("%s: the page of %s does not lead to all", wrong[1], wrong[0])
		}
		o.get(t, admin, wrong[0], 200)
	}
	if page := o.get(t, admin, "/policies?page=99", 200); !strings.Contains(page, `href="/policies/`+o.Policy.ID) {
		t.Error("a page beyond the last says that there is no policy")
	}
}

// The form of the log keeps the time that a bar of the histogram chose, until another one is chosen.
func TestActivity_KeepsTheChosenTime(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	admin := o.person(t, account.Admin)
	for _, broken := range []string{"/activity/export?format=csv&area=%ZZ", "/activity?area=job;by=x", "/devices/export.csv?tag=%ZZ"} {
		o.get(t, admin, broken, 400) // and not all entries or devices
	}
	long := url.Values{"name": {"Long"}, "shared": {"yes"}, "query": {strings.Repeat("cols="+strings.Repeat("x", 900)+"&", 3)}}
	admin.Send(o.base+"/views", long).Want(t, 303)
	if page := o.get(t, admin, "/devices", 200); strings.Contains(page, "xxxx") {
		t.Error("a view of any length is saved")
	}
	const chosen, kept = "/activity?from=1700000000000&to=1700003600000", `name="from" value="1700000000000"`
	if page := o.get(t, admin, chosen, 200); !strings.Contains(page, kept) {
		t.Error("the form leaves out the chosen time")
	}
	if page := o.get(t, admin, chosen+"&range=7d", 200); strings.Contains(page, kept) || strings.Contains(page, "14 Nov") {
		t.Error("the last 7 days are not shown in place of the chosen time")
	}
	now := o.Now().UnixMilli()
	odd := fmt.Sprintf("/activity?from=%d&to=%d", now-110_000, now+9_000) // no 60 bars of whole seconds
	if page := o.get(t, admin, odd, 200); !strings.Contains(page, "entry from ") && !strings.Contains(page, "entries from ") {
		t.Error("the histogram has no bar for what is near the end of its time")
	}
}

// The selected devices, or all that match, are exported with the columns of the list.
func TestDevices_ExportsTheSelected(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	first := o.device(t, "d1", "S1", "Phone", o.Policy)
	o.device(t, "d2", "S2", "Phone", o.Policy)
	o.device(t, "d3", "S3", "Other", o.Policy)
	admin := o.person(t, account.Admin)
	for asked, want := range map[string]int{"id=" + first.ID: 1, "id=" + first.ID + "&all=1": 2, "id=nothing": 0} {
		page := o.get(t, admin, "/devices/export.csv?match=q%3DPhone%26cols%3Downership&"+asked, 200)
		if n := strings.Count(page, "\n") - 1; n != want || !strings.HasPrefix(page, "id,Name,Assigned to,Serial number,Ownership\n") {
			t.Errorf("%s: %d devices, want %d:\n%s", asked, n, want, page)
		}
	}
}
