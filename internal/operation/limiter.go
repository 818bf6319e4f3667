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
}

// Limiter spends one call of a principal's budget (contract 8). It is exact
// under concurrency and over replicas.
type Limiter interface {
	Spend(ctx context.Context, p access.Principal) (Allowance, error)
}
