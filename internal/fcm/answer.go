package fcm

import (
	"encoding/json"
	"github.com/musterhq/muster/internal/outcome"
	"net/http"
	"strconv"
	"strings"
	"time"

	"google.golang.org/api/googleapi"

	"github.com/musterhq/muster/internal/validate"
)

// details are what FCM says of an error beside its status: a code of its own,
// and for malformed messages the member at fault.
type details struct {
	Error struct {
		Status  string `json:"status"`
		Details []struct {
			Type       string `json:"@type"`
			Code       string `json:"errorCode"`
			Violations []struct {
				Field string `json:"field"`
			} `json:"fieldViolations"`
		} `json:"details"`
	} `json:"error"`
}

// The types of details.
const (
	fcmError   = "type.googleapis.com/google.firebase.fcm.v1.FcmError"
	badRequest = "type.googleapis.com/google.rpc.BadRequest"
)

// judge sorts an answer that is no success. FCM's own code counts before the
// status, which several codes share.
func judge(answer *googleapi.Error) *failure {
	code, aboutMessage := read(answer.Body)
	f := &failure{reason: code, err: answer}
	status := answer.Code
	switch {
	case code == "UNREGISTERED", code == "SENDER_ID_MISMATCH",
		code == "INVALID_ARGUMENT" && !aboutMessage:
		f.code = outcome.Unreachable
	case code == "QUOTA_EXCEEDED", status == http.StatusTooManyRequests:
		f.code, f.retryAfter = outcome.Throttled, retryAfter(answer.Header)
	case status >= http.StatusInternalServerError, status == http.StatusRequestTimeout, status < http.StatusMultipleChoices:
		f.code = outcome.Unknown
	case status == http.StatusNotFound:
		f.code = outcome.Missing
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		f.code = outcome.Denied
	case status < http.StatusBadRequest:
		f.code = outcome.Denied // a redirect: the address is no push service
	default:
		f.code = outcome.Refused
	}
	return f
}

// read returns FCM's own code, and whether a member of the message other than
// its token is at fault.
func read(body string) (code string, aboutMessage bool) {
	var detail details
	if json.Unmarshal([]byte(body), &detail) != nil {
		return "", false
	}
	for _, d := range detail.Error.Details {
		switch d.Type {
		case fcmError:
			code = validate.Clean(d.Code, maxCode)
		case badRequest:
			for _, v := range d.Violations {
				aboutMessage = aboutMessage || !strings.HasSuffix(v.Field, "token")
			}
		}
	}
	return code, aboutMessage
}

// maxCode bounds a code that is kept, in characters.
const maxCode = 40

// retryAfter reads how long the service asks to wait; 0: it does not say.
func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || seconds < 0 || seconds > 3600 {
		return 0
	}
	return time.Duration(seconds) * time.Second
}
