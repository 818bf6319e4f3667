package servertest

import (
	"bytes"
	"encoding/json"
	"html"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// Client calls a replica with an API key.
type Client struct {
	TB  testing.TB
	URL string // the public URL
	Key string // empty: none is sent
}

// Answer is what came back.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
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
	var reader io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		reader = strings.NewReader(b)
	default:
		text, err := json.Marshal(b)
		if err != nil {
			return Answer{}, err
		}
		reader = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(c.TB.Context(), method, c.URL+"/api/v1"+path, reader)
	if err != nil {
		return Answer{}, err
	}
	if c.Key != "" {
		request.Header.Set("X-API-Key", c.Key)
	}
	if reader != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	// Each on a connection of its own: on a used one that breaks, the standard
	// client would itself repeat a request that has an Idempotency-Key.
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return Answer{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return Answer{response.StatusCode, response.Header, text}, err
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

var refresh = regexp.MustCompile(`<meta http-equiv="refresh" content="0;url=([^"]*)"`)

// Onward is the address that a page leads to by itself; empty: none.
func (a Answer) Onward() string {
	found := refresh.FindSubmatch(a.Body)
	if found == nil {
		return ""
	}
	return html.UnescapeString(string(found[1]))
}
