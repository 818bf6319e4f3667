package demo

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/script"
	"github.com/musterhq/muster/internal/service/portalclient"
	"github.com/musterhq/muster/internal/surface/rest"
	"github.com/musterhq/muster/internal/surface/web"
)

// person is someone who uses the portal.
type person struct {
	*portalclient.Client
	email string
}

func (h *history) person(email string) person {
	return person{portalclient.New(h.service.PublicURL(), h.memory.passwordOf(email)), email}
}

// post sends a form, in a new session if there is none any more.
func (w person) post(ctx context.Context, path string, fields ...string) portalclient.Page {
	p := w.Post(ctx, path, fields...)
	if strings.HasPrefix(p.Path, web.SignInPath) {
		w.SignIn(ctx, w.email)
		p = w.Post(ctx, path, fields...)
	}
	return p
}

// call makes a call over REST with the assistant's key.
func (h *history) call(ctx context.Context, address string, body map[string]any) (answer map[string]any) {
	payload := []byte("{}")
	if body != nil {
		payload = script.Must(json.Marshal(body))
	}
	url := h.service.PublicURL() + rest.Prefix + address
	request := script.Must(http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(payload)))
	request.Header.Set("X-API-Key", h.memory.Assistant)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	script.Need(err)
	defer response.Body.Close()
	text := script.Must(io.ReadAll(response.Body))
	if response.StatusCode >= http.StatusBadRequest && response.StatusCode != http.StatusBadGateway {
		script.Fail("%s is answered %d: %s", address, response.StatusCode, text)
	}
	_ = json.Unmarshal(text, &answer) // of a failure there may be nothing
	return answer
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
