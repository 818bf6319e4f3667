package rest

import (
	"net/http"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
)

// idempotencyKey returns the request's Idempotency-Key, which every POST may have, and
// what is wrong with it. A key of any other method is ignored.
func idempotencyKey(r *http.Request) (string, *fault.Error) {
	const header = "Idempotency-Key"
	values := r.Header[header]
	switch {
	case r.Method != http.MethodPost || len(values) == 0:
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
	return noteFields.Read(headerText(r.Header.Get(noteFields.Reason)), headerText(r.Header.Get(noteFields.Ticket)))
}

// headerText is a header's value as text: UTF-8, or else ISO 8859-1, in which many
// HTTP clients send headers.
func headerText(value string) string {
	if utf8.ValidString(value) {
		return value
	}
	text := make([]rune, len(value))
	for i := range len(value) {
		text[i] = rune(value[i])
	}
	return string(text)
}
