package proposal

import (
	"context"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/policy"
)

// Reviewer lets signed-in people read all proposals of their company (contract 5.6).
//
// It takes the right to edit policies, access.PoliciesRead and access.PoliciesWrite,
// and shows what concerns policies within the person's limits. People propose and
// apply through the operations of the registry, as every caller does, and apply only
// what they proposed: a person who agrees with another's proposal repeats it.
//
// Every method may fail with fault.Forbidden, which says what is missing, and
// fault.NotFound.
type Reviewer struct {
	Service *Service
	Store   ReviewStore
}

// ReviewStore finds proposals with their makers. Each method fails as the database does, and with the
// faults that it names.
type ReviewStore interface {
	// CompanyProposals returns those that q asks for, newest first, without
	// their documents.
	CompanyProposals(ctx context.Context, q Query) ([]Listed, error)
	// ListedProposal returns one, or fault.NotFound.
	ListedProposal(ctx context.Context, companyID, id string) (Listed, error)
}

// Query asks for proposals of a company.
type Query struct {
	CompanyID string
	Policies  []string // nil: of all policies, else only about these
	PolicyID  string   // about one policy, and copies made of it; empty: any
	Waiting   bool     // only those that can still be applied
	// Before continues a list after its last entry; zero: from the newest.
	Before Position
	Limit  int
}

// Position is an entry's place in the list.
type Position struct {
	CreatedAt time.Time
	ID        string
}

// Listed is a proposal with its maker.
type Listed struct {
	Proposal
	Maker Maker
}

// Position is where the list goes on after this entry.
func (l Listed) Position() Position { return Position{l.CreatedAt, l.ID} }

// Maker is who made a proposal, as people know them.
type Maker struct {
	Kind      access.Kind
	ID        string // of the key, the connection or the user
	KeyName   string // of an API key, with its
	KeyPrefix string
	KeyMaker  string // the id of the user who made the key; empty: the operator
	Client    string // of a connection: what the client calls itself; never verified
	UserName  string // of the user, or of the person behind a connection, with the
	UserEmail string
	// Since is when the account of the user behind the proposal was made, or when that
	// user last got a right; zero: there is no such user.
	Since time.Time
}

const mayReview = access.PoliciesRead | access.PoliciesWrite

// List returns proposals of the person's company, newest first, without their
// documents. q's company and policies are set here; a limit of 0 is 50, and at
// most 200 are returned.
func (r Reviewer) List(ctx context.Context, who access.Principal, q Query) ([]Listed, error) {
	if err := access.Grant(who, mayReview, access.NoGate); err != nil {
		return nil, err
	}
	q.CompanyID, q.Policies = who.CompanyID, who.Policies
	if q.Limit <= 0 {
		q.Limit = 50
	}
	q.Limit = min(q.Limit, 200)
	return r.Store.CompanyProposals(ctx, q)
}

// Repeat returns the operation that asks for the same as a proposal again, and
// its arguments. The person runs it, looks at the new list, which may differ because
// the policy does, and applies it.
func (r Reviewer) Repeat(ctx context.Context, who access.Principal, id string) (operationName string, args map[string]any, err error) {
	if err := access.Grant(who, mayReview, access.NoGate); err != nil {
		return "", nil, err
	}
	earlier, err := r.Service.Look(ctx, who, id)
	if err != nil {
		return "", nil, err
	}
	switch q := earlier.Request; earlier.Capability {
	case CreatePolicy:
		args = map[string]any{"fromPolicyId": earlier.PolicyID, "displayName": q.DisplayName, "changes": asArgs(q.Changes)}
	case RollBack:
		args = map[string]any{"policyId": earlier.PolicyID, "revision": q.Revision}
	default:
		args = map[string]any{"policyId": earlier.PolicyID, "changes": asArgs(q.Changes)}
	}
	return string(earlier.Capability), args, nil
}

// Review is a proposal with all that a person should know who decides on it.
type Review struct {
	Listed
	// Policy is the policy as it now is; of a copy, its source. Gone: it was
	// deleted.
	Policy policy.Policy
	Gone   bool
	// Stale: the policy was saved since the proposal was made, so a PENDING
	// proposal can never be applied. Since is what moved.
	Stale bool
	Since policy.Diff
	// Why says in plain words what makes the impact HIGH; empty for NORMAL.
	Why []string
	// Mine: the person made it and may apply it while it is PENDING.
	Mine bool
	// Others are members of the document that change and that no setting
	// names, such as apps; only rollbacks have any.
	Others []string
}

// Appliable reports whether the person can apply it now, as far as is known.
func (r Review) Appliable() bool { return r.Mine && r.Status == Pending && !r.Stale && !r.Gone }

// Look returns a proposal of the person's company for review.
func (r Reviewer) Look(ctx context.Context, who access.Principal, id string) (Review, error) {
	found, err := r.look(ctx, who, id)
	if err != nil {
		return Review{}, err
	}
	v := Review{Listed: found, Mine: found.ownedBy(who)}
	v.Policy, err = r.Service.Policies.Policy(ctx, found.CompanyID, found.PolicyID)
	if v.Gone = err == nil && v.Policy.Deleted; err != nil {
		return Review{}, err
	}
	// Every save makes one version and one revision, of the same number.
	base, err := r.Service.Policies.Revision(ctx, found.CompanyID, found.PolicyID, found.BaseVersion)
	if err != nil {
		return Review{}, err
	}
	proposed, err := policy.CompareDocuments(policy.Platform, base.Document, found.Next.Document)
	if err != nil {
		return Review{}, err
	}
	v.Others, v.Why = proposed.Others, reasons(found.Proposal, v.Policy.DeviceCount, proposed.Moves)
	if v.Stale = v.Policy.Version != found.BaseVersion; v.Stale {
		v.Since, err = policy.Compare(v.Policy.Type, base, v.Policy.Revision())
	}
	return v, err
}

func (r Reviewer) look(ctx context.Context, who access.Principal, id string) (Listed, error) {
	if err := access.Grant(who, mayReview, access.NoGate); err != nil {
		return Listed{}, err
	}
	if _, err := r.Service.Look(ctx, who, id); err != nil {
		return Listed{}, err
	}
	found, err := r.Store.ListedProposal(ctx, who.CompanyID, id)
	if err != nil {
		return Listed{}, err
	}
	found.Proposal, err = r.Service.present(ctx, found.Proposal)
	return found, err
}
