package platform

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/musterhq/muster/internal/outcome"
	"github.com/musterhq/muster/internal/validate"

	"google.golang.org/api/googleapi"
)

// Failure is a call that did not succeed. Its text is for logs; Message, the
// vendor's own words in one line, may be shown to people.
type Failure struct {
	Method  string // the method's id without its "androidmanagement." prefix
	Code    outcome.Code
	Status  int    // the HTTP status; 0: no answer
	Reason  string // the vendor's word for it, such as INVALID_ARGUMENT
	Message string
	err     error
}

// Error implements error.
func (f *Failure) Error() string {
	text := "platform: " + f.Method + ": " + string(f.Code)
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
	return &Failure{Method: f.Method, Code: f.Code, Status: f.Status, Reason: f.Reason}
}

// codeOf classifies the result of a call by its error.
func codeOf(err error) outcome.Code {
	if err == nil {
		return outcome.Done
	}
	if f, ok := errors.AsType[*Failure](err); ok {
		return f.Code
	}
	return outcome.Unknown
}

// notSent makes the failure of a call that was never attempted.
func notSent(method, message string, cause error) *Failure {
	return &Failure{Method: method, Code: outcome.NotSent, Message: message, err: cause}
}

// classify turns an attempt's error into a Failure, by the phase it ended in
// and, if the vendor answered, by the answer; nil if nothing was modified.
func classify(method string, err error, reached *phase) error {
	if googleapi.IsNotModified(err) {
		return nil
	}
	if f, ok := errors.AsType[*Failure](err); ok {
		return f
	}
	answer, ok := errors.AsType[*googleapi.Error](err)
	if !ok {
		f := &Failure{Method: method, Code: outcome.NotSent, err: err}
		if reached.written.Load() {
			f.Code = outcome.Unknown
		}
		return f
	}
	f := &Failure{Method: method, Status: answer.Code, Message: oneLine(answer.Message), Reason: reason(answer), err: err}
	f.Code = judge(answer, f.Reason)
	return f
}

// judge sorts an answer that is not a success.
func judge(answer *googleapi.Error, reason string) outcome.Code {
	status := answer.Code
	switch {
	case reason == "RESOURCE_EXHAUSTED" || status == http.StatusTooManyRequests:
		return outcome.Throttled
	case status == http.StatusNotFound, status >= 500 && saysMissing(answer):
		return outcome.Missing
	case status >= 500, status == http.StatusRequestTimeout, status < 300:
		return outcome.Unknown
	case status == http.StatusConflict:
		return outcome.Conflict
	case status == http.StatusBadRequest, status == http.StatusPreconditionFailed, status == http.StatusUnprocessableEntity:
		return outcome.Refused
	}
	return outcome.Denied
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
