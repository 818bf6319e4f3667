package portal_test

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/event"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/webhook"
)

// hidden are characters that hide, reorder or end text.
const hidden = "\x1b[2J\u0007\u0085\u200b\u202e\u2066\u2028\ufeff\u00ad\U000E0077"

// webhookPages are the portal's pages that show something of a webhook.
func webhookPages(path string) []string {
	return []string{"/settings/webhooks", path, path + "/rotate", "/needs-you", "/activity", "/"}
}

// shownClean fails where a page shows hidden characters, more of a text than a line or two,
// or what the corpus has as markup.
func shownClean(t *testing.T, path, text, page string) {
	t.Helper()
	notRun(t, path, text, page)
	shown := func(what, value string) {
		if i := strings.IndexFunc(value, func(r rune) bool {
			return !unicode.IsPrint(r) && !unicode.IsSpace(r) || r == '\u2028' ||
				r == '\u0085'
		}); i >= 0 {
			t.Errorf("%s: %s has hidden characters: %q", path, what, value[max(0, i-40):min(len(value), i+40)])
		}
		if n := strings.Count(value, "AAAAAAAAAA"); n > 100 { // as much as the activity log shows
			t.Errorf("%s: %s shows %d characters of a long text", path, what, utf8.RuneCountInString(value))
		}
	}
	walk(t, page, func(tag string, attributes map[string]string, inner string) {
		shown("<"+tag+">", inner)
		for key, value := range attributes {
			shown("<"+tag+" "+key+">", value)
		}
	})
}

// A webhook's address, why it was disabled and what its receiver said, past every check,
// stay text on each page that shows them: without hidden characters, and bounded.
func TestEscape_HostileWebhooks(t *testing.T) {
	t.Parallel()
	o := newHookOffice(t, servertest.New(t))
	for _, markup := range corpus() {
		text := markup + hidden + strings.Repeat("A", 3000)
		w := webhook.Webhook{ID: resource.NewID(), CompanyID: o.Company.ID, CompanySlug: o.Company.Slug, State: webhook.Enabled,
			Secret: []byte("sealed"), CreatedAt: o.Now(), MovedAt: o.Now(),
			Events: []event.Type{event.PlatformFailing}, URL: "https://ex\u202e\u00ad\u200bample.com/" + text}
		if err := o.DB().CreateWebhook(t.Context(), w); err != nil {
			t.Fatal(err)
		}
		a := webhook.Attempt{At: o.Now(), EventID: resource.NewID(), Type: event.PlatformFailing, Number: 1, Detail: text}
		if err := o.DB().AddWebhookAttempt(t.Context(), o.Company.ID, w.ID, a); err != nil {
			t.Fatal(err)
		}
		(&desk{T: t, office: o.office}).disableWhy(w.ID, text)
		path := "/settings/webhooks/" + w.ID
		for _, path := range webhookPages(path) {
			shownClean(t, path, markup, o.get(t, o.admin, path, 200))
		}
		if page := textOf(t, o.get(t, o.admin, path, 200)); strings.Count(strings.ToLower(page), strings.ToLower(markup)) < 3 {
			t.Errorf("the page does not show %q as text", markup)
		}
		o.admin.Send(o.base+path+"/finish", url.Values{}).Want(t, 303)
		shownClean(t, path, markup, o.get(t, o.admin, path, 200)) // with what was refused
		o.admin.Send(o.base+path+"/delete", url.Values{}).Want(t, 303)
		shownClean(t, "the list after the deletion", markup, o.get(t, o.admin, "/settings/webhooks", 200))
		shownClean(t, "the log after the deletion", markup, o.get(t, o.admin, "/activity", 200))
	}
}

// What a receiver answers, in the form of HTTP and beside it, is on no page: the page says
// what it means, cleaned and bounded.
func TestWebhooks_HostileReceiver(t *testing.T) {
	t.Parallel()
	o := newHookOffice(t, servertest.New(t))
	long := strings.Repeat("A", 3000)
	for name, answer := range map[string]string{
		"reason phrase": "HTTP/1.1 500 <script>alert(1)</script>" + hidden + long + "\r\nContent-Length: 0\r\n\r\n",
		"no reason":     "HTTP/1.1 599\r\nContent-Length: 0\r\n\r\n",
		"body": "HTTP/1.1 400 Bad Request\r\nContent-Type: text/html\r\nContent-Length: 3025\r\n\r\n<script>alert(1)</script>" +
			long,
		"location":       "HTTP/1.1 302 Found\r\nLocation: javascript:alert(1)" + hidden + "\r\nContent-Length: 0\r\n\r\n",
		"status":         "HTTP/1.1 <script>alert(1)</script>" + hidden + long + "\r\n\r\n",
		"low status":     "HTTP/1.1 099 <script>alert(1)</script>\r\nContent-Length: 0\r\n\r\n",
		"negative":       "HTTP/1.1 -20 <script>alert(1)</script>\r\nContent-Length: 0\r\n\r\n",
		"header":         "HTTP/1.1 200 OK\r\n<script>alert(1)</script>" + hidden + long + "\r\n\r\n",
		"length":         "HTTP/1.1 500 x\r\nContent-Length: <script>alert(1)</script>" + hidden + "\r\n\r\n",
		"encoding":       "HTTP/1.1 500 x\r\nTransfer-Encoding: <script>alert(1)</script>" + hidden + "\r\n\r\n",
		"not HTTP":       "<script>alert(1)</script>" + hidden + long + "\n",
		"nothing":        "",
		"endless header": "HTTP/1.1 500 x\r\nX-A: " + strings.Repeat(long, 400) + "\r\n\r\n",
		"informational": strings.Repeat("HTTP/1.1 103 <script>alert(1)</script>\r\nLink: </x>\r\n\r\n", 3) + "HTTP/1.1 500 " +
			"x\r\nContent-Length: 0\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			var made struct{ ID string }
			o.CLI(&made, "webhook", "create", "--company", "acme", "--url", rawReceiver(t, answer), "--event", "platform.failing",
				"--webhook-networks", "127.0.0.0/8")
			path := "/settings/webhooks/" + made.ID
			o.admin.Send(o.base+path+"/test", url.Values{}).Want(t, 303)
			page := o.get(t, o.admin, path, 200)
			if text := textOf(t, page); !strings.Contains(text, "The test was not delivered. ") || !strings.Contains(text, "Failed") {
				t.Errorf("the page does not say that the test failed: %s", text)
			}
			shownClean(t, path, answer, page)
			all, err := o.DB().WebhookAttempts(t.Context(), o.Company.ID, made.ID)
			if err != nil || len(all) != 1 {
				t.Fatalf("the attempts are %+v, %v", all, err)
			}
			detail := all[0].Detail
			if detail == "" || utf8.RuneCountInString(detail) > 200 ||
				strings.ContainsFunc(detail, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("the attempt is kept with detail %q", detail)
			}
			o.CLI(new(any), "webhook", "delete", "--company", "acme", made.ID)
		})
	}
	for _, address := range []string{"https://example.com/\u202egro.live", "https://ex\u200bample.com/", "https://example.com/\u00a0x",
		"https://example.com/\u0085x"} {
		if err := o.TryCLI(new(any), "webhook", "create", "--company", "acme", "--url", address); err == nil {
			t.Errorf("the address %q is accepted", address)
		}
	}
}

// rawReceiver is the address of a receiver that answers each call with bytes of its own.
func rawReceiver(t *testing.T, answer string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 64<<10))
			_, _ = io.WriteString(conn, answer)
			_ = conn.Close()
		}
	}()
	return fmt.Sprintf("http://%s/", listener.Addr())
}
