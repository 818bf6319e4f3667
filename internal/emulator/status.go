package emulator

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/musterhq/muster/internal/platform/discovery"
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

// canonical maps HTTP statuses to the vendor's canonical codes.
func canonical(code int) string {
	switch code {
	case http.StatusBadRequest:
		return "INVALID_ARGUMENT"
	case http.StatusUnauthorized:
		return "UNAUTHENTICATED"
	case http.StatusForbidden:
		return "PERMISSION_DENIED"
	case http.StatusNotFound:
		return "NOT_FOUND"
	case http.StatusConflict:
		return "ABORTED"
	case http.StatusTooManyRequests:
		return "RESOURCE_EXHAUSTED"
	case http.StatusNotImplemented:
		return "UNIMPLEMENTED"
	case http.StatusServiceUnavailable:
		return "UNAVAILABLE"
	case http.StatusGatewayTimeout:
		return "DEADLINE_EXCEEDED"
	case http.StatusInternalServerError:
		return "INTERNAL"
	default:
		return "UNKNOWN"
	}
}

// codeOf is the inverse of canonical, with the codes that share a status.
func codeOf(name string) (int, bool) {
	code, ok := map[string]int{
		"INVALID_ARGUMENT": 400, "FAILED_PRECONDITION": 400, "OUT_OF_RANGE": 400,
		"UNAUTHENTICATED": 401, "PERMISSION_DENIED": 403, "NOT_FOUND": 404,
		"ABORTED": 409, "ALREADY_EXISTS": 409, "RESOURCE_EXHAUSTED": 429, "CANCELLED": 499,
		"INTERNAL": 500, "DATA_LOSS": 500, "UNKNOWN": 500, "UNIMPLEMENTED": 501,
		"UNAVAILABLE": 503, "DEADLINE_EXCEEDED": 504,
	}[name]
	return code, ok
}

func fail(code int, format string, arguments ...any) *status {
	return &status{code: code, name: canonical(code), message: fmt.Sprintf(format, arguments...)}
}

func invalid(format string, arguments ...any) *status {
	return fail(http.StatusBadRequest, format, arguments...)
}

func notFound() *status {
	return fail(http.StatusNotFound, "Requested entity was not found.")
}

func failedPrecondition(format string, arguments ...any) *status {
	s := invalid(format, arguments...)
	s.name = "FAILED_PRECONDITION"
	return s
}

func alreadyExists(format string, arguments ...any) *status {
	s := fail(http.StatusConflict, format, arguments...)
	s.name = "ALREADY_EXISTS"
	return s
}

// asStatus turns any error into the vendor's form. What is not a status or a
// violation of the discovery document is an internal error without its text.
func asStatus(err error) *status {
	var s *status
	if errors.As(err, &s) {
		return s
	}
	var violations *discovery.Error
	if errors.As(err, &violations) {
		return violationStatus(violations)
	}
	return fail(http.StatusInternalServerError, "Internal error encountered.")
}

func violationStatus(err *discovery.Error) *status {
	fields := make([]any, len(err.Violations))
	for i, v := range err.Violations {
		fields[i] = map[string]any{"field": v.Field, "description": v.Description}
	}
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
