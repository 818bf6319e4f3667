package portal_test

import (
	"html"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/servertest"
)

// A stop says before it begins how it ends: for one administrator, for several of whom none
// can confirm, and for several of whom one can. Once it is asked to resume, that is said
// instead of being offered again. The portal as well is stopped only with the company's name.
func TestStop_SaysHowItEnds(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	const path = "/access/controls"
	ada := o.person(t, account.Admin)
	says := func(who *servertest.Browser, wants ...string) {
		t.Helper()
		page := strings.Join(strings.Fields(html.UnescapeString(o.get(t, who, path, 200))), " ")
		for _, want := range wants {
			no, isNot := strings.CutPrefix(want, "not ")
			if strings.Contains(page, no) == isNot {
				t.Errorf("the page should say %q", want)
			}
		}
	}
	says(ada, "You are the only administrator", "after 24 hours", "muster company resume")
	bob := o.person(t, account.Admin)
	says(ada, "not You are the only administrator", "No other administrator can confirm it sooner now")
	o.Advance(25 * time.Hour)
	ada.SignIn(o.base)
	bob.SignIn(o.base)
	if err := o.DB().AddPasskey(t.Context(), account.Passkey{ID: "6b6579", UserID: bob.User.ID, Name: "key", Credential: []byte(`{}`),
		CreatedAt: o.Now().Add(-25 * time.Hour)}); err != nil {
		t.Fatal(err)
	}
	says(ada, bob.User.Name+" can confirm that at once with a passkey; otherwise it takes effect after 24 hours")

	stop := func(typed string, status int) {
		t.Helper()
		answer := ada.Send(o.base+path+"/stop", url.Values{"reason": {"a stolen account"}, "all": {"true"}, "confirm": {typed}}).Want(t,
			status)
		if status == 422 && (!strings.Contains(string(answer.Body), "nothing is stopped yet") ||
			!strings.Contains(string(answer.Body), `value="a stolen account"`)) {
			t.Errorf("a wrong name: %s", answer.Body)
		}
	}
	stop("", 422)
	stop("another", 422)
	stop("acme ", 303)
	says(ada, "Ask to resume", "a stolen account", bob.User.Name+" can confirm that at once")
	ada.Send(o.base+path+"/resume", url.Values{}).Want(t, 303)
	waiting, err := o.DB().Loosenings(t.Context(), o.Company.ID)
	if err != nil || len(waiting) != 1 || waiting[0].Control != access.StopControl {
		t.Fatalf("%v, %v", waiting, err)
	}
	says(ada, "Resume asked", bob.User.Name+" can confirm it now", "not Ask to resume", "not /confirm\"")
	says(bob, "Resume asked", "not Ask to resume", "/confirm\"")
	o.Advance(time.Minute)
	bob.Send(o.base+path+"/resume", url.Values{}).Want(t, 303)
	if again, err := o.DB().Loosenings(t.Context(), o.Company.ID); err != nil || len(again) != 1 || again[0] != waiting[0] {
		t.Errorf("asked once more: %v, %v, want %v", again, err, waiting)
	}
}

// The limits are numbers and a switch, and what calls must give a reason for is set here. A
// second request for a control says what it replaces, and asks.
func TestControls_NumbersAndReplacing(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	const path = "/access/controls"
	ada, bob := o.person(t, account.Admin), o.person(t, account.Admin)
	controls := func() access.Controls {
		c, err := o.DB().CompanyByID(t.Context(), o.Company.ID)
		if err != nil {
			t.Fatal(err)
		}
		return c.Settings.Controls
	}
	waits := func() string {
		all, err := o.DB().Loosenings(t.Context(), o.Company.ID)
		if err != nil {
			t.Fatal(err)
		}
		text := ""
		for _, l := range all {
			text += l.AskedBy.ID + " " + string(l.Control) + " " + l.After + "\n"
		}
		return text
	}
	save := func(who *servertest.Browser, devices, minutes string, status int, more ...string) string {
		t.Helper()
		form := url.Values{"limited": {"true"}, "limit": {devices}, "minutes": {minutes}, "age": {"24"}}
		for i := 0; i+1 < len(more); i += 2 {
			form.Set(more[i], more[i+1])
		}
		return strings.Join(strings.Fields(html.UnescapeString(string(who.Send(o.base+path, form).Want(t, status).Body))), " ")
	}
	if page := o.get(t, ada, path, 200); strings.Contains(page, "/60m") || !strings.Contains(page, `type="number"`) ||
		!strings.Contains(page, `role="switch"`) {
		t.Error("the limit is not numbers and a switch")
	}
	for _, wrong := range [][2]string{{"0", "60"}, {"5", "0"}, {"5", "x"}, {"", "60"}, {"100001", "60"}, {"5", "10081"}, {"1e3", "60"}} {
		if page := save(ada, wrong[0], wrong[1], 422); !strings.Contains(page, "The limit must be") {
			t.Errorf("%v: %s", wrong, page)
		}
	}
	save(ada, "10", "90", 303)
	if got := controls().DestructiveLimit.String(); got != "10/90m" || waits() != "" {
		t.Errorf("a stricter limit: %s, %s waits", got, waits())
	}
	save(ada, "20", "90", 303)
	first := ada.User.ID + " destructiveLimit 20/90m\n"
	if waits() != first {
		t.Fatalf("waits: %s", waits())
	}
	save(bob, "20", "90", 303) // asks for the same
	page := save(bob, "30", "90", 409)
	for _, want := range []string{"Replace a waiting change", "20 devices in 90 minutes", ada.User.Name, "30 devices in 90 minutes",
		`name="limit" value="30"`, `name="replace" value="true"`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if waits() != first {
		t.Errorf("it was replaced without being asked: %s", waits())
	}
	save(bob, "30", "90", 303, "replace", "true")
	if want := bob.User.ID + " destructiveLimit 30/90m\n"; waits() != want {
		t.Errorf("waits: %s, want %s", waits(), want)
	}
	save(bob, "30", "90", 409, "limited", "")
	o.get(t, ada, path, 200)
	ada.Send(o.base+path+"/approval", url.Values{"applyApproval": {"OFF"}, "requireReason": {"ALL"}}).Want(t, 303)
	if got := controls().RequireReason; got != access.ReasonAll {
		t.Errorf("requireReason is %s", got)
	}
	ada.Send(o.base+path+"/approval", url.Values{"applyApproval": {"OFF"}, "requireReason": {"SOME"}}).Want(t, 400)
	ada.Send(o.base+path+"/approval", url.Values{"applyApproval": {"OFF"}}).Want(t, 303)
	if got := controls().RequireReason; got != access.ReasonAll {
		t.Errorf("a form without it made requireReason %s", got)
	}
}
