// Package client calls a service of Muster over REST, as the command line does from any
// machine. It sends one request for each call and follows no redirect, so that the API key
// goes to the service alone. What is sent again is the caller's decision.
package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Base is the path of the REST API.
const Base = "/api/v1"

// maxAnswer is the largest answer that is read, in bytes.
const maxAnswer = 64 << 20

// Client is a caller of one service.
type Client struct {
	Address string // of the service, as ParseAddress returns it
	Key     string // empty: none is sent
	HTTP    *http.Client
}

// New returns a client. A request ends after two minutes at the latest.
func New(address, key string) *Client {
	return &Client{Address: address, Key: key, HTTP: &http.Client{Timeout: 2 * time.Minute,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// ParseAddress returns the address of a service without a slash at its end.
func ParseAddress(text string) (string, error) {
	u, err := url.Parse(strings.TrimRight(text, "/"))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", errors.New("the address of the service must be such as https://muster.example.com, without user or query")
	}
	return u.String(), nil
}

// Unprotected reports whether a key would travel to the address without encryption.
func Unprotected(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Scheme == "http" && u.Hostname() != "localhost" && !net.ParseIP(u.Hostname()).IsLoopback()
}

// Request is one call.
type Request struct {
	Method string
	Path   string // below the service's address, escaped
	Query  url.Values
	Body   []byte // JSON; nil: none
	// IdempotencyKey makes the request one that may be sent again; empty: none.
	IdempotencyKey string
	Reason, Ticket string // why, for the record; may be empty
}

// Answer is a success.
type Answer struct {
	Status int
	Body   []byte
	Budget *Budget // nil: the call spends none
}

// Unconfirmed reports whether it is not known if the effect happened.
func (a *Answer) Unconfirmed() bool { return a.Status == http.StatusAccepted }

// Lost is the error of a request that may have reached the service, which gave no answer: also
// where a proxy answered in its place.
type Lost struct{ Err error }

func (e *Lost) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Lost) Unwrap() error { return e.Err }

// Do sends one request. Errors are a *Problem, which the service answered, or a *Lost.
func (c *Client) Do(ctx context.Context, r Request) (*Answer, error) {
	request, err := c.request(ctx, r)
	if err != nil {
		return nil, err
	}
	response, err := c.HTTP.Do(request)
	if err != nil {
		if outer, ok := errors.AsType[*url.Error](err); ok {
			err = outer.Err // without the whole address
		}
		return nil, &Lost{fmt.Errorf("no answer from %s: %w", c.Address, err)}
	}
	defer response.Body.Close() // it was read
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, &Lost{fmt.Errorf("the answer of %s broke off: %w", c.Address, err)}
	case len(body) > maxAnswer:
		return nil, &Lost{fmt.Errorf("the answer of %s is longer than %d bytes", c.Address, maxAnswer)}
	case response.StatusCode >= http.StatusInternalServerError && !strings.HasPrefix(response.Header.Get("Content-Type"), problemType):
		return nil, &Lost{fmt.Errorf("%s answers %d %s, as something before the service does", c.Address, response.StatusCode,
			http.StatusText(response.StatusCode))}
	case response.StatusCode < 200 || response.StatusCode > 299:
		return nil, problemOf(response, body)
	}
	return &Answer{Status: response.StatusCode, Body: body, Budget: budgetOf(response.Header)}, nil
}

// problemType is the form of every failure of the service itself.
const problemType = "application/problem+json"

func (c *Client) request(ctx context.Context, r Request) (*http.Request, error) {
	address := c.Address + r.Path
	if len(r.Query) > 0 {
		address += "?" + r.Query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, r.Method, address, bytes.NewReader(r.Body))
	if err != nil {
		return nil, err
	}
	if r.Body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	for name, value := range map[string]string{"X-API-Key": c.Key, "Idempotency-Key": r.IdempotencyKey, "X-Muster-Reason": r.Reason,
		"X-Muster-Ticket": r.Ticket} {
		if value != "" {
			request.Header.Set(name, value)
		}
	}
	return request, nil
}
