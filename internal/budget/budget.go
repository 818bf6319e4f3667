// Package budget is the ten calls a minute that every key and connection has
// (contract 8), and the ceiling of people in the portal.
package budget

import (
	"context"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/operation"
)

// Limit and Window are the contract's budget: a fixed window that opens with
// the first counted call.
const (
	Limit  = 10
	Window = time.Minute
	// PeopleLimit is how many calls a portal user has in a window. It protects
	// the service; the contract's budget is for keys and connections.
	PeopleLimit = 60
)

// Store counts calls, exactly, over all replicas.
type Store interface {
	// Spend counts one call in the key's window, opening a new one of the
	// given length if none is open at now. It returns the calls counted in the
	// window, this one included, unless limit was reached already: then it
	// counts nothing and spent is false. closes is when the window ends.
	Spend(ctx context.Context, key string, limit int, window time.Duration, now time.Time) (used int, spent bool, closes time.Time, err error)
}

// Limiter spends the contract's budget. It implements operation.Limiter.
type Limiter struct {
	Store Store
	Now   func() time.Time
}

// Spend spends one call of the principal's budget.
func (l Limiter) Spend(ctx context.Context, p access.Principal) (operation.Allowance, error) {
	now, limit := l.Now(), Limit
	if p.Kind == access.User {
		limit = PeopleLimit
	}
	used, spent, closes, err := l.Store.Spend(ctx, p.BudgetKey(), limit, Window, now)
	if err != nil {
		return operation.Allowance{}, err
	}
	return operation.Allowance{
		Spent: spent, Limit: limit, Remaining: max(0, limit-used), Reset: closes.Sub(now), Window: Window,
	}, nil
}
