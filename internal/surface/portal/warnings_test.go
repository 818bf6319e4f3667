package portal_test

import (
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/resource"
)

// What a change can do to devices stands at it before a person carries it out, too, and nothing says
// then that all of it can be undone.
func TestPolicy_ReviewsWarn(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	admin := o.person(t, account.Admin)
	warning := policy.Warning("CONFIGURE_WIFI", "BLOCK")
	review := func(p policy.Policy) string {
		return o.base + "/policies/" + p.ID + "/review"
	}
	form := func(p policy.Policy) url.Values {
		return url.Values{"version": {strconv.Itoa(p.Version)}, "s.CONFIGURE_WIFI": {"BLOCK"}}
	}
	to := admin.Send(review(o.Policy), form(o.Policy)).Want(t, 303).Header.Get("Location")
	page := o.get(t, admin, to, 200)
	if !strings.Contains(page, warning) || strings.Contains(page, "Nothing: the policy can be rolled back") {
		t.Errorf("the proposal's page does not say %q, or that nothing is lost", warning)
	}
	own := o.AgentPolicy(o.Company, resource.NewID())
	if page := string(admin.Send(review(own), form(own)).Want(t, 200).Body); !strings.Contains(page, warning) {
		t.Errorf("the review of an agent's policy does not say %q", warning)
	}
}
