package enrollment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/musterhq/muster/internal/company"
)

// Companies lists the tenants whose devices may fall silent.
type Companies interface {
	Companies(ctx context.Context) ([]company.Company, error)
}

// Service is the one way in for what channels observe.
type Service struct {
	Store     Store
	Companies Companies
	Now       func() time.Time
}

// Observe applies what a channel learned of one device, after it was made fit
// to be kept: see Observation.Clean. The adapter tells the command service of
// the Change, on every report that is applied, so that a crash between the two
// is made good by the next. An observation that can never be applied is
// fault.InvalidArguments: acknowledge it.
func (s *Service) Observe(ctx context.Context, o Observation) (Change, error) {
	clean, err := o.Clean(s.Now())
	if err != nil {
		return Change{}, err
	}
	return s.Store.Observe(ctx, clean)
}

const inactiveBatch = 500

// SweepInactive turns enrolled devices that were silent for longer than their
// company allows to INACTIVE (contract 3.4), and says how many. One
// company's trouble does not keep the others from being swept. Call it every
// few minutes; any number of replicas may.
func (s *Service) SweepInactive(ctx context.Context) (int, error) {
	companies, err := s.Companies.Companies(ctx)
	if err != nil {
		return 0, err
	}
	total, now := 0, s.Now()
	for _, c := range companies {
		after := c.InactiveAfter
		if after <= 0 {
			after = company.DefaultInactiveAfter
		}
		for {
			n, failed := s.Store.MarkInactive(ctx, c.ID, now.Add(-after), inactiveBatch)
			total += n
			if failed != nil {
				err = errors.Join(err, fmt.Errorf("company %s: %w", c.Slug, failed))
			}
			if failed != nil || n < inactiveBatch {
				break
			}
		}
	}
	return total, err
}
