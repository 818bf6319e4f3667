package emulator

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"

	"github.com/musterhq/muster/internal/discovery"
	"github.com/musterhq/muster/internal/slice"
)

// status is the vendor's error: an HTTP status, the name of its canonical code,
// and a sentence.
type status struct {
	code    int
	name    string
	message string
	details []any
}

func (s *status) Error() string { return s.message }

// canonical is one of the vendor's canonical codes.
type canonical struct {
	name     string
	status   int    // of HTTP
	sentence string // the vendor's usual one; empty: that of unavailable
}

const unavailable = "The service is currently unavailable."

// canonicals are the canonical codes; of those that share a status, the usual one
// is first.
var canonicals = []canonical{ //nolint:gochecknoglobals // a table that is never written to
	{"INVALID_ARGUMENT", 400, "Request contains an invalid argument."},
	{"FAILED_PRECONDITION", 400, ""},
	{"OUT_OF_RANGE", 400, ""},
	{"UNAUTHENTICATED", 401, "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid " +
		"authentication credential. See https://developers.google.com/identity/sign-in/web/devconsole-project."},
	{"PERMISSION_DENIED", 403, "The caller does not have permission"},
	{"NOT_FOUND", 404, "Requested entity was not found."},
	{"ABORTED", 409, "The operation was aborted."},
	{"ALREADY_EXISTS", 409, ""},
	{"RESOURCE_EXHAUSTED", 429, quotaMessage},
	{"CANCELLED", 499, ""},
	{"INTERNAL", 500, "Internal error encountered."},
	{"DATA_LOSS", 500, ""},
	{"UNKNOWN", 500, ""},
	{"UNIMPLEMENTED", 501, ""},
	{"UNAVAILABLE", 503, unavailable},
	{"DEADLINE_EXCEEDED", 504, "Deadline expired before operation could complete."},
}

// canonicalOf is the usual code of an HTTP status.
func canonicalOf(status int) canonical {
	for _, c := range canonicals {
		if c.status == status {
			return c
		}
	}
	return canonical{name: "UNKNOWN", status: status}
}

// statusOf is the HTTP status of a canonical code, or 0 for another word.
func statusOf(name string) int {
	for _, c := range canonicals {
		if c.name == name {
			return c.status
		}
	}
	return 0
}

// usual is the vendor's usual error for a status.
func usual(code int) *status {
	return fail(code, "%s", cmp.Or(canonicalOf(code).sentence, unavailable))
}

func fail(code int, format string, arguments ...any) *status {
	return &status{code: code, name: canonicalOf(code).name, message: fmt.Sprintf(format, arguments...)}
}

func invalid(format string, arguments ...any) *status {
	return fail(http.StatusBadRequest, format, arguments...)
}

func notFound() *status { return usual(http.StatusNotFound) }

// failAs is an error with a canonical code that is not the usual one of its status.
func failAs(name, format string, arguments ...any) *status {
	s := fail(statusOf(name), format, arguments...)
	s.name = name
	return s
}

// asStatus turns any error into the vendor's form. What is not a status or a
// violation of the discovery document is an internal error without its text.
func asStatus(err error) *status {
	if s, ok := errors.AsType[*status](err); ok {
		return s
	}
	if violations, ok := errors.AsType[*discovery.Error](err); ok {
		return violationStatus(violations)
	}
	return usual(http.StatusInternalServerError)
}

func violationStatus(err *discovery.Error) *status {
	fields := slice.Map(err.Violations, func(v discovery.Violation) any {
		return map[string]any{"field": v.Field, "description": v.Description}
	})
	s := invalid("%s", err.Error())
	s.details = []any{map[string]any{"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": fields}}
	return s
}

// body is the JSON that the vendor sends for an error.
func (s *status) body() map[string]any {
	inner := map[string]any{"code": s.code, "message": s.message, "status": s.name}
	if len(s.details) > 0 {
		inner["details"] = s.details
	}
	return map[string]any{"error": inner}
}
