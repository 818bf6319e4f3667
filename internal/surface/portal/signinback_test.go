package portal_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/surface/web"
)

// A form that is sent after the session has ended leads back to its page.
func TestSignIn_LeadsBackToFormsPage(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	stranger := o.Browser(o.Company, account.Admin)
	for referer, next := range map[string]string{
		o.base + "/policies/x?y=1": "/policies/x?y=1", "https://evil.example/policies/x": "/", "": "/",
	} {
		t.Run(referer, func(t *testing.T) {
			answer := stranger.Send(o.base+"/policies/x/review", url.Values{"a": {"b"}}, "Referer", referer)
			answer.Want(t, http.StatusSeeOther)
			if got, want := answer.Header.Get("Location"), web.SignInAddress(next); got != want {
				t.Errorf("from %q to %q, want %q", referer, got, want)
			}
		})
	}
	for _, header := range [][2]string{{"HX-Request", "true"}, {"Accept", "text/event-stream"}} {
		stranger.Send(o.base+"/devices", nil, header[0], header[1]).Want(t, http.StatusUnauthorized)
	}
}
