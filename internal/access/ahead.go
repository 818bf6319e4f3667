package access

import (
	"context"
	"slices"
	"strings"
	"sync"
)

// Ahead is what the handler of a request reads first, known before its turn: the store
// reads it in the round trip of something else that the request needs. It travels in the
// context. What the store found is taken at most once, so that who asks again reads again.
// The zero value names nothing. An Ahead may be used by several goroutines.
type Ahead struct {
	// Asset is the id of the asset that the request names; empty: none.
	Asset string
	// CompanyID is the company of a caller who commands the asset: it is read with its
	// agent, when the call spends. Empty: the asset is shown, and read with the caller,
	// whose company it must be of.
	CompanyID string

	mu    sync.Mutex
	found []any
}

type aheadKey struct{}

// Shows returns a context of a request that shows the asset which name, an id or a path
// name, means.
func Shows(ctx context.Context, name string) context.Context { return Commands(ctx, "", name) }

// Commands returns a context of a call that commands an asset of a company. With an empty
// name nothing is read ahead any more.
func Commands(ctx context.Context, companyID, name string) context.Context {
	return context.WithValue(ctx, aheadKey{}, &Ahead{Asset: name[strings.LastIndexByte(name, '/')+1:], CompanyID: companyID})
}

// AheadOf returns what the request of the context reads first. It is never nil.
func AheadOf(ctx context.Context) *Ahead {
	if a, ok := ctx.Value(aheadKey{}).(*Ahead); ok {
		return a
	}
	return &Ahead{}
}

// Found keeps what was read, in place of what was read before.
func (a *Ahead) Found(values ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.found = values
}

// Take takes what was read of a type, if it fits.
func Take[T any](ctx context.Context, fits func(T) bool) (value T, ok bool) {
	a := AheadOf(ctx)
	a.mu.Lock()
	defer a.mu.Unlock()
	n := slices.IndexFunc(a.found, func(v any) bool {
		value, ok = v.(T)
		ok = ok && fits(value)
		return ok
	})
	if n < 0 {
		var none T
		return none, false
	}
	a.found = slices.Delete(a.found, n, n+1)
	return value, true
}
