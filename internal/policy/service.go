package policy

import (
	"context"
	"encoding/json"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/resource"
)

// MaxDocumentBytes is the largest document that is kept.
const MaxDocumentBytes = 1 << 20

// DocumentChecker says whether a PLATFORM policy's document is one that the
// vendor knows. The error says where it is not, in words for people.
type DocumentChecker interface {
	CheckDocument(document json.RawMessage) error
}

// Service is how people read and change policies: in the portal and on the
// command line. Scripts and assistants have operations and proposals instead.
//
// A method with a principal is for signed-in people, each under their own rights
// (contract 5.3): reading takes access.PoliciesRead, changing
// access.PoliciesWrite beside it, and a policy beyond the person's limits does
// not exist. A ref is a policy's short id or its path name. Such a method may
// fail with fault.Forbidden, which says what is missing, or fault.NotFound. The
// methods without one check no rights: the command line works directly on the
// database.
//
// Every change saves a revision that says who, when and how, and the pusher
// sends it to the platform within a second or so: Policy.Push then says how far
// that came. While a proposal about the policy is being applied, a change fails
// with fault.Unavailable, which is retryable, for the few seconds that this takes.
type Service struct {
	Store   Store
	Checker DocumentChecker
	Now     func() time.Time
}

const (
	mayRead  = access.PoliciesRead
	mayWrite = access.PoliciesRead | access.PoliciesWrite
)

// New describes a policy to create.
type New struct {
	CompanyID   string
	CompanySlug string
	Name        string
	Type        Type
	VROnly      bool
	Changes     []Change        // settings, on top of the document
	Document    json.RawMessage // nil: an empty one
	Description string
	Labels      []string
	Group       string
}

// Create saves a new policy at version 1. A PLATFORM policy reports everything
// unless the request says otherwise, since assets would stay empty. It fails
// with fault.InvalidArguments, or fault.Refused if the name is taken or the
// vendor would not know the document.
func (s Service) Create(ctx context.Context, n New, by Author) (Policy, error) {
	if n.Type != Platform && n.Type != Agent {
		return Policy{}, fault.Invalid("the policy cannot be created", fault.Field{Field: "type", Message: "must be PLATFORM or AGENT"})
	}
	clean, err := Edit{Name: &n.Name, Changes: n.Changes, Description: &n.Description, Labels: &n.Labels, Group: &n.Group}.settle()
	if err != nil {
		return Policy{}, err
	}
	document := n.Document
	if document == nil {
		document = Empty(n.Type)
	}
	if document, _, err = Apply(n.Type, document, clean.changes); err != nil {
		return Policy{}, invalidDocument(err)
	}
	if document, err = withReports(n.Type, document); err != nil {
		return Policy{}, invalidDocument(err)
	}
	if err := s.check(n.Type, document); err != nil {
		return Policy{}, err
	}
	now := s.Now()
	p := Policy{
		ID: resource.NewID(), CompanyID: n.CompanyID, CompanySlug: n.CompanySlug,
		Name: clean.name, Type: n.Type, VROnly: n.VROnly, Version: 1, Document: document,
		Description: n.Description, Labels: n.Labels, Group: n.Group, CreatedAt: now, UpdatedAt: now,
	}
	return p, s.Store.CreatePolicy(ctx, p, by, "")
}

// CreateBy is Create for a person. The company is the
// person's. Who is limited to some policies could not see a new one, so it
// takes access to all of them.
func (s Service) CreateBy(ctx context.Context, who access.Principal, n New) (Policy, error) {
	if err := access.Grant(who, mayWrite, access.NoGate); err != nil {
		return Policy{}, err
	}
	if err := MayCreate(who); err != nil {
		return Policy{}, err
	}
	n.CompanyID, n.CompanySlug = who.CompanyID, who.CompanySlug
	return s.Create(ctx, n, AuthorOf(who.Actor()))
}

// MayCreate returns fault.Forbidden for a principal who is limited to some policies, and so would not see a new one.
func MayCreate(who access.Principal) error {
	if who.Policies != nil {
		return fault.New(fault.Forbidden, "creating a policy needs access to all policies: an administrator can grant it")
	}
	return nil
}

// Delete leaves a tombstone; fault.Refused while devices use the policy. It returns how many
// enrollment codes ended with it.
func (s Service) Delete(ctx context.Context, companyID, id string) (codes int, err error) {
	if _, err := s.Current(ctx, companyID, id); err != nil {
		return 0, err
	}
	return s.Store.DeletePolicy(ctx, companyID, id, s.Now())
}

// DeleteBy is Delete for a person.
func (s Service) DeleteBy(ctx context.Context, who access.Principal, ref string) (codes int, err error) {
	p, err := s.open(ctx, who, mayWrite, ref)
	if err != nil {
		return 0, err
	}
	return s.Delete(ctx, p.CompanyID, p.ID)
}

// check refuses a document that cannot be saved.
func (s Service) check(t Type, document json.RawMessage) error {
	if err := CheckDocument(s.Checker, t, document); err != nil {
		return fault.New(fault.Refused, "the policy cannot be saved: %s", err).Because(err)
	}
	return nil
}

// AuthorOf is a caller as a revision names who saved it.
func AuthorOf(a access.Actor) Author { return Author{Kind: string(a.Kind), ID: a.ID, Name: a.Name} }
