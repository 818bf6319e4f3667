package portal_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/account"
)

// An administrator sees which versions of the agent the company's devices run, and holds
// back those devices alone; who may not manage the company does neither.
func TestAgentUpdates(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	admin, viewer := o.person(t, account.Admin), o.person(t, account.Viewer)
	held := func() bool {
		t.Helper()
		at, err := o.DB().AgentPause(t.Context(), o.Company.ID)
		if err != nil {
			t.Fatal(err)
		}
		return !at.IsZero()
	}
	if page := o.get(t, admin, "/settings/updates", 200); !strings.Contains(page, "Pause updates") ||
		!strings.Contains(page, "Versions in use") {
		t.Error("the page has no button, or no versions")
	}
	if answer := viewer.Send(o.base+"/settings/updates", url.Values{"paused": {"true"}}); answer.Status != 403 || held() {
		t.Errorf("a viewer is answered %d, paused: %v", answer.Status, held())
	}
	admin.Send(o.base+"/settings/updates", url.Values{"paused": {"true"}}).Want(t, 303)
	if page := o.get(t, admin, "/settings/updates", 200); !held() || !strings.Contains(page, "Resume updates") {
		t.Error("it is not paused")
	}
	admin.Send(o.base+"/settings/updates", url.Values{"paused": {"false"}}).Want(t, 303)
	if held() {
		t.Error("it is still paused")
	}
}
