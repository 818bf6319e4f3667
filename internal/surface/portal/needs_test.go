package portal_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/proposal"
	"github.com/musterhq/muster/internal/resource"
)

// count is what the navigation counts; empty: nothing.
func count(page string) string {
	_, after, found := strings.Cut(page, `title="Needs you">`)
	if !found {
		return ""
	}
	text, _, _ := strings.Cut(after, "<")
	return text
}

// What waits is on the overview and counted on every page for those who can decide; the
// others see who can, and another company sees nothing.
func TestNeedsYou(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	a, admin, viewer := o.device(t, "d1", "S1", "Pixel 8", o.Policy), o.person(t, account.Admin), o.person(t, account.Viewer)
	if page := o.get(t, admin, "/", 200); count(page) != "" || !strings.Contains(page, `id="needs-you"`) ||
		strings.Contains(plain(page), "Copy the link for a colleague") {
		t.Errorf("nothing waits, and the page counts %q", count(page))
	}
	o.CLI(new(any), "company", "set", "--company", "acme", "--destructive-approval", "on", "--apply-approval", "all",
		"--approver-age", "0s")
	key, text := o.KeyRow(o.Company, access.All)
	asked, _ := o.replica.As(text).Post("/assets/"+a.ID+"/commands/wipe", nil).Want(t, 403).Members(t)["approvalUrl"].(string)
	var proposal struct {
		ProposalID string
		Approval   struct{ URL string } `json:"approval"`
	}
	proposed := o.replica.As(text).Post("/policies/"+o.Policy.ID+"/changes",
		map[string]any{"changes": []any{map[string]string{"setting": "CAMERA", "value": "BLOCK"}}})
	proposed.JSON(t, &proposal)
	wants := key.Name + " asks for a wipe of " + a.Identification
	for _, path := range []string{"/", "/needs-you"} {
		page := o.get(t, admin, path, 200)
		if text := plain(page); count(page) != "2" || !strings.Contains(text, wants) || !strings.Contains(page, proposal.Approval.URL) ||
			!strings.Contains(text, "No user can decide this now.") {
			t.Errorf("%s counts %q: %.900s", path, count(page), text)
		}
	}
	if got := count(o.get(t, admin, "/devices", 200)); got != "2" {
		t.Errorf("another page counts %q", got)
	}
	bea := o.Browser(o.Company, account.Admin)
	bea.SignIn(o.base)
	bea.Change(func(u *account.User) { u.Name = "Bea Boss" })
	if err := o.DB().AddPasskey(t.Context(), account.Passkey{ID: resource.NewID(), UserID: bea.User.ID, Name: "Key",
		Credential: json.RawMessage(`{}`), CreatedAt: o.Now()}); err != nil {
		t.Fatal(err)
	}
	page := o.get(t, viewer, "/", 200)
	if text := plain(page); count(page) != "" || !strings.Contains(text, wants) || !strings.Contains(text, "Bea Boss can decide this.") {
		t.Errorf("a viewer's page counts %q: %.900s", count(page), text)
	}
	if page := o.get(t, bea, "/", 200); count(page) != "2" || strings.Count(plain(page), " Decide ") != 2 {
		t.Errorf("the page of who can decide counts %q: %.900s", count(page), plain(page))
	}
	limited := o.person(t, account.Admin, o.other.ID)
	if page := o.get(t, limited, "/needs-you", 200); count(page) != "" || strings.Contains(plain(page), a.Identification) {
		t.Errorf("a user of another policy sees %.900s", plain(page))
	}
	figures := func() string { return fmt.Sprint(overviewLink.FindAllStringSubmatch(o.get(t, bea, "/", 200), -1)) }
	if all := figures(); !strings.Contains(all, "Proposals waiting") || !strings.Contains(all, "Commands to authorize") {
		t.Errorf("the overview counts nothing that waits: %s", all)
	}
	if _, err := o.DB().RevokeKey(t.Context(), o.Company.ID, key.ID, o.Now()); err != nil {
		t.Fatal(err)
	}
	all := figures()
	page = o.get(t, bea, "/needs-you", 200)
	if count(page) != "" || strings.Contains(plain(page), wants) || strings.Contains(all, "waiting") ||
		strings.Contains(all, "Commands to authorize") {
		t.Errorf("after the key was revoked, the page counts %q: %s, %.900s", count(page), all, plain(page))
	}
	if page := o.get(t, bea, "/proposals?waiting=1", 200); strings.Contains(page, "<tr data-row") {
		t.Errorf("after the key was revoked, the list is %.900s", plain(page))
	}
	for _, path := range []string{strings.TrimPrefix(asked, o.base), strings.TrimPrefix(proposal.Approval.URL, o.base),
		"/proposals/" + proposal.ProposalID} {
		page := o.get(t, bea, path, 200)
		if text := plain(page); !strings.Contains(text, "the API key was revoked or has expired") || !strings.Contains(text, "Expired") ||
			strings.Contains(text, "with a passkey") {
			t.Errorf("%s does not say why nothing can be decided: %.1500s", path, text)
		}
	}
	stranger := o.Browser(o.Env.Company("other", access.Settings{}), account.Admin)
	stranger.SignIn(o.base)
	if page := o.get(t, stranger, "/needs-you", 200); count(page) != "" || strings.Contains(plain(page), a.Identification) {
		t.Errorf("another company sees %.900s", plain(page))
	}
}

// A second administrator sees a loosening, and who asked for it is not counted.
func TestNeedsYou_Loosening(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.device(t, "d1", "S1", "Pixel 8", o.Policy)
	o.CLI(new(any), "company", "set", "--company", "acme", "--destructive-approval", "on", "--approver-age", "0s")
	ada, bea := o.person(t, account.Admin), o.person(t, account.Admin)
	waiting, err := o.DB().ChangeControls(t.Context(), o.Company.ID, ada.User, func(c *company.Company) {
		c.Settings.Controls.DestructiveApproval = false
	})
	if err != nil || len(waiting) != 1 {
		t.Fatal(waiting, err)
	}
	const says = "asked to turn authorization of destructive commands off"
	if page := o.get(t, bea, "/", 200); count(page) != "1" || !strings.Contains(plain(page), says) {
		t.Errorf("the second administrator's page counts %q: %.900s", count(page), plain(page))
	}
	if page := o.get(t, ada, "/", 200); count(page) != "" || !strings.Contains(plain(page), says) {
		t.Errorf("the asker's page counts %q: %.900s", count(page), plain(page))
	}
	part := o.get(t, bea, "/needs-you/count?id=waiting&active=/", 200, "HX-Request-Type", "partial")
	if count(part) != "1" || strings.Contains(part, "<html") {
		t.Errorf("the live part is %q", part)
	}
	if err := o.DB().CancelLoosening(t.Context(), o.Company.ID, waiting[0].ID); err != nil {
		t.Fatal(err)
	}
	if page := o.get(t, bea, "/", 200); count(page) != "" {
		t.Errorf("after the loosening was canceled the page counts %q", count(page))
	}
}

// A change whose outcome is not known is listed for those who may look at the proposal.
func TestNeedsYou_UnconfirmedChange(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.device(t, "d1", "S1", "Pixel 8", o.Policy)
	editor, viewer := o.person(t, account.Manager), o.person(t, account.Viewer)
	key, text := o.KeyRow(o.Company, access.All)
	var made struct{ ProposalID string }
	proposed := o.replica.As(text).Post("/policies/"+o.Policy.ID+"/changes",
		map[string]any{"changes": []any{map[string]string{"setting": "CAMERA", "value": "BLOCK"}}})
	proposed.JSON(t, &made)
	if verdict, err := o.DB().ClaimProposal(t.Context(), proposal.Claim{ID: made.ProposalID, Holder: "h", For: time.Minute,
		Confirmed: true}); err != nil || verdict != proposal.Begun {
		t.Fatal(verdict, err)
	}
	if _, held, err := o.DB().FinishProposal(t.Context(), proposal.Ending{ID: made.ProposalID, Holder: "h",
		Status: proposal.Unconfirmed}); err != nil || !held {
		t.Fatal(held, err)
	}
	page := o.get(t, editor, "/needs-you", 200)
	if says := key.Name + " may have changed " + o.Policy.Name; count(page) != "1" || !strings.Contains(plain(page), says) ||
		!strings.Contains(page, `href="/proposals/`+made.ProposalID+`"`) {
		t.Errorf("the page counts %q: %.900s", count(page), plain(page))
	}
	if page := o.get(t, viewer, "/needs-you", 200); strings.Contains(page, made.ProposalID) {
		t.Errorf("who may not look at proposals is sent to one: %.900s", plain(page))
	}
}
