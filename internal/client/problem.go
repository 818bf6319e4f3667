package client

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Problem is a refusal or failure that the service answered, in any of its forms.
type Problem struct {
	Status    int    `json:"status"`
	Detail    string `json:"detail"`
	Retryable bool   `json:"retryable"`
	Errors    []struct {
		Field   string `json:"field"`
		Message string `json:"message"`
	} `json:"errors"`
	ApprovalURL string `json:"approvalUrl"` // where a person can allow the call; empty: nowhere
	// RetryAfter is how long to wait before the same request; 0: the service does not say.
	RetryAfter time.Duration `json:"-"`
	RequestID  string        `json:"-"`
}

// Error says what is wrong, and where a person can allow it.
func (p *Problem) Error() string {
	text := p.Detail
	for _, e := range p.Errors {
		if !strings.Contains(text, e.Message) {
			text += "; " + e.Field + ": " + e.Message
		}
	}
	if p.ApprovalURL != "" && !strings.Contains(text, p.ApprovalURL) {
		text += ": " + p.ApprovalURL
	}
	if p.Status >= http.StatusInternalServerError && p.RequestID != "" {
		text += " (request " + p.RequestID + ")"
	}
	return text
}

// problemOf reads an answer that is no success. Where it has no text, as a proxy's may have
// none that is meant for programs, the status stands for it.
func problemOf(r *http.Response, body []byte) *Problem {
	p := &Problem{}
	var small struct {
		Message string `json:"message"`
	}
	if strings.Contains(r.Header.Get("Content-Type"), "json") && json.Unmarshal(body, p) == nil {
		_ = json.Unmarshal(body, &small) // the shared object of 401 and of some 429
	}
	if p.Detail == "" {
		p.Detail = small.Message
	}
	switch {
	case p.Detail != "":
	case r.StatusCode == http.StatusNotFound:
		p.Detail = "there is nothing of this name that the key may see"
	case r.StatusCode >= 300 && r.StatusCode < 400:
		p.Detail = fmt.Sprintf("the service answers %d and leads elsewhere: give the address that it is meant to be used at", r.StatusCode)
	default:
		p.Detail = fmt.Sprintf("the service answers %d %s", r.StatusCode, http.StatusText(r.StatusCode))
	}
	p.Status, p.RequestID = r.StatusCode, r.Header.Get("X-Request-Id")
	if seconds, err := strconv.Atoi(r.Header.Get("Retry-After")); err == nil && seconds >= 0 {
		p.RetryAfter = time.Duration(seconds) * time.Second
	}
	return p
}

// Unknown reports whether the service failed where it does not say if the effect happened.
func (p *Problem) Unknown() bool { return p.Status == http.StatusInternalServerError }

// Budget is what is left of the calls that the caller may make.
type Budget struct {
	Remaining int
	Reset     time.Duration // until there are more
}

var budgetShape = regexp.MustCompile(`^"[^"]*";r=([0-9]+);t=([0-9]+)$`)

func budgetOf(h http.Header) *Budget {
	found := budgetShape.FindStringSubmatch(h.Get("RateLimit"))
	if found == nil {
		return nil
	}
	remaining, _ := strconv.Atoi(found[1]) // digits
	seconds, _ := strconv.Atoi(found[2])
	return &Budget{remaining, time.Duration(seconds) * time.Second}
}
