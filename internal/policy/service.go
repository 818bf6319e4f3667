package policy

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

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

// Service is how people change policies: the portal and the command line.
// Scripts and assistants go through proposals instead.
type Service struct {
	Store   Store
	Checker DocumentChecker
	Now     func() time.Time
}

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
	clean, err := settle(n.Name, n.Changes)
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

// Edit is what a person changes about a policy. Nil members stay.
type Edit struct {
	Name     *string
	Document json.RawMessage // replaces the whole document, before Changes
	Changes  []Change
	// SystemUpdate is that of an AGENT policy, as JSON; one without members removes it.
	SystemUpdate json.RawMessage
	Description  *string
	Labels       *[]string
	Group        *string
}

// Save saves an edit of the version that the person saw: fault.StaleProposal
// if the policy was saved since. An edit that changes nothing saves nothing
// and returns the policy as it is.
func (s Service) Save(ctx context.Context, companyID, id string, expected int, e Edit, by Author) (Policy, error) {
	p, err := s.Current(ctx, companyID, id)
	if err != nil {
		return Policy{}, err
	}
	if p.Version != expected {
		return Policy{}, stale(p, expected)
	}
	next, d, err := p.with(e)
	if err != nil || d.Empty() {
		return p, err
	}
	return s.save(ctx, next, expected, Revision{SavedBy: by, Origin: FromPortal})
}

// Restore saves the document and the name of an earlier revision as the version
// after the one that the person saw: fault.StaleProposal if the policy was
// saved since, fault.NotFound for a revision that never was. Description,
// labels and group stay (contract 4.3). If the policy is as it was then,
// nothing is saved.
func (s Service) Restore(ctx context.Context, companyID, id string, expected, revision int, by Author) (Policy, error) {
	p, err := s.Current(ctx, companyID, id)
	if err != nil {
		return Policy{}, err
	}
	earlier, err := s.Store.Revision(ctx, companyID, id, revision)
	if err != nil {
		return Policy{}, err
	}
	if p.Version != expected {
		return Policy{}, stale(p, expected)
	}
	next := p
	next.Name, next.Document = earlier.Name, earlier.Document
	if next.Name != p.Name && earlier.NameRefused {
		return Policy{}, fault.New(fault.Refused, "the policy was named %s at revision %d, which is refused now: save its settings under "+
			"another name", earlier.Name, revision)
	}
	d, err := Compare(p.Type, p.Revision(), next.Revision())
	if err != nil || d.Empty() {
		return p, err
	}
	return s.save(ctx, next, expected, Revision{SavedBy: by, Origin: FromRollback})
}

// save checks and saves what comes after the expected version.
func (s Service) save(ctx context.Context, next Policy, expected int, r Revision) (Policy, error) {
	if err := s.check(next.Type, next.Document); err != nil {
		return Policy{}, err
	}
	next.UpdatedAt = s.Now()
	r.SavedAt = next.UpdatedAt
	return s.Store.SavePolicy(ctx, next, expected, r)
}

func stale(p Policy, expected int) error {
	return fault.New(fault.StaleProposal,
		"the policy was saved again: version %d was changed, version %d is current; read it again", expected, p.Version)
}

// Delete leaves a tombstone; fault.Refused while devices use the policy. It returns how many
// enrollment codes ended with it.
func (s Service) Delete(ctx context.Context, companyID, id string) (codes int, err error) {
	if _, err := s.Current(ctx, companyID, id); err != nil {
		return 0, err
	}
	return s.Store.DeletePolicy(ctx, companyID, id, s.Now())
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
func (s Service) Diff(ctx context.Context, companyID, id string, from, to int) (Diff, error) {
	p, err := s.Current(ctx, companyID, id)
	if err != nil {
		return Diff{}, err
	}
	states := [2]Revision{p.Revision(), p.Revision()}
	for i, number := range [2]int{from, to} {
		if number == 0 {
			continue
		}
		if states[i], err = s.Store.Revision(ctx, companyID, id, number); err != nil {
			return Diff{}, err
		}
	}
	return Compare(p.Type, states[0], states[1])
}

// check refuses a document that cannot be saved.
func (s Service) check(t Type, document json.RawMessage) error {
	if err := CheckDocument(s.Checker, t, document); err != nil {
		return fault.New(fault.Refused, "the policy cannot be saved: %s", err).Because(err)
	}
	return nil
}

// Revision is the policy's current state in the shape of a revision.
func (p Policy) Revision() Revision {
	return Revision{PolicyID: p.ID, Version: p.Version, Name: p.Name, Document: p.Document,
		Description: p.Description, Labels: p.Labels, Group: p.Group}
}

// with returns the policy as an edit makes it, and what that changes.
func (p Policy) with(e Edit) (Policy, Diff, error) {
	next, err := p.edited(e)
	if err != nil {
		return Policy{}, Diff{}, err
	}
	d, err := Compare(p.Type, p.Revision(), next.Revision())
	if err != nil {
		return Policy{}, Diff{}, invalidDocument(err)
	}
	return next, d, nil
}

func (p Policy) edited(e Edit) (Policy, error) {
	if e.Name != nil && *e.Name == p.Name { // a name from before the rules of names may stay
		e.Name = nil
	}
	clean, err := e.settle()
	if err != nil {
		return Policy{}, err
	}
	if e.Name != nil {
		p.Name = clean.name
	}
	if e.Document != nil {
		p.Document = e.Document
	}
	if p.Document, _, err = Apply(p.Type, p.Document, clean.changes); err != nil {
		return Policy{}, invalidDocument(err)
	}
	if e.SystemUpdate != nil {
		if p.Document, err = withSystemUpdate(p.Type, p.Document, e.SystemUpdate); err != nil {
			return Policy{}, fault.New(fault.Refused, "the policy cannot be saved: %s", err)
		}
	}
	p.Description = *cmp.Or(e.Description, &p.Description)
	p.Labels = *cmp.Or(e.Labels, &p.Labels)
	p.Group = *cmp.Or(e.Group, &p.Group)
	return p, nil
}

// clean holds arguments in the form in which they are kept.
type clean struct {
	name    string
	changes []Change
}

// Check returns fault.InvalidArguments for a name, or changes, that no policy can get.
func (e Edit) Check() error {
	_, err := e.settle()
	return err
}

func (e Edit) settle() (clean, error) {
	newName := "unchanged"
	if e.Name != nil {
		newName = *e.Name
	}
	return settle(newName, e.Changes)
}

// settle checks a name and changes and returns them in their normal form.
func settle(policyName string, changes []Change) (clean, error) {
	name, wrong := CleanName(policyName)
	normal, faults := NormalChanges(changes)
	if wrong != "" {
		faults = append(faults, fault.Field{Field: "displayName", Message: wrong})
	}
	if len(faults) > 0 {
		return clean{}, fault.Invalid("the policy cannot be saved as asked", faults...)
	}
	return clean{name, normal}, nil
}

func invalidDocument(err error) error {
	return fault.Invalid("the policy's document cannot be read",
		fault.Field{Field: "document", Message: err.Error()})
}
