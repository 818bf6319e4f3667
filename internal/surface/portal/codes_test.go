package portal_test

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/emulator"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// limitedCode is the form of a code with a limit and tags.
func (o *office) limitedCode() url.Values {
	return url.Values{"policy": {o.Policy.ID}, "personalUsage": {"DISALLOWED"}, "maxDevices": {"3"}, "tags": {"store-12, <b>"}}
}

// A code is listed with its limit, tags and maker for who may enroll devices under its policy.
func TestCodes_Listed(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	admin, limited := o.person(t, account.Admin), o.person(t, account.Manager, o.other.ID)
	admin.Send(o.base+"/enrol", o.limitedCode()).Want(t, 200)
	page := o.get(t, admin, "/enrol/codes", 200)
	for _, want := range []string{"0 of 3", "store-12, &lt;b&gt;", "Active", admin.User.Name} {
		if !strings.Contains(page, want) {
			t.Errorf("the list does not say %q", want)
		}
	}
	if strings.Contains(o.get(t, limited, "/enrol/codes", 200), "store-12") {
		t.Error("a code of another policy is listed")
	}
}

// Who may enroll devices under the policy of a code revokes it, again without harm, and the
// platform deletes its token.
func TestCodes_Revoked(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	admin, limited, viewer := o.person(t, account.Admin), o.person(t, account.Manager, o.other.ID), o.person(t, account.Viewer)
	admin.Send(o.base+"/enrol", o.limitedCode()).Want(t, 200)
	revoke := regexp.MustCompile(`action="(/enrol/codes/[^"]+/revoke)"`).FindStringSubmatch(o.get(t, admin, "/enrol/codes", 200))
	if revoke == nil {
		t.Fatal("the list offers no way to revoke the code")
	}
	limited.Send(o.base+revoke[1], url.Values{}).Want(t, 404)
	viewer.Send(o.base+revoke[1], url.Values{}).Want(t, 403)
	for range 2 {
		admin.Send(o.base+revoke[1], url.Values{}).Want(t, 303)
	}
	if page := o.get(t, admin, "/enrol/codes", 200); !strings.Contains(page, "Revoked") || strings.Contains(page, "/revoke\"") {
		t.Error("the list does not say that the code is revoked")
	}
	o.Eventually("the platform deletes the token", func() error {
		if o.Calls("enrollmentTokens.delete") != 1 {
			return errors.New("not yet")
		}
		return nil
	})
}

// While the platform has not deleted the token of a code that was revoked, with its policy as
// well, devices can still enroll, and that is said.
func TestCodes_TokenNotDeletedYet(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	admin := o.person(t, account.Admin)
	o.Fault(emulator.Fault{Method: "enrollmentTokens.delete", Status: 500, Times: -1})
	admin.Send(o.base+"/enrol", o.limitedCode()).Want(t, 200)
	revoke := regexp.MustCompile(`action="(/enrol/codes/[^"]+/revoke)"`).FindStringSubmatch(o.get(t, admin, "/enrol/codes", 200))
	if revoke == nil {
		t.Fatal("the list offers no way to revoke the code")
	}
	admin.Send(o.base+revoke[1], url.Values{}).Want(t, 303)
	page := o.get(t, admin, "/enrol/codes", 200)
	if !strings.Contains(page, "has not deleted its token yet") || !strings.Contains(page, "until it has, devices can still enroll") {
		t.Error("the page does not say that devices can still enroll")
	}
	admin.Send(o.base+"/enrol", o.limitedCode()).Want(t, 200)
	admin.Send(o.base+"/policies/"+o.Policy.ID+"/delete", url.Values{}).Want(t, 303)
	if page = o.get(t, admin, "/policies", 200); !strings.Contains(page, "1 enrollment code is revoked. The platform is asked") {
		t.Error("the page does not say that a code ended with the policy")
	}
}

// Values that a code cannot have are refused.
func TestCodes_WrongValues(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	admin := o.person(t, account.Admin)
	for name, wrong := range map[string]string{"maxDevices": "0.5", "tags": strings.Repeat("x", 65)} {
		form := o.limitedCode()
		form.Set(name, wrong)
		if answer := admin.Send(o.base+"/enrol", form); answer.Status != 400 {
			t.Errorf("%s: %d", name, answer.Status)
		}
	}
}

// A code's page names no device to a person who may enroll devices and not see them.
func TestEnroll_JoinedNamesNoDeviceToWhoMaySeeNone(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.device(t, "secret", "SN-S", "Secret phone", o.Policy)
	path := "/enrol/joined?since=0&policy=" + o.Policy.ID
	if page := o.get(t, o.person(t, account.Admin), path, 200); !strings.Contains(page, "/devices/") {
		t.Error("who may see devices sees none")
	}
	blind := o.person(t, account.Admin)
	blind.Change(func(u *account.User) { u.Rights = account.ProvisionDevices | account.ViewPolicies })
	page := o.get(t, blind, path, 200)
	if strings.Contains(page, "Secret") || strings.Contains(page, "/devices/") || !strings.Contains(page, "1 device has enrolled") {
		t.Errorf("got %s", page)
	}
}

// A form that is sent again, as by a reload, makes no second code and says where the first one is.
func TestCodes_ReloadMakesNoSecond(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	admin, form := o.person(t, account.Admin), o.limitedCode()
	page := servertest.Page{Body: o.get(t, admin, "/enrol", 200)}
	form.Set("once", page.Field(t, "once"))
	for range 2 { // a form may be days old
		o.Advance(account.SessionIdle - time.Minute)
		o.get(t, admin, "/enrol", 200)
	}
	admin.Send(o.base+"/enrol", form).Want(t, 200)
	if to := admin.Send(o.base+"/enrol", form).Want(t, 303).Header.Get("Location"); to != "/enrol/codes" {
		t.Errorf("the second form leads to %s", to)
	}
	if n := strings.Count(o.get(t, admin, "/enrol/codes", 200), "0 of 3"); n != 1 {
		t.Errorf("%d codes were made", n)
	}
}

// All devices that enrolled since the code was made are counted, of which some are listed.
func TestEnroll_JoinedFindsAllOfManyDevices(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.device(t, "before", "SN-B", "Old phone", o.Policy)
	o.Advance(time.Minute)
	since := o.Now()
	for i := range 22 {
		o.device(t, fmt.Sprint("d", i), fmt.Sprint("SN-", i), "Phone", o.Policy)
	}
	o.device(t, "other", "SN-O", "Phone", o.other)
	admin := o.person(t, account.Admin)
	path := fmt.Sprintf("/enrol/joined?since=%d&policy=%s", since.UnixMilli(), o.Policy.ID)
	page := o.get(t, admin, path, 200)
	if n := strings.Count(page, "<li"); n != 20 || !strings.Contains(page, "And 2 more devices.") || strings.Contains(page, "Old phone") {
		t.Errorf("%d devices are listed: %s", n, page)
	}
}

// The page of a policy leads to the form of a code for it, for people who may enroll devices.
func TestEnroll_FromThePolicy(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	link := `href="/enrol?policy=` + o.Policy.ID + `"`
	for role, want := range map[account.Role]bool{account.Admin: true, account.Viewer: false} {
		if page := o.get(t, o.person(t, role), frame.PolicyPath(o.Policy.ID), 200); strings.Contains(page, link) != want {
			t.Errorf("%s: the page has the link: %t, want %t", role, !want, want)
		}
	}
}
