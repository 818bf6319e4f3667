package servertest

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/musterhq/muster/internal/client"
)

// Client calls a replica with an API key.
type Client struct {
	TB  testing.TB
	URL string // the public URL
	Key string // empty: none is sent
}

// Answer is what came back.
type Answer client.Answer

// answered is the answer to a step of a browser.
func answered(tb testing.TB, take func() client.Page) Answer {
	tb.Helper()
	p := step(tb, take)
	return Answer{p.Status, p.Header, []byte(p.Body)}
}

// As returns a client of the replica with a key.
func (r *Replica) As(key string) Client { return Client{TB: r.env.TB, URL: r.PublicURL(), Key: key} }

// Get calls an operation that reads; path is relative to base_url.
func (c Client) Get(path string) Answer {
	c.TB.Helper()
	return c.Do("GET", path, nil)
}

// Post calls an operation that writes. A nil body sends none; a string is sent
// as it is; anything else as JSON.
func (c Client) Post(path string, body any, headers ...string) Answer {
	c.TB.Helper()
	return c.Do("POST", path, body, headers...)
}

// Do sends one request; headers are names and values in turn.
func (c Client) Do(method, path string, body any, headers ...string) Answer {
	c.TB.Helper()
	answer, err := c.Try(method, path, body, headers...)
	if err != nil {
		c.TB.Fatalf("%s %s: %v", method, path, err)
	}
	return answer
}

// Try is Do for requests that may meet a dying service.
func (c Client) Try(method, path string, body any, headers ...string) (Answer, error) {
	r := client.Request{Method: method, Path: client.Base + path, Headers: headers}
	switch b := body.(type) {
	case nil:
	case string:
		r.Body = []byte(b)
	default:
		text, err := json.Marshal(b)
		if err != nil {
			return Answer{}, err
		}
		r.Body = text
	}
	// Each on a connection of its own: on a used one that breaks, the standard
	// client would itself repeat a request that has an Idempotency-Key.
	via := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := (&client.Client{Address: c.URL, Key: c.Key, HTTP: via}).Exchange(c.TB.Context(), r)
	if err != nil {
		return Answer{}, err
	}
	return Answer(*answer), nil
}

// JSON decodes the body, which must be JSON, into v.
func (a Answer) JSON(tb testing.TB, v any) {
	tb.Helper()
	if err := json.Unmarshal(a.Body, v); err != nil {
		tb.Fatalf("the answer %d %q is not what was expected: %v", a.Status, a.Body, err)
	}
}

// Want fails the test unless the status is as wanted.
func (a Answer) Want(tb testing.TB, status int) Answer {
	tb.Helper()
	if a.Status != status {
		tb.Fatalf("status %d, want %d: %s", a.Status, status, a.Body)
	}
	return a
}

// Members decodes the body as an object; it is empty for an empty body.
func (a Answer) Members(tb testing.TB) map[string]any {
	tb.Helper()
	members := map[string]any{}
	if len(a.Body) > 0 {
		a.JSON(tb, &members)
	}
	return members
}

// As is the same key at another replica.
func (c Client) As(r *Replica) Client {
	c.URL = r.PublicURL()
	return c
}

// Onward is the address that a page leads to by itself; empty: none.
func (a Answer) Onward() string { return client.Page{Body: string(a.Body)}.Onward() }
