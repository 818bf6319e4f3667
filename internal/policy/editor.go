package policy

import (
	"context"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
)

// Editor is how signed-in people read and change policies in the portal, each
// under his own rights (contract 5.3): reading takes access.PoliciesRead,
// changing access.PoliciesWrite beside it, and a policy beyond the person's
// limits does not exist. Scripts and assistants have operations and proposals
// instead.
//
// A ref is a policy's short id or its path name. Every method may fail with
// fault.Forbidden, which says what is missing, or fault.NotFound; every change
// saves a revision that says who, when and how, and the pusher sends it to the
// platform within a second or so: Policy.Push then says how far that came.
//
// A change is made from a version that the person saw. If the policy was saved
// since, the change fails with a *Conflict and nothing is saved; while a
// proposal about the policy is being applied, it fails with fault.Unavailable,
// which is retryable, for the few seconds that this takes.
type Editor struct{ Service Service }

const (
	mayRead  = access.PoliciesRead
	mayWrite = access.PoliciesRead | access.PoliciesWrite
)

// open returns the policy that ref means, to a person who has the permissions.
func (e Editor) open(ctx context.Context, who access.Principal, needs access.Permission, ref string) (Policy, error) {
	if err := access.Grant(who, needs, access.NoGate); err != nil {
		return Policy{}, err
	}
	return Find(ctx, e.Service.Store, who, ref)
}

// Open returns a policy at its current version: View shows its settings, Apps
// its apps, and Document is the whole of it.
func (e Editor) Open(ctx context.Context, who access.Principal, ref string) (Policy, error) {
	return e.open(ctx, who, mayRead, ref)
}

// List returns one page of the policies that the person may see, and how many
// there are. q's company and ids are set here.
func (e Editor) List(ctx context.Context, who access.Principal, q Query) ([]Policy, int64, error) {
	if err := access.Grant(who, mayRead, access.NoGate); err != nil {
		return nil, 0, err
	}
	q.CompanyID, q.IDs = who.CompanyID, who.Policies
	return e.Service.Store.Policies(ctx, q)
}

// Create saves a new policy, as Service.Create does. The company is the
// person's. Who is limited to some policies could not see a new one, so it
// takes access to all of them.
func (e Editor) Create(ctx context.Context, who access.Principal, n New) (Policy, error) {
	if err := access.Grant(who, mayWrite, access.NoGate); err != nil {
		return Policy{}, err
	}
	if who.Policies != nil {
		return Policy{}, fault.New(fault.Forbidden, "creating a policy needs access to all policies: an administrator can grant it")
	}
	n.CompanyID, n.CompanySlug = who.CompanyID, who.CompanySlug
	return e.Service.Create(ctx, n, authorOf(who))
}

// Preview returns what Save would change, for the person to look at before.
func (e Editor) Preview(ctx context.Context, who access.Principal, ref string, expected int, edit Edit) (Diff, error) {
	p, err := e.open(ctx, who, mayWrite, ref)
	if err != nil {
		return Diff{}, err
	}
	if p.Version != expected {
		return Diff{}, e.refuse(ctx, p, expected)
	}
	_, d, err := p.with(edit)
	return d, err
}

// Save saves an edit of the version that the person saw and returns the policy
// as it then is; an edit that changes nothing saves nothing. It fails with
// fault.InvalidArguments, or fault.Refused if the name is taken or the platform
// would not know the document.
func (e Editor) Save(ctx context.Context, who access.Principal, ref string, expected int, edit Edit) (Policy, error) {
	p, err := e.open(ctx, who, mayWrite, ref)
	if err != nil {
		return Policy{}, err
	}
	saved, err := e.Service.Save(ctx, p.CompanyID, p.ID, expected, edit, authorOf(who))
	return saved, e.explain(ctx, p, expected, err)
}

// Restore saves the document and the name of an earlier revision as a new
// version; description, labels and group stay. The revision that it saves has
// the origin ROLLBACK. It fails as Save does.
func (e Editor) Restore(ctx context.Context, who access.Principal, ref string, expected, revision int) (Policy, error) {
	p, err := e.open(ctx, who, mayWrite, ref)
	if err != nil {
		return Policy{}, err
	}
	saved, err := e.Service.Restore(ctx, p.CompanyID, p.ID, expected, revision, authorOf(who))
	return saved, e.explain(ctx, p, expected, err)
}

// Delete is Service.Delete.
func (e Editor) Delete(ctx context.Context, who access.Principal, ref string) (codes int, err error) {
	p, err := e.open(ctx, who, mayWrite, ref)
	if err != nil {
		return 0, err
	}
	return e.Service.Delete(ctx, p.CompanyID, p.ID)
}

// Revisions returns a policy's newest revisions with their authors, newest
// first.
func (e Editor) Revisions(ctx context.Context, who access.Principal, ref string, limit int) ([]Revision, error) {
	p, err := e.open(ctx, who, mayRead, ref)
	if err != nil {
		return nil, err
	}
	return e.Service.Store.Revisions(ctx, p.CompanyID, p.ID, limit)
}

// Revision returns one revision of a policy.
func (e Editor) Revision(ctx context.Context, who access.Principal, ref string, number int) (Revision, error) {
	p, err := e.open(ctx, who, mayRead, ref)
	if err != nil {
		return Revision{}, err
	}
	return e.Service.Store.Revision(ctx, p.CompanyID, p.ID, number)
}

// Compare returns what leads from one revision of a policy to another; a
// number of 0 means the current state.
func (e Editor) Compare(ctx context.Context, who access.Principal, ref string, from, to int) (Diff, error) {
	p, err := e.open(ctx, who, mayRead, ref)
	if err != nil {
		return Diff{}, err
	}
	return e.Service.Diff(ctx, p.CompanyID, p.ID, from, to)
}

// Conflict says what was saved since the version that a person saw; nil while
// it is current.
func (e Editor) Conflict(ctx context.Context, who access.Principal, ref string, expected int) (*Conflict, error) {
	p, err := e.open(ctx, who, mayRead, ref)
	if err != nil || p.Version == expected {
		return nil, err
	}
	return e.conflict(ctx, p, expected)
}

// authorOf is the principal as a revision names who saved it.
func authorOf(p access.Principal) Author { return Author{Kind: string(p.Kind), ID: p.ID, Name: p.Name} }
