package portal_test

import (
	"errors"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/account"
)

// A code with a limit and tags is listed by who may enroll devices under its policy, and
// revoked: the platform deletes its token.
func TestCodes_ListedAndRevoked(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	admin, limited, viewer := o.person(t, account.Admin), o.person(t, account.Manager, o.other.ID), o.person(t, account.Viewer)
	form := url.Values{"policy": {o.Policy.ID}, "personalUsage": {"DISALLOWED"}, "maxDevices": {"3"}, "tags": {"store-12, <b>"}}
	admin.Send(o.base+"/enrol", form).Want(t, 200)
	page := o.get(t, admin, "/enrol/codes", 200)
	for _, want := range []string{"0 of 3", "store-12, &lt;b&gt;", "Active", admin.User.Name} {
		if !strings.Contains(page, want) {
			t.Errorf("the list does not say %q", want)
		}
	}
	revoke := regexp.MustCompile(`action="(/enrol/codes/[^"]+/revoke)"`).FindStringSubmatch(page)
	if revoke == nil {
		t.Fatal("the list offers no way to revoke the code")
	}
	if strings.Contains(o.get(t, limited, "/enrol/codes", 200), "store-12") {
		t.Error("a code of another policy is listed")
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
	// Values that a code cannot have are refused.
	for name, wrong := range map[string]url.Values{"maxDevices": {"maxDevices": {"0.5"}}, "tags": {"tags": {strings.Repeat("x", 65)}}} {
		for key, values := range form {
			if key != name {
				wrong[key] = values
			}
		}
		if answer := admin.Send(o.base+"/enrol", wrong); answer.Status != 400 {
			t.Errorf("%s: %d", name, answer.Status)
		}
	}
}
