// Package client calls a service of Muster over REST, as the command line does from any
// machine, and uses its portal with a browser without scripts.
//
// A [Client] sends one request for each call and follows no redirect, so that the API key
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
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
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
	Reason, Ticket string   // why, for the record; may be empty
	Headers        []string // more, or others than the usual ones: names and values in turn
}

// Answer is what the service answered.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Unconfirmed reports whether it is not known if the effect happened.
func (a *Answer) Unconfirmed() bool { return a.Status == http.StatusAccepted }

// Lost is the error of a request that may have reached the service, which gave no answer: also
// where a proxy answered in its place. A request for which there was no connection is not lost.
type Lost struct{ Err error }

func (e *Lost) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Lost) Unwrap() error { return e.Err }

// Do sends one request and returns a success. Errors are a *Problem, which the service answered, or those of Exchange.
func (c *Client) Do(ctx context.Context, r Request) (*Answer, error) {
	a, err := c.Exchange(ctx, r)
	switch {
	case err != nil:
		return nil, err
	case a.Status >= http.StatusInternalServerError && !strings.HasPrefix(a.Header.Get("Content-Type"), problemType):
		return nil, &Lost{fmt.Errorf("%s answers %d %s, as something before the service does", c.Address, a.Status,
			http.StatusText(a.Status))}
	case a.Status < 200 || a.Status > 299:
		return nil, problemOf(a)
	}
	return a, nil
}

// Exchange sends one request and returns any answer: a refusal as well. Errors are a *Lost, or of a request that was not sent.
func (c *Client) Exchange(ctx context.Context, r Request) (*Answer, error) {
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
	setHeaders(request, r.Headers)
	answer, _, err := exchange(c.HTTP, request, c.Address)
	return answer, err
}

// exchange sends a request to the service at an address, and returns the answer with the last request, after
// redirects. Errors are a *Lost, or of a request that was not sent.
func exchange(via *http.Client, request *http.Request, address string) (*Answer, *http.Request, error) {
	var sent atomic.Bool
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent.Store(true) }}
	response, err := via.Do(request.WithContext(httptrace.WithClientTrace(request.Context(), trace)))
	if err != nil {
		if outer, ok := errors.AsType[*url.Error](err); ok {
			err = outer.Err // without the whole address
		}
		if err = fmt.Errorf("no answer from %s: %w", address, err); sent.Load() {
			err = &Lost{err}
		}
		return nil, nil, err
	}
	defer response.Body.Close() // it was read
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, nil, &Lost{fmt.Errorf("the answer of %s broke off: %w", address, err)}
	case len(body) > maxAnswer:
		return nil, nil, &Lost{fmt.Errorf("the answer of %s is longer than %d bytes", address, maxAnswer)}
	}
	return &Answer{response.StatusCode, response.Header, body}, response.Request, nil
}

// problemType is the form of every failure of the service itself.
const problemType = "application/problem+json"

// setHeaders sets headers, which are names and values in turn.
func setHeaders(r *http.Request, headers []string) {
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
}
