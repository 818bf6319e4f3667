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

// Store counts calls, exactly, over all replicas. Each method fails as the database does.
type Store interface {
	// Spend counts one call in the key's window, opening a new one of the
	// given length if none is open at now. It returns the calls counted in the
	// window, this one included, unless limit was reached already: then it
	// counts nothing and spent is false. closes is when the window ends.
	Spend(ctx context.Context, key string, limit int, window time.Duration,
		now time.Time) (used int, spent bool, closes time.Time, err error)
	// BudgetWindow returns the calls counted in the key's window and when it ends;
	// zero: none is open.
	BudgetWindow(ctx context.Context, key string, window time.Duration, now time.Time) (used int, closes time.Time, err error)
}

// Limiter spends the contract's budget. It implements operation.Limiter and
// operation.Allowances.
type Limiter struct {
	Store Store
	Now   func() time.Time
}

// Spend spends one call of the principal's budget.
func (l Limiter) Spend(ctx context.Context, p access.Principal) (operation.Allowance, error) {
	return l.SpendOwn(ctx, p, "", limitOf(p))
}

// SpendOwn spends one call of the allowance of a name.
func (l Limiter) SpendOwn(ctx context.Context, p access.Principal, name string, calls int) (operation.Allowance, error) {
	now := l.Now()
	used, spent, closes, err := l.Store.Spend(ctx, operation.Account(name, p), calls, Window, now)
	if err != nil {
		return operation.Allowance{}, err
	}
	return operation.Allowance{
		Spent: spent, Limit: calls, Remaining: max(0, calls-used), Reset: closes.Sub(now), Window: Window, Name: name,
	}, nil
}

// Left says what is left of the principal's budget, or of the allowance of a name.
func (l Limiter) Left(ctx context.Context, p access.Principal, name string, calls int) (operation.Allowance, error) {
	if name == "" {
		calls = limitOf(p)
	}
	now := l.Now()
	left := operation.Allowance{Limit: calls, Remaining: calls, Window: Window, Name: name}
	used, closes, err := l.Store.BudgetWindow(ctx, operation.Account(name, p), Window, now)
	if err == nil && closes.After(now) {
		left.Remaining, left.Reset = max(0, calls-used), closes.Sub(now)
	}
	return left, err
}

// limitOf is how many calls the budget of a principal has.
func limitOf(p access.Principal) int {
	if p.Kind == access.User {
		return PeopleLimit
	}
	return Limit
}
