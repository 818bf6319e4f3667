package operation

import (
	"context"
	"time"

	"github.com/musterhq/muster/internal/access"
)

// Allowance is what is left of a budget after an attempt to spend from it.
type Allowance struct {
	Spent     bool          // whether the attempt was within the budget
	Limit     int           // calls a window
	Remaining int           // calls left in the window
	Reset     time.Duration // until the window closes
	Window    time.Duration
	Name      string // of an operation's own allowance; empty: the budget
}

// Limiter spends one call of a principal's budget (contract 8). It is exact
// under concurrency and over replicas.
type Limiter interface {
	Spend(ctx context.Context, p access.Principal) (Allowance, error)
}

// Allowances are what some operations spend instead of the budget: so many calls a
// minute for each principal, exact as the budget is.
type Allowances interface {
	// SpendOwn spends one of the calls of the allowance of a name.
	SpendOwn(ctx context.Context, p access.Principal, name string, calls int) (Allowance, error)
	// Left says what is left of it, or, without a name, of the budget. Spent is false.
	Left(ctx context.Context, p access.Principal, name string, calls int) (Allowance, error)
}
