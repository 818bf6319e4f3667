package identity

import (
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
)

// description is what a provider published about itself.
type description struct {
	*oidc.Provider
	namesIssuer bool // its answers name it (RFC 9207)
}

// How long descriptions are kept, and how many.
const (
	keepDescription = time.Hour
	maxDescriptions = 256
)

// descriptions keeps what providers published. It is safe for concurrent use.
type descriptions struct {
	mu   sync.Mutex
	kept map[string]keptDescription // by issuer
}

type keptDescription struct {
	description
	until time.Time
}

func newDescriptions() *descriptions { return &descriptions{kept: map[string]keptDescription{}} }

func (s *descriptions) get(issuer string, now time.Time) (description, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, ok := s.kept[issuer]
	return d.description, ok && now.Before(d.until)
}

func (s *descriptions) put(issuer string, d description, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.kept) >= maxDescriptions {
		for other := range s.kept { // any one: each can be asked for again
			delete(s.kept, other)
			break
		}
	}
	s.kept[issuer] = keptDescription{d, now.Add(keepDescription)}
}

func (s *descriptions) drop(issuer string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.kept, issuer)
}
