package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

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
func (w person) post(ctx context.Context, path string, fields ...string) (portalclient.Page, error) {
	p, err := w.Post(ctx, path, fields...)
	if err != nil || !strings.HasPrefix(p.Path, web.SignInPath) {
		return p, err
	}
	if err := w.SignIn(ctx, w.email); err != nil {
		return p, err
	}
	return w.Post(ctx, path, fields...)
}

// call makes a call over REST with the assistant's key.
func (h *history) call(ctx context.Context, address string, body map[string]any) (answer map[string]any, err error) {
	payload := []byte("{}")
	if body != nil {
		if payload, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, h.service.PublicURL()+rest.Prefix+address, bytes.NewReader(payload))
	if err != nil {
		return nil, err
	}
	request.Header.Set("X-API-Key", h.memory.Assistant)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode >= http.StatusBadRequest && response.StatusCode != http.StatusBadGateway {
		err = fmt.Errorf("%s is answered %d: %s", address, response.StatusCode, text)
	}
	_ = json.Unmarshal(text, &answer) // of a failure there may be nothing
	return answer, err
}
