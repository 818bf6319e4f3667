package portal_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/service"
	"github.com/musterhq/muster/internal/webhook"
)

// ofWebhook is an action on a webhook for which it does something.
func ofWebhook(action string) func(*desk) (string, url.Values) {
	return func(d *desk) (string, url.Values) {
		var made struct{ ID string }
		d.CLI(&made, "webhook", "create", "--company", "acme", "--url", "https://192.0.2.1/hook", "--event", "platform.failing")
		path, fields := "/settings/webhooks/"+made.ID, url.Values{}
		switch action {
		case "rotate":
			fields.Set("once", d.page(d.plain, path+"/rotate").Field(d.T, "once"))
		case "finish":
			_, err := d.DB().RotateWebhook(d.Context(), d.Company.ID, made.ID, []byte("sealed"), d.Now().Add(webhook.RotationTime))
			d.check(err)
		case "replay":
			head, err := d.DB().EventHead(d.Context(), d.Company.ID)
			d.check(err)
			fields.Set("after", head.Cursor(d.Company.ID, head.Last))
		case "enable":
			d.disable(made.ID)
		}
		return path + "/" + action, fields
	}
}

// disable has a webhook disabled, as the service does it.
func (d *desk) disable(id string) { d.disableWhy(id, "it is a test") }

func (d *desk) disableWhy(id, why string) {
	d.Helper()
	d.Eventually("the webhook is disabled", func() error {
		w, err := d.DB().Webhook(d.Context(), d.Company.ID, id)
		if err != nil {
			return err
		}
		claim := resource.NewID()
		if mine, err := d.DB().ClaimWebhook(d.Context(), w, claim, d.Now().Add(time.Minute)); err != nil || !mine {
			return errors.Join(err, errors.New("no claim"))
		}
		_, err = d.DB().RecordWave(d.Context(), webhook.Record{WebhookID: id, CompanyID: d.Company.ID, Claim: claim, Until: d.Now(),
			Position: w.Position, Disable: why})
		return err
	})
}

// receiver takes what a webhook sends, and answers with a status.
type receiver struct {
	*httptest.Server
	status atomic.Int64
	mu     sync.Mutex
	header []http.Header
	body   []string
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{}
	r.status.Store(http.StatusNoContent)
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.header, r.body = append(r.header, q.Header), append(r.body, string(body))
		w.Header().Set("Location", "<script>alert(1)</script>")
		w.WriteHeader(int(r.status.Load()))
	}))
	t.Cleanup(r.Close)
	return r
}

// last is the last call, verified with a secret.
func (r *receiver) last(t *testing.T, secret string) string {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.body) == 0 {
		t.Fatal("nothing arrived")
	}
	verifier, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	body := r.body[len(r.body)-1]
	if err := verifier.Verify([]byte(body), r.header[len(r.header)-1]); err != nil {
		t.Errorf("the signature of %s: %v", body, err)
	}
	return body
}

var shownSecret = regexp.MustCompile(`whsec_[A-Za-z0-9+/=]+`)

// hookOffice is an office whose webhooks may send to this machine.
type hookOffice struct {
	*office
	admin    *servertest.Browser
	receiver *receiver
}

func newHookOffice(t *testing.T, env *servertest.Env) *hookOffice {
	t.Helper()
	o := &office{Tenant: env.NewTenant("acme"), replica: env.Start(func(c *config.Service, _ *service.Options) {
		c.WebhookNetworks.WebhookNetworks = []string{"127.0.0.0/8"}
	})}
	o.base = o.replica.PublicURL()
	return &hookOffice{o, o.person(t, account.Admin), newReceiver(t)}
}

// create makes a webhook of new keys, and returns its page and its secret.
func (o *hookOffice) create(t *testing.T) (path, secret string) {
	t.Helper()
	form := url.Values{"url": {o.receiver.URL}, "event": {"key.created"},
		"once": {servertest.Page{Body: o.get(t, o.admin, "/settings/webhooks/new", 200)}.Field(t, "once")}}
	page := string(o.admin.Send(o.base+"/settings/webhooks", form).Want(t, 200).Body)
	all, err := o.DB().Webhooks(t.Context(), o.Company.ID)
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	path = "/settings/webhooks/" + all[0].ID
	if secret = shownSecret.FindString(page); secret == "" || !strings.Contains(page, `href="`+path+`"`) {
		t.Fatalf("the secret is not shown: %s", page)
	}
	if at := o.admin.Send(o.base+"/settings/webhooks", form).Want(t, 303).Header.Get("Location"); at != "/settings/webhooks" {
		t.Errorf("the form that is sent again leads to %s", at)
	}
	if all, _ := o.DB().Webhooks(t.Context(), o.Company.ID); len(all) != 1 {
		t.Errorf("one form made %d webhooks", len(all))
	}
	return path, secret
}

// An administrator makes a webhook, sees its secret once, and sees what became of a test.
func TestWebhooks_CreateAndTest(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		o := newHookOffice(t, env)
		for _, form := range []url.Values{{"url": {o.receiver.URL}}, {"url": {"ftp://example.com"}, "all": {"true"}},
			{"url": {o.receiver.URL}, "event": {"no.such"}}} {
			form.Set("once", servertest.Page{Body: o.get(t, o.admin, "/settings/webhooks/new", 200)}.Field(t, "once"))
			o.admin.Send(o.base+"/settings/webhooks", form).Want(t, 422)
		}
		path, secret := o.create(t)
		for _, page := range []string{path, "/settings/webhooks", path + "/rotate"} {
			if strings.Contains(o.get(t, o.admin, page, 200), secret) {
				t.Errorf("%s shows the secret again", page)
			}
		}
		test := func() string {
			t.Helper()
			o.admin.Send(o.base+path+"/test", url.Values{}).Want(t, 303)
			return textOf(t, o.get(t, o.admin, path, 200))
		}
		if page := test(); !strings.Contains(page, "The test was delivered: the receiver answered 204") ||
			!strings.Contains(o.receiver.last(t, secret), `"webhook.test"`) {
			t.Errorf("after a test: %s", page)
		}
		o.receiver.status.Store(302)
		if page := test(); !strings.Contains(page, "The test was not delivered. Redirects are not followed") ||
			strings.Contains(page, "alert(1)") {
			t.Errorf("after a test that failed: %s", page)
		}
		if list := textOf(t, o.get(t, o.admin, "/settings/webhooks", 200)); !strings.Contains(list, "Redirects are not followed") ||
			!strings.Contains(list, "key.created") {
			t.Errorf("the list: %s", list)
		}
	})
}

// A secret is replaced once by a form; both sign until the old one is ended.
func TestWebhooks_Rotate(t *testing.T) {
	t.Parallel()
	o := newHookOffice(t, servertest.New(t))
	path, old := o.create(t)
	form := url.Values{"once": {servertest.Page{Body: o.get(t, o.admin, path+"/rotate", 200)}.Field(t, "once")}}
	secret := shownSecret.FindString(string(o.admin.Send(o.base+path+"/rotate", form).Want(t, 200).Body))
	if secret == "" || secret == old {
		t.Fatalf("the new secret is %q", secret)
	}
	if at := o.admin.Send(o.base+path+"/rotate", form).Want(t, 303).Header.Get("Location"); at != path {
		t.Errorf("the form that is sent again leads to %s", at)
	}
	o.admin.Send(o.base+path+"/test", url.Values{}).Want(t, 303)
	o.receiver.last(t, old)
	o.receiver.last(t, secret)
	if !strings.Contains(o.get(t, o.admin, path, 200), "End the old secret now") {
		t.Error("the page does not say that two secrets sign")
	}
	o.admin.Send(o.base+path+"/finish", url.Values{}).Want(t, 303)
	if strings.Contains(o.get(t, o.admin, path, 200), "End the old secret now") {
		t.Error("the old secret is not ended")
	}
}

// A webhook that is disabled says why, is enabled, sends again, and is deleted.
func TestWebhooks_Disabled(t *testing.T) {
	t.Parallel()
	o := newHookOffice(t, servertest.New(t))
	path, secret := o.create(t)
	o.receiver.status.Store(410)
	o.Client(o.replica, access.All)
	o.Eventually("the webhook is disabled", func() error {
		if page := textOf(t, o.get(t, o.admin, path, 200)); !strings.Contains(page, "Disabled") ||
			!strings.Contains(page, "receiver wants no more events") {
			return errors.New(page)
		}
		return nil
	})
	if needs := o.get(t, o.admin, "/needs-you", 200); !strings.Contains(needs, `href="`+path+`"`) {
		t.Error("what needs a person does not lead to the webhook")
	}
	o.receiver.status.Store(200)
	o.admin.Send(o.base+path+"/enable", url.Values{}).Want(t, 303)
	o.Eventually("the event is delivered", func() error {
		if page := textOf(t, o.get(t, o.admin, path, 200)); !strings.Contains(page, "Delivered") || strings.Contains(page, "Disabled") {
			return errors.New(page)
		}
		return nil
	})
	o.receiver.last(t, secret)
	calls := func() int {
		o.receiver.mu.Lock()
		defer o.receiver.mu.Unlock()
		return len(o.receiver.body)
	}
	before := calls()
	after := servertest.Page{Body: o.get(t, o.admin, path, 200)}.Field(t, "after")
	o.admin.Send(o.base+path+"/replay", url.Values{"after": {after}}).Want(t, 303)
	o.Eventually("the event comes again", func() error {
		if calls() == before {
			return errors.New("it did not")
		}
		return nil
	})
	o.admin.Send(o.base+path+"/delete", url.Values{}).Want(t, 303)
	o.get(t, o.admin, path, 404)
	if list := o.get(t, o.admin, "/settings/webhooks", 200); !strings.Contains(list, "Create the first webhook") {
		t.Error("the list is not empty")
	}
}

// Who may not manage the company sees no webhook; another company's is not there.
func TestWebhooks_Rights(t *testing.T) {
	t.Parallel()
	o := newHookOffice(t, servertest.New(t))
	path, _ := o.create(t)
	manager, viewer := o.person(t, account.Manager), o.person(t, account.Viewer)
	spy := o.Browser(o.Env.Company("elsewhere", servertest.Everything()), account.Admin)
	spy.SignIn(o.base)
	once := servertest.Page{Body: o.get(t, spy, "/settings/webhooks/new", 200)}.Field(t, "once")
	for _, page := range []string{"/settings/webhooks", "/settings/webhooks/new", path, path + "/rotate"} {
		o.get(t, manager, page, 403)
		o.get(t, viewer, page, 403)
	}
	o.get(t, spy, path, 404)
	o.get(t, spy, path+"/rotate", 404)
	for _, action := range []string{"test", "replay", "rotate", "finish", "enable", "delete"} {
		form := url.Values{"once": {once}}
		if action == "replay" {
			head, err := o.DB().EventHead(t.Context(), spy.User.CompanyID)
			if err != nil {
				t.Fatal(err)
			}
			form.Set("after", head.Cursor(spy.User.CompanyID, head.Last))
		}
		viewer.Send(o.base+path+"/"+action, form).Want(t, 403)
		spy.Send(o.base+path+"/"+action, form).Want(t, 404)
	}
	if page := o.get(t, spy, "/settings/webhooks", 200); strings.Contains(page, o.receiver.URL) {
		t.Error("another company's webhook is listed")
	}
	o.get(t, o.admin, path, 200)
}
