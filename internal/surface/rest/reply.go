package rest

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"

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
