package operation

import (
	"log/slog"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/musterhq/muster/internal/fault"
)

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
