package mcp

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/surface/envelope"
)

// tooMany is JSON-RPC's code for a refusal of our own: the first of those that
// it leaves to servers.
const tooMany = -32000

// slowDown answers a caller who is above the ceiling.
func slowDown(w http.ResponseWriter, id jsontext.Value, limited error) {
	f := fault.From(limited)
	wait := operation.Seconds(f.RetryAfter)
	w.Header().Set("Retry-After", strconv.Itoa(wait))
	data, _ := json.Marshal(map[string]any{"code": f.Code, "retryAfter": wait}) // it cannot fail
	refuse(w, http.StatusTooManyRequests, id, &jsonrpc.Error{Code: tooMany, Message: f.Detail, Data: data})
}

// translated answers with errors of JSON-RPC where the SDK would refuse a
// request in plain text, and counts the calls that the SDK refuses.
func (c Config) translated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		noted := recordOf(r.Context())
		t := &translator{answer: answer{ResponseWriter: w}, config: c, id: noted.message.ID, by: noted.caller.principal,
			counted: r.Method == http.MethodPost && c.called(noted.message) == nil}
		next.ServeHTTP(t, r)
		t.refuse()
	})
}

// translator is the writer of one answer.
type translator struct {
	answer
	config  Config
	id      jsontext.Value
	by      access.Principal
	counted bool // the request was counted when it was read
	over    bool // the answer is written: what follows is not
	plain   int  // the status of a refusal in plain text; 0: none
	text    strings.Builder
}

// WriteHeader holds a refusal in plain text back, to be translated.
func (t *translator) WriteHeader(status int) {
	if status >= http.StatusBadRequest && !t.counted {
		t.counted = true
		if limited := t.config.Once.Kernel.Count(t.by); limited != nil {
			t.over = true
			slowDown(t.ResponseWriter, t.id, limited)
			return
		}
	}
	if status >= http.StatusBadRequest && strings.HasPrefix(t.Header().Get("Content-Type"), "text/plain") {
		t.plain = status
		return
	}
	t.answer.WriteHeader(status)
}

// Write writes what is not held back.
func (t *translator) Write(p []byte) (int, error) {
	switch {
	case t.over:
		return len(p), nil
	case t.plain != 0:
		return t.text.Write(p)
	}
	return t.ResponseWriter.Write(p)
}

// refuse writes the refusal that was held back.
func (t *translator) refuse() {
	if t.plain != 0 && !t.over {
		refuse(t.ResponseWriter, t.plain, t.id, envelope.Invalid(refusalText(t.plain, t.text.String())))
	}
}

// refusalText says in our words why the SDK refused a request. Its own may be
// those of its decoder, with parts of the request.
func refusalText(status int, text string) string {
	const version = "Unsupported protocol version"
	switch {
	case status == http.StatusMethodNotAllowed:
		return "send requests with POST: there are no sessions and no streams here"
	case status == http.StatusUnsupportedMediaType:
		return "the Content-Type must be application/json"
	case status >= http.StatusInternalServerError:
		return "an unexpected error occurred; try again"
	case strings.Contains(text, version):
		return strings.ToLower(version[:1]) + version[1:] + strings.TrimSpace(text[strings.Index(text, version)+len(version):])
	case strings.HasPrefix(text, "Accept"):
		return "the Accept header must allow application/json"
	}
	return "the headers or the body do not fit the protocol version of the request"
}
