package rest

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
)

// maxBody is the largest body that is read, in bytes. The contract's largest is
// that of lost-mode: four texts of 4096 characters, each of them up to twelve
// bytes when it is written as two \u escapes.
const maxBody = 256 << 10

// readParts reads what the request brings as arguments. What is wrong with
// its body is not told yet: rights and budget come first.
func readParts(w http.ResponseWriter, r *http.Request, path []string) *operation.Parts {
	parts := &operation.Parts{Path: path, Query: r.URL.RawQuery}
	if isRead(r.Method) || r.Body == nil || r.ContentLength == 0 {
		return parts
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	parts.Body = body
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		parts.Refused = malformed(fmt.Sprintf("the body is larger than %d bytes", maxBody))
	} else if err != nil {
		parts.Refused = malformed("the body could not be read to its end")
	} else if len(body) > 0 && !isJSON(r.Header.Get("Content-Type")) {
		parts.Refused = malformed("the Content-Type must be application/json")
	}
	return parts
}

func malformed(detail string) *fault.Error {
	e := fault.Invalid(detail)
	e.Malformed = true
	return e
}

// isJSON accepts application/json in UTF-8, and nothing said at all.
func isJSON(contentType string) bool {
	if contentType == "" {
		return true
	}
	media, params, err := mime.ParseMediaType(contentType)
	charset := params["charset"]
	return err == nil && media == jsonType && (charset == "" || strings.EqualFold(charset, "utf-8"))
}

// idempotencyKey returns the request's Idempotency-Key, which every POST and PATCH may have, and
// what is wrong with it. A key of any other method is ignored.
func idempotencyKey(r *http.Request) (string, *fault.Error) {
	const header = "Idempotency-Key"
	values := r.Header[header]
	switch {
	case r.Method != http.MethodPost && r.Method != http.MethodPatch || len(values) == 0:
		return "", nil
	case len(values) > 1:
		return "", operation.InvalidKey(header)
	}
	return values[0], operation.CheckKey(header, values[0])
}

// noteFields are the headers in which a caller says why it calls.
var noteFields = operation.NoteFields{Reason: "X-Muster-Reason", Ticket: "X-Muster-Ticket"} //nolint:gochecknoglobals // a table that is never written to

// note returns what the request says about itself.
func note(r *http.Request) (access.Note, *fault.Error) {
	reasons, tickets := r.Header.Values(noteFields.Reason), r.Header.Values(noteFields.Ticket)
	switch {
	case len(reasons)+len(tickets) == 0:
		return access.Note{}, nil
	case len(reasons) > 1:
		return access.Note{}, operation.WrongType(noteFields.Reason)
	case len(tickets) > 1:
		return access.Note{}, operation.WrongType(noteFields.Ticket)
	}
	return noteFields.Read(r.Header.Get(noteFields.Reason), r.Header.Get(noteFields.Ticket))
}
