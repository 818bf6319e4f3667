package access

import (
	"context"
	"reflect"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/fault"
)

// Permit is the leave of one request to write: its caller as they were when they were let
// in, with the version of the company's controls at that time. It travels in the context.
// The store compares it in the transaction that commits, so that nothing is written for a
// caller who was let in before a stop, a revocation or another change of what they may do.
//
// A context without a permit is not bound: the operator, devices, and the service itself.
// A Permit may be used by several goroutines.
type Permit struct {
	again func(context.Context) (Principal, error)

	mu        sync.Mutex
	principal Principal
	moves     int
	used      bool
}

// ErrMoved is the error of a write whose caller may not be who they were, or may not do
// what they did, any more. Who gets it lets the caller in again, and decides again.
var ErrMoved error = &fault.Error{Code: fault.Unavailable, Retryable: true,
	Detail: "what the caller may do changed at this moment, and nothing was done: send it again"}

// NewPermit returns the permit of a caller who was just let in. again lets them in once
// more: it returns who they are now, or why they are refused. Nil: it cannot be asked.
func NewPermit(p Principal, again func(context.Context) (Principal, error)) *Permit {
	return &Permit{again: again, principal: p}
}

type permitKey struct{}

// WithPermit returns a context whose writes the permit binds.
func WithPermit(ctx context.Context, p *Permit) context.Context {
	return context.WithValue(ctx, permitKey{}, p)
}

// PermitOf returns the context's permit; nil: its writes are not bound.
func PermitOf(ctx context.Context) *Permit { p, _ := ctx.Value(permitKey{}).(*Permit); return p }

// Settling returns a context whose writes no permit binds. It is for what follows from a
// write that was let through: what was recorded is sent, answered and settled as usual,
// whatever its caller may do since.
func Settling(ctx context.Context) context.Context {
	return context.WithValue(ctx, permitKey{}, (*Permit)(nil))
}

// Caller is the caller as they were let in, with the version of the company's controls at that time.
func (p *Permit) Caller() Principal {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.principal
}

// Renew lets the caller in again, and returns nil if they may do exactly what they could
// before: what moved was not theirs. Otherwise it returns ErrMoved.
func (p *Permit) Renew(ctx context.Context) error {
	now, err := p.ask(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil || !now.same(p.principal) {
		p.moves++
		return ErrMoved
	}
	p.principal = now
	return nil
}

// Refuse counts that a write was refused although the permit was renewed for it.
func (p *Permit) Refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.moves++
}

// Again lets the caller in again as who they are now. The error says why they are not.
func (p *Permit) Again(ctx context.Context) (Principal, error) {
	now, err := p.ask(ctx)
	if err == nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.principal = now
	}
	return now, err
}

func (p *Permit) ask(ctx context.Context) (Principal, error) {
	if p.again == nil {
		return Principal{}, ErrMoved
	}
	return p.again(Settling(ctx))
}

// Wrote notes that a write was committed. A version other than 0 is that to which the
// write itself raised the company's: a caller who changes what others may do goes on.
func (p *Permit) Wrote(version int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used = true
	if version == p.principal.Version+1 {
		p.principal.Version = version
	}
}

// Moves counts the writes that were refused because the permit had moved.
func (p *Permit) Moves() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.moves
}

// Used reports whether a write was committed under the permit.
func (p *Permit) Used() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used
}

// Ended reports whether the caller's key, token or session has run out at now.
func (p Principal) Ended(now time.Time) bool { return !p.Expires.IsZero() && !now.Before(p.Expires) }

// same reports whether two principals may do the same.
func (p Principal) same(other Principal) bool {
	p.Version, p.Expires, other.Version, other.Expires = 0, time.Time{}, 0, time.Time{}
	return reflect.DeepEqual(p, other)
}
