package servertest

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/client"
)

// Hold sends a request up to its body, which the service has begun to read when Hold
// returns: the caller was let in, and nothing was decided. What it returns sends the body
// and returns the answer. Headers are names and values in turn.
func Hold(tb testing.TB, b *client.Browser, method, address, body string, headers ...string) (finish func() Answer) {
	ctx := context.WithoutCancel(tb.Context())
	held := client.Hold(func(over http.RoundTripper) client.Page {
		return b.Via(over).Send(ctx, method, address, strings.NewReader(body), headers...)
	})
	return func() Answer {
		tb.Helper()
		return answered(tb, held)
	}
}

// Hold sends a form up to its body, as the function Hold does.
func (b *Browser) Hold(address, form string) (finish func() Answer) {
	return b.HoldUpload(address, formType, form)
}

// HoldUpload is Hold for another form than the usual one.
func (b *Browser) HoldUpload(address, contentType, form string) (finish func() Answer) {
	return Hold(b.env.TB, b.browser, http.MethodPost, address, form, "Content-Type", contentType)
}
