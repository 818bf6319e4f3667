package e2e_test

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/servertest"
)

// portal is the portal as it is shown to a person with a browser that runs no scripts.
type portal struct{ *servertest.PortalClient }

// visit makes a user with a role, limited to some policies or not, and signs
// the person in.
func visit(t *testing.T, r *servertest.Replica, tenant *servertest.Tenant, role account.Role, only ...string) portal {
	t.Helper()
	person := tenant.Browser(tenant.Company, role, only...)
	person.Change(func(u *account.User) { u.Name = "Person " + string(role) })
	return portal{r.PortalClient(t, person.User)}
}

func (p portal) get(want int, path string) string {
	p.TB.Helper()
	return p.Get(path).Want(p.TB, want).Body
}

// post returns the page where a form leads, and its path.
func (p portal) post(want int, path string, form url.Values) (text, at string) {
	p.TB.Helper()
	page := p.Submit(path, form).Want(p.TB, want)
	at, _, _ = strings.Cut(page.Path, "?")
	return page.Body, at
}

// posts is post where the path does not matter.
func (p portal) posts(want int, path string, form url.Values) string {
	p.TB.Helper()
	text, _ := p.post(want, path, form)
	return text
}

func (p portal) sees(text string, wanted ...string) {
	p.TB.Helper()
	_, main, _ := strings.Cut(text, "<main")
	for _, w := range wanted {
		if !strings.Contains(text, w) {
			p.TB.Errorf("the page does not say %q:\n%.1500s", w, main)
		}
	}
}

// Policies in the portal without any script: made, changed by review, restored,
// copied, deleted; both kinds of policy; nothing that was typed is markup.
func TestPortalPolicies_WithoutScripts(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	tenant, replica := env.NewTenant("acme"), env.Start()
	ada := visit(t, replica, tenant, account.Admin)
	ada.sees(ada.posts(422, "/policies", url.Values{"name": {strings.ToUpper(tenant.Policy.Name)}, "type": {"PLATFORM"}}),
		"There is a policy")
	text, at := ada.post(200, "/policies", url.Values{"name": {"<script>Kiosk"}, "type": {"AGENT"}})
	ada.sees(text, "&lt;script&gt;Kiosk", "Fetched by agents", `name="s.CAMERA"`)
	if strings.Contains(text, "<script>Kiosk") {
		t.Error("a name is markup")
	}

	// An agent's policy: review on a page of its own, then save.
	ada.sees(ada.posts(200, at+"/review", url.Values{"version": {"1"}, "s.CAMERA": {"BLOCK"}, "s.SMS": {""}}),
		"Review 1 change", "Save as version 2", `name="s.CAMERA" value="BLOCK"`)
	ada.sees(ada.posts(200, at+"/save", url.Values{"version": {"1"}, "s.CAMERA": {"BLOCK"}}), "Saved &lt;script&gt;Kiosk as version 2.")
	ada.sees(ada.posts(409, at+"/save", url.Values{"version": {"1"}, "s.CAMERA": {"ALLOW"}}),
		"was saved while you edited it", "Person admin", "1 of these settings was changed by both of you")
	ada.sees(ada.posts(200, at+"/review", url.Values{"version": {"2"}, "s.CAMERA": {"BLOCK"}}), "Nothing to review")
	ada.sees(ada.posts(200, at+"/restore", url.Values{"version": {"2"}, "revision": {"1"}}),
		"Rolled back to revision 1, saved as version 3.")
	ada.sees(ada.get(200, at+"/revisions?from=1&to=2"), "From revision 1 to 2", "Camera: Not set → Block", "Rollback", "Person admin")
	ada.sees(ada.get(200, at+"/json"), "&#34;settings&#34;")
	ada.sees(ada.get(200, at+"/devices"), "No device uses this policy")

	// A platform's policy: a proposal, which another admin sees and cannot apply.
	of := "/policies/" + tenant.Policy.ID
	text, proposed := ada.post(200, of+"/review", url.Values{"version": {"1"}, "s.CAMERA": {"BLOCK"}})
	ada.sees(text, "Not applied yet", "left to apply it", "Apply 1 change to 0 devices")
	bob := visit(t, replica, tenant, account.Admin)
	bob.sees(bob.get(200, proposed), "who made it, can apply it", "Propose the same as my own")
	bob.post(404, proposed+"/apply", url.Values{"once": {resource.NewID()}})
	ada.sees(ada.posts(200, proposed+"/apply", url.Values{"once": {resource.NewID()}}), "saved as version 2")
	ada.sees(ada.posts(200, proposed+"/apply", url.Values{"once": {resource.NewID()}}), "it was applied")
	ada.sees(ada.get(200, "/proposals?policy="+tenant.Policy.ID), "Camera: Not set → Block")
	ada.sees(ada.get(200, "/proposals?waiting=1"), "No proposal is here")
	text, copied := ada.post(200, of+"/copy", url.Values{"name": {"Copy"}})
	ada.sees(text, "Create Copy as a copy of", "The copy is exactly as its source", "Create the policy")
	ada.sees(ada.posts(200, copied+"/apply", url.Values{}), "saved as version 1")
	ada.sees(ada.posts(200, of+"/restore", url.Values{"version": {"2"}, "revision": {"1"}}), "to revision 1", "Roll back 0 devices")
	ada.sees(ada.posts(422, of+"/copy", url.Values{"name": {"copy"}}), "There is a policy")
	ada.sees(ada.posts(200, of+"/push", url.Values{}), "The platform has taken version 2.")
	ada.sees(ada.posts(200, of+"/details", url.Values{"version": {"2"}, "name": {tenant.Policy.Name}, "labels": {"a, b,"},
		"description": {"for all"}}),
		"as version 3", "for all")
	ada.sees(ada.posts(200, at+"/delete", url.Values{}), "Deleted the policy")
	ada.get(404, at)
	ada.get(404, "/proposals/prp_5h9j3f7p1s6z4g8a2e0k7m9q3v")
}

// A user who may only read, or only some policies, sees and does no more.
func TestPortalPolicies_LimitedUsers(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	tenant, replica := env.NewTenant("acme"), env.Start()
	other := env.Policy(tenant.Company, "Other", policy.Platform)
	viewer := visit(t, replica, tenant, account.Viewer)
	text := viewer.get(200, "/policies/"+tenant.Policy.ID)
	viewer.sees(text, "You need the permission to edit policies")
	if enabled := regexp.MustCompile(`<fieldset[^>]*data-setting[^>]*>`).FindString(text); !strings.Contains(enabled, "disabled") {
		t.Errorf("a viewer's setting is %s", enabled)
	}
	viewer.get(403, "/proposals")
	for path, form := range map[string]url.Values{"": {"name": {"New"}, "type": {"PLATFORM"}},
		"/" + tenant.Policy.ID + "/review": {"version": {"1"}, "s.SMS": {"BLOCK"}},
		"/" + tenant.Policy.ID + "/delete": {}, "/" + tenant.Policy.ID + "/push": {},
		"/" + tenant.Policy.ID + "/restore": {"revision": {"1"}}} {
		viewer.post(403, "/policies"+path, form)
	}
	limited := visit(t, replica, tenant, account.Manager, tenant.Policy.ID)
	if text := limited.get(200, "/policies"); strings.Contains(text, other.ID) || !strings.Contains(text, tenant.Policy.ID) {
		t.Errorf("a limited person's list:\n%.3000s", text)
	}
	limited.get(404, "/policies/"+other.ID)
	limited.get(404, "/proposals?policy="+other.ID)
	limited.post(404, "/policies/"+other.ID+"/review", url.Values{"version": {"1"}, "s.SMS": {"BLOCK"}})
	limited.post(403, "/policies", url.Values{"name": {"New"}, "type": {"PLATFORM"}})
	limited.post(400, "/policies/"+tenant.Policy.ID+"/review", url.Values{"s.SMS": {"BLOCK"}})
	anonymous := portal{replica.SignedOut(t)}
	anonymous.sees(anonymous.get(200, "/policies"), "Sign in")
}
