package emulator

import (
	"net/http"
	"time"
)

// quotaMessage is the vendor's sentence for an exhausted quota.
const quotaMessage = "Quota exceeded for quota metric 'Requests' and limit 'Requests per minute' of service 'androidmanagement.googleapis.com'."

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
		"metadata": map[string]any{"service": "androidmanagement.googleapis.com", "quota_metric": "androidmanagement.googleapis.com/requests"},
	}}
	return s
}
