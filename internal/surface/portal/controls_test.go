package portal_test

import (
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
)

// In the portal a stricter limit and a stop take effect at once. A looser limit
// and the end of a stop wait, can be canceled, also while the portal is stopped,
// and are not confirmed without a passkey.
func TestControls(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	ada, bob := o.person(t, account.Admin), o.person(t, account.Admin)
	settings := func() access.Settings {
		c, err := o.DB().CompanyByID(t.Context(), o.Company.ID)
		if err != nil {
			t.Fatal(err)
		}
		return c.Settings
	}
	waits := func() (ids []string) {
		all, err := o.DB().Loosenings(t.Context(), o.Company.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range all {
			ids = append(ids, l.ID)
		}
		return ids
	}
	const path = "/access/controls"
	save := func(limit, age string, status int) {
		t.Helper()
		ada.Send(o.base+path, url.Values{"limit": {limit}, "age": {age}}).Want(t, status)
	}
	save("5/60m", "24", 303)
	if now := settings().Controls.DestructiveLimit.String(); now != "5/60m" || len(waits()) != 0 {
		t.Errorf("a stricter limit: %s, %v waits", now, waits())
	}
	save("many", "24", 422)
	save("5/60m", "-1", 422)
	save("5/60m", "NaN", 422)
	save("off", "0", 303)
	if now := settings().Controls; now.DestructiveLimit.Off() || now.ApproverAge != 24*time.Hour || len(waits()) != 2 {
		t.Errorf("looser controls: %+v, %v waits", now, waits())
	}
	if page := o.get(t, bob, path, 200); !strings.Contains(page, "5 devices in 60 minutes → no limit") ||
		!strings.Contains(page, "/confirm") {
		t.Error("another administrator does not see what waits")
	}
	if page := o.get(t, ada, path, 200); regexp.MustCompile(`href="[^"]*/confirm"`).MatchString(page) {
		t.Error("who asked is offered to confirm")
	}
	for _, p := range []string{waits()[0], "none"} {
		bob.Send(o.base+path+"/"+p+"/confirm", url.Values{"token": {"x"}, "answer": {"{}"}}).Want(t, 303)
	}
	if settings().Controls.DestructiveLimit.Off() || len(waits()) != 2 {
		t.Error("a change was confirmed without a passkey")
	}
	viewer := o.person(t, account.Viewer)
	for _, p := range []string{path, path + "/stop", path + "/resume", path + "/" + waits()[0] + "/cancel",
		path + "/" + waits()[0] + "/confirm"} {
		viewer.Send(o.base+p, url.Values{"reason": {"x"}}).Want(t, 403)
	}

	bob.Send(o.base+path+"/stop", url.Values{"reason": {"a stolen account"}, "all": {"true"}, "confirm": {"ACME"}}).Want(t, 303)
	if stop := settings().Stop; !stop.All || stop.Reason != "a stolen account" {
		t.Fatalf("stopped: %+v", stop)
	}
	save("off", "0", 403)
	for _, id := range waits() {
		bob.Send(o.base+path+"/"+id+"/cancel", url.Values{}).Want(t, 303)
	}
	if left := waits(); len(left) != 0 {
		t.Errorf("%v waits although it was canceled", left)
	}
	ada.Send(o.base+path+"/resume", url.Values{}).Want(t, 303)
	if !settings().Stop.On() || len(waits()) != 1 {
		t.Error("resuming does not wait")
	}
}

// While changes are stopped, nothing says that a change takes effect by itself or can be confirmed.
func TestControls_WhatWaitsDuringAStop(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	ada, bob := o.person(t, account.Admin), o.person(t, account.Admin)
	const path = "/access/controls"
	ada.Send(o.base+path, url.Values{"limited": {"true"}, "limit": {"5"}, "minutes": {"60"}, "age": {"24"}}).Want(t, 303)
	ada.Send(o.base+path, url.Values{"limited": {"true"}, "limit": {"9"}, "minutes": {"60"}, "age": {"24"}}).Want(t, 303)
	all, err := o.DB().Loosenings(t.Context(), o.Company.ID)
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	confirm := path + "/" + all[0].ID + "/confirm"
	for _, where := range []string{path, confirm} {
		if page := o.get(t, bob, where, 200); strings.Contains(page, "when the stop has ended") {
			t.Errorf("%s speaks of a stop that there is not", where)
		}
	}
	o.CLI(new(any), "company", "stop", "--company", "acme", "--reason", "a leak")
	for where, not := range map[string]string{path: `href="` + confirm, confirm: "by itself at"} {
		page := o.get(t, bob, where, 200)
		if !strings.Contains(page, "when the stop has ended") || strings.Contains(page, not) {
			t.Errorf("%s does not say that the stop holds it up, or says %q", where, not)
		}
	}
}

// What cancels or confirms a request says what was asked for, not which control it is.
func TestControls_RequestsAreNamed(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	ada, bob := o.person(t, account.Admin), o.person(t, account.Admin)
	const path = "/access/controls"
	ada.Send(o.base+path, url.Values{"limited": {"true"}, "limit": {"5"}, "minutes": {"60"}, "age": {"24"}}).Want(t, 303)
	ada.Send(o.base+path, url.Values{"limited": {"true"}, "limit": {"9"}, "minutes": {"60"}, "age": {"24"}}).Want(t, 303)
	o.CLI(new(any), "company", "stop", "--company", "acme", "--reason", "a leak")
	ada.Send(o.base+path+"/resume", url.Values{}).Want(t, 303)
	page := o.get(t, bob, path, 200)
	for _, want := range []string{"Cancel the request to resume changes", "Confirm: resume changes",
		"Cancel the request to change “Limit of destructive commands” to 9 devices in 60 minutes"} {
		if !strings.Contains(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(page, ""), want) {
			t.Errorf("no control is called %q", want)
		}
	}
	confirm := regexp.MustCompile(`href="([^"]*/confirm)"`).FindStringSubmatch(page)
	if confirm == nil {
		t.Fatal("resuming is not offered to be confirmed")
	}
	if page := o.get(t, bob, confirm[1], 200); !regexp.MustCompile(`<h1[^>]*><bdi>Confirm: resume changes</bdi>`).MatchString(page) {
		t.Error("the page is not named after the request")
	}
}
