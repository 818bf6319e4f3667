package operation

import (
	"fmt"
	"log/slog"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
)

// NoteFields are the names by which a surface takes the parts of a note.
type NoteFields struct{ Reason, Ticket string }

// NotePattern is the regular expression of a part of a note, as JSON Schema has it.
func NotePattern(required bool) string {
	return (&rule{controls: noControls, notblank: required}).pattern()
}

// Read makes a note of what a caller said, and returns what is wrong with it. Blanks
// around a text are not kept, and a text of blanks is none.
func (f NoteFields) Read(reason, ticket string) (access.Note, *fault.Error) {
	for _, part := range []struct {
		field, text string
		most        int
	}{{f.Reason, reason, access.MaxReason}, {f.Ticket, ticket, access.MaxTicket}} {
		if wrong := wrongNote(part.text, part.most); wrong != "" {
			return access.Note{}, fault.Invalid(part.field+" "+wrong, fault.Field{Field: part.field, Message: wrong})
		}
	}
	return access.Note{Reason: strings.TrimSpace(reason), Ticket: strings.TrimSpace(ticket)}, nil
}

// WrongType is the fault of a part that is no text, or is given twice.
func WrongType(field string) *fault.Error {
	const message = "must be one text"
	return fault.Invalid(field+" "+message, fault.Field{Field: field, Message: message})
}

func wrongNote(text string, most int) string {
	switch {
	case !utf8.ValidString(text):
		return "must be UTF-8"
	case utf8.RuneCountInString(text) > most:
		return fmt.Sprintf("must be at most %d characters", most)
	case noControls.in(text):
		return "must not have " + noControls.words()
	}
	return ""
}

// WantsReason reports whether the caller's company requires a reason for the
// operation. It requires none from people in the portal.
func (o *Operation) WantsReason(p access.Principal) bool {
	if p.Kind != access.APIKey && p.Kind != access.Connection {
		return false
	}
	switch p.Settings.Controls.RequireReason {
	case access.ReasonAll:
		return o.Effect != Reading
	case access.ReasonDestructive:
		return o.Needs.Has(access.DevicesCommandDestructive)
	default:
		return false
	}
}

// check returns what is wrong with a call beside its arguments.
func (m Meta) check(o *Operation, p access.Principal) error {
	if m.Wrong != nil {
		return m.Wrong
	}
	if m.Note.Reason == "" && o.WantsReason(p) {
		const message = "is required: the company requires a reason for this operation"
		return fault.Invalid(m.ReasonField+" "+message, fault.Field{Field: m.ReasonField, Message: message})
	}
	return nil
}

// Object is an argument that is a JSON object with any members, such as the arguments
// of another operation. It may hold secrets, so it prints without its text.
type Object []byte

// String keeps the members out of formatted text.
func (o Object) String() string { return "[object]" }

// GoString keeps them out of %#v.
func (o Object) GoString() string { return o.String() }

// LogValue keeps them out of logs.
func (o Object) LogValue() slog.Value { return slog.StringValue(o.String()) }

// TakeReason takes a member that is the caller's reason out of the arguments of an
// operation. What is not an object of distinct members is left for the operation to
// refuse.
func TakeReason(arguments Flat, member string) (rest Flat, reason string, wrong *fault.Error) {
	var given map[string]jsontext.Value
	if json.Unmarshal(arguments, &given) != nil {
		return arguments, "", nil
	}
	text, ok := given[member]
	if !ok {
		return arguments, "", nil
	}
	if text.Kind() != '"' || json.Unmarshal(text, &reason) != nil {
		return arguments, "", WrongType(member)
	}
	delete(given, member)
	others, err := json.Marshal(given, json.Deterministic(true))
	if err != nil {
		return arguments, "", nil //nolint:nilerr // the operation refuses it
	}
	return others, reason, nil
}
