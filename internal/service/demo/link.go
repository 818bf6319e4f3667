package demo

import (
	"crypto/rand"
	"crypto/subtle"
	"sync"
	"time"
)

// linkLife is for how long the link of a start may be used.
const linkLife = time.Hour

// link signs the demo's administrator in, once. It lives in this process alone.
type link struct {
	mu   sync.Mutex
	code string // empty: it was used
	ends time.Time
	now  func() time.Time
}

func newLink(now func() time.Time) *link {
	return &link{code: rand.Text(), ends: now().Add(linkLife), now: now}
}

// take uses the link up.
func (l *link) take(code string) (email string, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.code == "" || subtle.ConstantTimeCompare([]byte(code), []byte(l.code)) != 1 || !l.now().Before(l.ends) {
		return "", false
	}
	l.code = ""
	return portalUser, true
}
