package rest

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/surface/edge"
)

const (
	jsonType    = "application/json"
	problemType = "application/problem+json"
	plainType   = "text/plain; charset=utf-8"
)

// methodNotAllowed is the code of a path that exists, asked in the wrong way.
const methodNotAllowed fault.Code = "method_not_allowed"

func statusOf(code fault.Code) int {
	if code == methodNotAllowed {
		return http.StatusMethodNotAllowed
	}
	return edge.Status(code)
}

// problem is RFC 9457's object with our extension members.
type problem struct {
	Type      string        `json:"type"`
	Title     string        `json:"title"`
	Status    int           `json:"status"`
	Detail    string        `json:"detail"`
	Instance  string        `json:"instance"`
	Code      fault.Code    `json:"code,omitempty"`
	Retryable *bool         `json:"retryable,omitempty"`
	Errors    []fault.Field `json:"errors,omitempty"`
	Oldest    string        `json:"oldest,omitempty"`
	*fault.Review
	*fault.Approval
}

// small is the shared object of 401, and of 429 on the four older commands.
type small struct {
	Error   string `json:"error"`
	Message string `json:"message"`
	Status  int    `json:"status"`
}

// shape says how one dialect writes one fault.
type shape struct {
	empty, small, code, retryable bool
}

// shapeOf is the table of contract 7.2 to 7.4.
func shapeOf(d operation.Dialect, code fault.Code, malformed bool) shape {
	status := statusOf(code)
	if status == http.StatusUnauthorized {
		return shape{small: true}
	}
	switch d {
	case operation.FirstFour:
		return shape{
			small:     status == http.StatusTooManyRequests,
			empty:     status == http.StatusNotFound,
			retryable: status == http.StatusBadGateway || status == http.StatusServiceUnavailable,
		}
	case operation.Commands:
		return shape{code: true, retryable: status == http.StatusTooManyRequests || status >= http.StatusInternalServerError}
	case operation.Provisioning:
		return shape{code: !malformed, retryable: !malformed}
	default: // Policies and Reads
		return shape{code: true, retryable: true}
	}
}

// atFault names what is wrong with a request: its fields or, where it could not
// be read, all of it (contract 7.6: an errors array on every 400).
func atFault(e *fault.Error) []fault.Field {
	if len(e.Fields) > 0 {
		return e.Fields
	}
	if message, ok := strings.CutPrefix(e.Detail, "the query "); ok {
		return []fault.Field{{Field: "query", Message: message}}
	}
	return []fault.Field{{Field: "body", Message: strings.TrimPrefix(e.Detail, "the body ")}}
}

// refuse writes a fault in a dialect; instance is the path of the request.
func refuse(d operation.Dialect, instance string, e *fault.Error) reply {
	code := statusOf(e.Code)
	a := reply{status: code}
	switch {
	case e.Code == fault.RateLimited:
		a.set("Retry-After", strconv.Itoa(operation.Seconds(e.RetryAfter)))
	case e.Code == fault.InFlight:
		a.set("Retry-After", "1")
	case code == http.StatusUnauthorized:
		a.set("WWW-Authenticate", `ApiKey header="X-API-Key"`)
	}
	form := shapeOf(d, e.Code, e.Malformed)
	switch {
	case form.empty:
		return a
	case form.small:
		a.contentType = jsonType
		a.body, _ = json.Marshal(small{http.StatusText(code), e.Detail, code})
		return a
	}
	p := problem{Type: "about:blank", Title: http.StatusText(code), Status: code, Detail: e.Detail, Instance: instance, Oldest: e.Oldest,
		Review: e.Review, Approval: e.Approval}
	if form.code {
		p.Code = e.Code
	}
	if form.retryable {
		p.Retryable = new(e.MayRetry())
	}
	if code == http.StatusBadRequest {
		p.Errors = atFault(e)
	}
	a.contentType = problemType
	a.body, _ = json.Marshal(p) // strings, numbers and booleans: it cannot fail
	return a
}
