package policy

import (
	"context"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/resource"
)

// Finder returns a policy of a company, also a deleted one, or fault.NotFound.
type Finder interface {
	Policy(ctx context.Context, companyID, id string) (Policy, error)
}

// Find returns the policy that ref means to the principal: a short id or a
// path name. One that does not exist, is deleted, another company's or beyond
// the principal's limits is fault.NotFound.
func Find(ctx context.Context, s Finder, p access.Principal, ref string) (Policy, error) {
	id, ok := resource.Short(p.CompanySlug, resource.Policies, ref)
	if !ok || !p.MaySee(id) {
		return Policy{}, Missing()
	}
	return current(ctx, s, p.CompanyID, id)
}

// open returns the policy that ref means, to a person who has the permissions.
func (s Service) open(ctx context.Context, who access.Principal, needs access.Permission, ref string) (Policy, error) {
	if err := access.Grant(who, needs, access.NoGate); err != nil {
		return Policy{}, err
	}
	return Find(ctx, s.Store, who, ref)
}

// Open returns a policy at its current version: View shows its settings, Apps
// its apps, and Document is the whole of it.
func (s Service) Open(ctx context.Context, who access.Principal, ref string) (Policy, error) {
	return s.open(ctx, who, mayRead, ref)
}

// List returns one page of the policies that the person may see, and how many
// there are. q's company and ids are set here.
func (s Service) List(ctx context.Context, who access.Principal, q Query) ([]Policy, int64, error) {
	if err := access.Grant(who, mayRead, access.NoGate); err != nil {
		return nil, 0, err
	}
	q.CompanyID, q.IDs = who.CompanyID, who.Policies
	return s.Store.Policies(ctx, q)
}

// Revisions returns a policy's newest revisions with their authors, newest
// first.
func (s Service) Revisions(ctx context.Context, who access.Principal, ref string, limit int) ([]Revision, error) {
	p, err := s.open(ctx, who, mayRead, ref)
	if err != nil {
		return nil, err
	}
	return s.Store.Revisions(ctx, p.CompanyID, p.ID, limit)
}

// Revision returns one revision of a policy.
func (s Service) Revision(ctx context.Context, who access.Principal, ref string, number int) (Revision, error) {
	p, err := s.open(ctx, who, mayRead, ref)
	if err != nil {
		return Revision{}, err
	}
	return s.Store.Revision(ctx, p.CompanyID, p.ID, number)
}

// Compare is Diff for a person.
func (s Service) Compare(ctx context.Context, who access.Principal, ref string, from, to int) (Diff, error) {
	p, err := s.open(ctx, who, mayRead, ref)
	if err != nil {
		return Diff{}, err
	}
	return s.Diff(ctx, p, from, to)
}

// Current returns a policy that is not deleted, or fault.NotFound.
func (s Service) Current(ctx context.Context, companyID, id string) (Policy, error) {
	return current(ctx, s.Store, companyID, id)
}

func current(ctx context.Context, s Finder, companyID, id string) (Policy, error) {
	p, err := s.Policy(ctx, companyID, id)
	if fault.CodeOf(err) == fault.NotFound || err == nil && p.Deleted {
		return Policy{}, Missing()
	}
	return p, err
}

// Missing is the fault of an id that names no policy for the caller.
func Missing() *fault.Error {
	return fault.New(fault.NotFound, "there is no policy with this id in your company: take the pathName from the policy list")
}

// Diff compares two revisions of a policy; a number of 0 means the current
// state.
func (s Service) Diff(ctx context.Context, p Policy, from, to int) (Diff, error) {
	states := [2]Revision{p.Revision(), p.Revision()}
	for i, number := range [2]int{from, to} {
		if number == 0 {
			continue
		}
		var err error
		if states[i], err = s.Store.Revision(ctx, p.CompanyID, p.ID, number); err != nil {
			return Diff{}, err
		}
	}
	return Compare(p.Type, states[0], states[1])
}

// Revision is the policy's current state in the shape of a revision.
func (p Policy) Revision() Revision {
	return Revision{PolicyID: p.ID, Version: p.Version, Name: p.Name, Document: p.Document,
		Description: p.Description, Labels: p.Labels, Group: p.Group}
}
