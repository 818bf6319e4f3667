package drill

import (
	"context"
	"html"
	"net/http"
	"regexp"
	"strings"

	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/service/portalclient"
	"github.com/musterhq/muster/internal/surface/web"
)

// signIn opens a session of the demo's administrator, and adds a passkey to the account.
func (d *drill) signIn(ctx context.Context) *portalclient.Client {
	v := portalclient.New(d.Service.PublicURL(), d.Password)
	v.SignIn(ctx, d.User)
	v.AddPasskey(ctx)
	return v
}

// notes are what the portal says about a form: the page after it shows them.
var notes = regexp.MustCompile(`(?s)<div class="note"[^>]*data-tone="(bad|warn|ok|idle)"[^>]*>.*?<p>(.*?)</p>`)

// unseen is what a browser that runs scripts does not show.
var unseen = regexp.MustCompile(`(?s)<noscript>.*?</noscript>`)

// outcome is the outcome of a form of the portal, as an answer.
func outcome(p portalclient.Page) answer {
	got := answer{text: p.Body}
	for _, found := range notes.FindAllStringSubmatch(unseen.ReplaceAllString(p.Body, ""), -1) {
		if text := html.UnescapeString(found[2]); found[1] == "bad" || found[1] == "warn" {
			got.detail += strings.Join(strings.Fields(text), " ") + " "
		}
	}
	switch {
	case p.Status == http.StatusTooManyRequests:
		got.code = string(fault.RateLimited)
	case strings.HasPrefix(p.Path, web.ProvePath):
		got.code = "fresh proof"
	case strings.Contains(got.detail, "takes effect in 24 hours"):
		got.code = "delay of 24 hours"
	case strings.Contains(got.detail, "must be older than"), strings.Contains(got.detail, "got rights less than"):
		got.code = "age of the approver"
	case strings.Contains(got.detail, "second administrator"):
		got.code = "second administrator"
	case strings.Contains(got.detail, "second person must decide"):
		got.code = "second person"
	case p.Status == http.StatusForbidden && strings.Contains(p.Body, stopReason):
		got.code = "stop"
	case strings.HasPrefix(p.Path, web.SignInPath):
		got.code = "end of the session"
	case strings.Contains(got.detail, "company's limit"), strings.Contains(got.detail, "calls a minute"):
		got.code = string(fault.RateLimited)
	case strings.Contains(got.detail, "not enrolled"), strings.Contains(got.detail, "no longer managed"),
		strings.Contains(got.detail, "does not work on"),
		strings.Contains(got.detail, "needs a"):
		got.code = string(fault.Unsupported)
	case p.Status >= http.StatusBadRequest || got.detail != "":
		got.code = "refused in the portal"
	}
	return got
}
