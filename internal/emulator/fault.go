package emulator

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/slice"
)

// Fault is what the next calls of a method meet instead of an ordinary answer.
//
// The effect of the call happens only if AfterEffect is set, or if the fault is
// nothing but a delay. A fault that prescribes nothing is a 503. With AfterEffect and neither Status nor Corrupt the
// connection is dropped after the effect: the answer is lost.
type Fault struct {
	// Method is the discovery id without "androidmanagement.enterprises.", such
	// as "devices.issueCommand" or "policies.patch"; the whole id does as well.
	// Others: "pubsub.pull", "pubsub.acknowledge", "fcm.send", "token", and
	// "notifications" for what the emulator publishes. "*" is every vendor method.
	Method string `json:"method"`
	// Match, if set, limits the fault to calls whose path contains it, or to
	// notifications of that type.
	Match string `json:"match,omitempty"`
	// Status is the HTTP status of the answer.
	Status int `json:"status,omitempty"`
	// Reason is a canonical code ("UNAVAILABLE"), an FCM error code
	// ("UNREGISTERED"), or the sentence of the error.
	Reason string `json:"reason,omitempty"`
	// RetryAfterSeconds adds a Retry-After header.
	RetryAfterSeconds int `json:"retryAfterSeconds,omitempty"`
	// DelayMS passes before the answer; without AfterEffect also before the effect.
	DelayMS int `json:"delayMs,omitempty"`
	// DropConnection ends the connection without an answer.
	DropConnection bool `json:"dropConnection,omitempty"`
	// AfterEffect lets the effect happen.
	AfterEffect bool `json:"afterEffect,omitempty"`
	// Corrupt spoils the answer: "truncate" ends it half-way, "html" replaces it
	// by an HTML page with the status, or 502.
	Corrupt string `json:"corrupt,omitempty"`
	// Lose and Duplicate are for "notifications": leave it out, send it twice.
	Lose      bool `json:"lose,omitempty"`
	Duplicate bool `json:"duplicate,omitempty"`
	// Times is how many calls meet the fault; 0 is 1, negative is without end.
	Times int `json:"times,omitempty"`
}

// notificationsMethod is the fault method for what the emulator publishes.
const notificationsMethod = "notifications"

// maxFaults bounds the faults that wait for their calls.
const maxFaults = 10_000

// faultTable holds the faults that wait, in the order in which they came.
type faultTable struct {
	mu     sync.Mutex
	faults []*Fault
}

// check refuses a fault that could never be met or has no meaning.
func (f *Fault) check(known func(string) bool) error {
	switch {
	case f.Method == "":
		return errors.New("method is missing")
	case !known(f.Method):
		return fmt.Errorf("method %q is not one that the emulator serves", f.Method)
	case f.Status != 0 && (f.Status < 200 || f.Status > 599):
		return errors.New("status must be from 200 to 599")
	case f.DelayMS < 0 || f.DelayMS > 600_000:
		return errors.New("delayMs must be from 0 to 600000")
	case f.RetryAfterSeconds < 0:
		return errors.New("retryAfterSeconds must not be negative")
	case !slices.Contains([]string{"", "truncate", "html"}, f.Corrupt):
		return errors.New(`corrupt must be "truncate" or "html"`)
	}
	return nil
}

func (t *faultTable) add(f Fault) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.faults) >= maxFaults {
		return fmt.Errorf("%d faults wait already: clear them first", maxFaults)
	}
	f.Times = cmp.Or(f.Times, 1)
	t.faults = append(t.faults, &f)
	return nil
}

func (t *faultTable) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.faults = nil
}

func (t *faultTable) list() []Fault {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slice.Map(t.faults, func(f *Fault) Fault { return *f })
}

// take gives the first fault for a call and counts it, or nil.
func (t *faultTable) take(names []string, target string) *Fault {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, f := range t.faults {
		if !slices.Contains(names, f.Method) || !strings.Contains(target, f.Match) {
			continue
		}
		if f.Times > 0 {
			f.Times--
		}
		if f.Times == 0 {
			t.faults = slices.Delete(t.faults, i, i+1)
		}
		taken := *f
		return &taken
	}
	return nil
}

// codeForm is a canonical or FCM error code, as against a sentence.
var codeForm = regexp.MustCompile(`^[A-Z][A-Z0-9_]+$`)

// status gives the error that a fault answers with.
func (f *Fault) status() *status {
	s := usual(cmp.Or(f.Status, statusOf(f.Reason), messagingCodes()[f.Reason], http.StatusServiceUnavailable))
	switch {
	case f.Reason == "":
	case statusOf(f.Reason) != 0:
		s.name = f.Reason
	case codeForm.MatchString(f.Reason):
		s.details = append(s.details, map[string]any{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": f.Reason,
			"domain": "googleapis.com"})
	default:
		s.message = f.Reason
	}
	if _, ok := messagingCodes()[f.Reason]; ok && f.Method == "fcm.send" {
		s.details = []any{messagingDetail(f.Reason)}
	}
	return s
}

// quotaMessage is the vendor's sentence for an exhausted quota.
const quotaMessage = "Quota exceeded for quota metric 'Requests' and limit 'Requests per minute' of service " +
	"'androidmanagement.googleapis.com'."

// bucket counts calls against the quota. It fills evenly, up to the whole quota.
type bucket struct {
	spent float64 // calls not yet forgotten
	at    time.Time
}

// spend counts a call, or reports that the quota is exhausted.
func (b *bucket) spend(q Quota, now time.Time) bool {
	if q.Requests == 0 {
		*b = bucket{}
		return true
	}
	if !b.at.IsZero() {
		b.spent -= now.Sub(b.at).Seconds() * float64(q.Requests) / float64(q.PerSeconds)
	}
	b.spent, b.at = max(b.spent, 0), now
	if b.spent+1 > float64(q.Requests) {
		return false
	}
	b.spent++
	return true
}

func (e *Emulator) spendQuota() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.quota.spend(e.settings.Quota, e.now()) {
		return nil
	}
	s := usual(http.StatusTooManyRequests)
	s.details = []any{map[string]any{
		"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "RATE_LIMIT_EXCEEDED", "domain": "googleapis.com",
		"metadata": map[string]any{"service": "androidmanagement.googleapis.com",
			"quota_metric": "androidmanagement.googleapis.com/requests"},
	}}
	return s
}
