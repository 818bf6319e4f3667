package policy

import (
	"context"
	"slices"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
)

// Conflict is the error of a change that was made from a version that is not
// current any more: a fault.StaleProposal that says who saved what since. To
// make the same change again, save it with Current.Version as the version that
// was seen.
type Conflict struct {
	Expected int      // the version that the person saw
	Current  Policy   // as it now is
	Saved    Revision // the save that made it so: SavedBy, SavedAt, Origin
	Since    Diff     // what moved from Expected to Current
}

// Error implements error.
func (c *Conflict) Error() string { return c.Unwrap().Error() }

// Unwrap returns the fault, for surfaces that know faults only.
func (c *Conflict) Unwrap() error {
	return fault.New(fault.StaleProposal, "%s saved the policy as version %d at %s, after version %d that you saw: look at what changed "+
		"and repeat your change",
		c.Saved.SavedBy.Name, c.Current.Version, c.Saved.SavedAt.UTC().Format("2006-01-02 15:04:05 UTC"), c.Expected)
}

// Both returns those moves since the version that was seen which concern
// settings that the person wants to change too.
func (c *Conflict) Both(changes []Change) []Move {
	return slices.DeleteFunc(slices.Clone(c.Since.Moves), func(m Move) bool {
		return !slices.ContainsFunc(changes, func(w Change) bool { return w.Setting == m.Setting.ID })
	})
}

// Conflict says what was saved since the version that a person saw; nil while
// it is current.
func (s Service) Conflict(ctx context.Context, who access.Principal, ref string, expected int) (*Conflict, error) {
	p, err := s.open(ctx, who, mayRead, ref)
	if err != nil || p.Version == expected {
		return nil, err
	}
	return s.conflict(ctx, p, expected)
}

// explain turns a stale fault into a Conflict.
func (s Service) explain(ctx context.Context, seen Policy, expected int, err error) error {
	if fault.CodeOf(err) != fault.StaleProposal {
		return err
	}
	now, readErr := s.Current(ctx, seen.CompanyID, seen.ID)
	if readErr != nil {
		return readErr
	}
	return s.refuse(ctx, now, expected)
}

// refuse is the error of a change of a policy that is not at the expected
// version.
func (s Service) refuse(ctx context.Context, now Policy, expected int) error {
	c, err := s.conflict(ctx, now, expected)
	if err != nil {
		return err
	}
	return c
}

// conflict compares a policy with the version that a person saw. Every save
// makes one revision and one version, so a version has the number of its
// revision; a version that never was is compared with nothing.
func (s Service) conflict(ctx context.Context, now Policy, expected int) (*Conflict, error) {
	c := &Conflict{Expected: expected, Current: now}
	var err error
	if c.Saved, err = s.Store.Revision(ctx, now.CompanyID, now.ID, now.Version); err != nil {
		return nil, err
	}
	seen, err := s.Store.Revision(ctx, now.CompanyID, now.ID, expected)
	switch {
	case fault.CodeOf(err) == fault.NotFound:
		return c, nil
	case err != nil:
		return nil, err
	}
	c.Since, err = Compare(now.Type, seen, now.Revision())
	return c, err
}
