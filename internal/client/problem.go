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
func problemOf(a *Answer) *Problem {
	p := &Problem{}
	var small struct {
		Message string `json:"message"`
	}
	if strings.Contains(a.Header.Get("Content-Type"), "json") && json.Unmarshal(a.Body, p) == nil {
		_ = json.Unmarshal(a.Body, &small) // the shared object of 401 and of some 429
	}
	if p.Detail == "" {
		p.Detail = small.Message
	}
	switch {
	case p.Detail != "":
	case a.Status == http.StatusNotFound:
		p.Detail = "there is nothing of this name that the key may see"
	case a.Status >= 300 && a.Status < 400:
		p.Detail = fmt.Sprintf("the service answers %d and leads elsewhere: give the address that it is meant to be used at", a.Status)
	default:
		p.Detail = fmt.Sprintf("the service answers %d %s", a.Status, http.StatusText(a.Status))
	}
	p.Status, p.RequestID = a.Status, a.Header.Get("X-Request-Id")
	if seconds, err := strconv.Atoi(a.Header.Get("Retry-After")); err == nil && seconds >= 0 {
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

// Budget is what the call left; nil: it spends none.
func (a *Answer) Budget() *Budget {
	found := budgetShape.FindStringSubmatch(a.Header.Get("RateLimit"))
	if found == nil {
		return nil
	}
	remaining, _ := strconv.Atoi(found[1]) // digits
	seconds, _ := strconv.Atoi(found[2])
	return &Budget{remaining, time.Duration(seconds) * time.Second}
}
