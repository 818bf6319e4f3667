package rest

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/surface/edge"
)

// reply is an answer before it is written.
type reply struct {
	status      int
	contentType string
	header      []field
	body        []byte
}

type field struct{ name, value string }

func (a *reply) set(name, value string) { a.header = append(a.header, field{name, value}) }

// accept writes a success. A result whose outcome is unknown is 202
// (contract 7.1).
func accept(o *operation.Operation, result any) (reply, error) {
	a := reply{status: edge.Success(o.Created), contentType: jsonType}
	if u, ok := result.(operation.Uncertain); ok && u.Unconfirmed() {
		a.status = http.StatusAccepted
	}
	if plain, ok := result.(operation.Plain); ok {
		a.contentType, a.body = plainType, []byte(plain.PlainText())
		return a, nil
	}
	body, err := operation.EncodeResult(result)
	if err != nil {
		return reply{}, fmt.Errorf("cannot write the result: %w", err)
	}
	a.body = body
	return a, nil
}

// budget reports what is left of the caller's budget, in the fields of the
// IETF's draft "RateLimit header fields for HTTP".
func (a *reply) budget(left *operation.Allowance) {
	if left == nil {
		return
	}
	name := cmp.Or(left.Name, "commands")
	a.set("RateLimit-Policy", fmt.Sprintf(`%q;q=%d;w=%d`, name, left.Limit, operation.Seconds(left.Window)))
	a.set("RateLimit", fmt.Sprintf(`%q;r=%d;t=%d`, name, left.Remaining, operation.Seconds(left.Reset)))
}

// write sends the reply. Reads carry a validator and may be kept by the
// caller's own cache if it asks each time; nothing else may be kept at all,
// because it may hold a token or a QR code.
func (a *reply) write(w http.ResponseWriter, r *http.Request) int {
	h := w.Header()
	for _, f := range a.header {
		h.Set(f.name, f.value)
	}
	h["X-Content-Type-Options"] = []string{"nosniff"}
	if a.contentType != "" {
		h["Content-Type"] = []string{a.contentType}
	}
	cache := "no-store"
	if isRead(r.Method) && a.status == http.StatusOK {
		cache = "private, no-cache"
		tag := etag(a.body)
		h["Etag"] = []string{tag}
		if matches(r.Header.Values("If-None-Match"), tag) {
			h["Cache-Control"] = []string{cache}
			delete(h, "Content-Type")
			w.WriteHeader(http.StatusNotModified)
			return http.StatusNotModified
		}
	}
	h["Cache-Control"] = []string{cache}
	h["Content-Length"] = []string{strconv.Itoa(len(a.body))}
	w.WriteHeader(a.status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(a.body) // the client may have gone
	}
	return a.status
}

func isRead(method string) bool { return method == http.MethodGet || method == http.MethodHead }

// etag is a strong validator: the same bytes, on every replica, have the same.
func etag(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
}

// matches compares weakly, as RFC 9110 13.1.2 has it for If-None-Match.
func matches(given []string, tag string) bool {
	for _, line := range given {
		for one := range strings.SplitSeq(line, ",") {
			one = strings.TrimSpace(one)
			if one == "*" || strings.TrimPrefix(one, "W/") == tag {
				return true
			}
		}
	}
	return false
}

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
