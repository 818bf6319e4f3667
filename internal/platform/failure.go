package platform

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/musterhq/muster/internal/validate"

	"google.golang.org/api/googleapi"
)

// Came classifies the result of one call of the vendor.
type Came string

// The ways a call may end. Only Unknown leaves its effect open.
const (
	Answered  Came = "ok"
	NotSent   Came = "not_sent"  // nothing left the service
	Unknown   Came = "unknown"   // it may have taken effect
	Refused   Came = "refused"   // the vendor evaluated it and refused it: 400
	Missing   Came = "missing"   // what it is about does not exist: 404
	Throttled Came = "throttled" // the vendor's quota: 429
	Conflict  Came = "conflict"  // 409
	Denied    Came = "denied"    // this service may not: 401, 403, a wrong address
)

// Failure is a call that did not succeed. Its text is for logs; Message, the
// vendor's own words in one line, may be shown to people.
type Failure struct {
	Method  string // the method's id without its "androidmanagement." prefix
	Came    Came
	Status  int    // the HTTP status; 0: no answer
	Reason  string // the vendor's word for it, such as INVALID_ARGUMENT
	Message string
	err     error
}

// Error implements error.
func (f *Failure) Error() string {
	text := "platform: " + f.Method + ": " + string(f.Came)
	if f.Status != 0 {
		text += fmt.Sprintf(" (%d %s)", f.Status, f.Reason)
	}
	if f.Message != "" {
		text += ": " + f.Message
	}
	if f.err != nil && f.Status == 0 { // else the message is what the vendor answered
		text += ": " + oneLine(f.err.Error())
	}
	return text
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.err }

// WithoutText returns the failure without the vendor's words, which may repeat
// what was sent.
func (f *Failure) WithoutText() error {
	if f.Status == 0 {
		return f
	}
	return &Failure{Method: f.Method, Came: f.Came, Status: f.Status, Reason: f.Reason}
}

// came classifies the result of a call by its error.
func came(err error) Came {
	if err == nil {
		return Answered
	}
	if f, ok := errors.AsType[*Failure](err); ok {
		return f.Came
	}
	return Unknown
}

// notSent makes the failure of a call that was never attempted.
func notSent(method, message string, cause error) *Failure {
	return &Failure{Method: method, Came: NotSent, Message: message, err: cause}
}

// classify turns an attempt's error into a Failure, by the phase it ended in
// and, if the vendor answered, by the answer; nil if the attempt succeeded.
func classify(method string, err error, reached *phase) error {
	if err == nil || googleapi.IsNotModified(err) {
		return nil
	}
	if f, ok := errors.AsType[*Failure](err); ok {
		return f
	}
	answer, ok := errors.AsType[*googleapi.Error](err)
	if !ok {
		f := &Failure{Method: method, Came: NotSent, err: err}
		if reached.written.Load() {
			f.Came = Unknown
		}
		return f
	}
	f := &Failure{Method: method, Status: answer.Code, Message: oneLine(answer.Message), Reason: reason(answer), err: err}
	f.Came = judge(answer, f.Reason)
	return f
}

// judge sorts an answer that is not a success.
func judge(answer *googleapi.Error, reason string) Came {
	status := answer.Code
	switch {
	case reason == "RESOURCE_EXHAUSTED" || status == http.StatusTooManyRequests:
		return Throttled
	case status == http.StatusNotFound, status >= 500 && saysMissing(answer):
		return Missing
	case status >= 500, status == http.StatusRequestTimeout, status < 300:
		return Unknown
	case status == http.StatusConflict:
		return Conflict
	case status == http.StatusBadRequest, status == http.StatusPreconditionFailed, status == http.StatusUnprocessableEntity:
		return Refused
	}
	return Denied
}

// saysMissing recognizes the vendor's habit of answering 500 for what does not
// exist.
func saysMissing(answer *googleapi.Error) bool {
	const words = "Requested entity was not found"
	return strings.Contains(answer.Message, words) || strings.Contains(answer.Body, words)
}

// reason reads the vendor's word for an error, which its client leaves in the
// body. Old front ends name exhausted quotas in another way.
func reason(answer *googleapi.Error) string {
	for _, item := range answer.Errors {
		switch item.Reason {
		case "rateLimitExceeded", "userRateLimitExceeded", "quotaExceeded":
			return "RESOURCE_EXHAUSTED"
		}
	}
	var body struct {
		Error struct {
			Status string `json:"status"`
		} `json:"error"`
	}
	if json.Unmarshal([]byte(answer.Body), &body) != nil {
		return ""
	}
	return validate.Clean(body.Error.Status, 40)
}

// maxWords bounds what is kept of the vendor's or a device's words, in
// characters.
const maxWords = 300

// oneLine makes foreign text fit to be shown: printable, in one line, not long.
func oneLine(text string) string { return validate.Clean(text, maxWords) }
