package demo

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/client"
	"github.com/musterhq/muster/internal/script"
	"github.com/musterhq/muster/internal/surface/web"
)

// person is someone who uses the portal.
func (h *history) person(email string) *client.Person {
	password := h.memory.Password
	if email == secondUser {
		password = h.memory.Second
	}
	return client.NewPerson(h.service.PublicURL(), email, password)
}

// post sends a person's form, in a new session if there is none any more.
func post(ctx context.Context, who *client.Person, path string, fields ...string) client.Page {
	p := who.Post(ctx, path, fields...)
	if strings.HasPrefix(p.Path, web.SignInPath) {
		who.SignIn(ctx)
		p = who.Post(ctx, path, fields...)
	}
	return p
}

// call makes a call over REST with the assistant's key. Of one that the platform refused, there is no result.
func (h *history) call(ctx context.Context, address string, body map[string]any) (result map[string]any) {
	answer, err := client.New(h.service.PublicURL(), h.memory.Assistant).Do(ctx, client.Request{Method: http.MethodPost,
		Path: client.Base + address, Body: script.Must(json.Marshal(body))})
	if p, refused := errors.AsType[*client.Problem](err); refused && p.Status == http.StatusBadGateway {
		return nil
	}
	if err != nil {
		script.Fail("%s: %w", address, err)
	}
	script.Need(json.Unmarshal(answer.Body, &result))
	return result
}

// linkLife is for how long the link of a start may be used.
const linkLife = time.Hour

// link signs the demo's administrator in, once. It lives in this process alone.
type link struct {
	mu   sync.Mutex
	code string // empty: it was used
	ends time.Time
	now  func() time.Time
}

func newLink(now func() time.Time) *link {
	return &link{code: rand.Text(), ends: now().Add(linkLife), now: now}
}

// take uses the link up.
func (l *link) take(code string) (email string, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.code == "" || subtle.ConstantTimeCompare([]byte(code), []byte(l.code)) != 1 || !l.now().Before(l.ends) {
		return "", false
	}
	l.code = ""
	return portalUser, true
}
