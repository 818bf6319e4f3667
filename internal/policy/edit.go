package policy

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/resource"
)

// The limits of what a policy has for people beside its name. Lengths are in characters.
const (
	MaxDescription = 1000
	MaxLabels      = 50
	MaxLabel       = 64 // of a label, and of the group
)

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

// Preview returns what SaveBy would change, for the person to look at before.
func (s Service) Preview(ctx context.Context, who access.Principal, ref string, expected int, edit Edit) (Diff, error) {
	p, err := s.open(ctx, who, mayWrite, ref)
	if err != nil {
		return Diff{}, err
	}
	if p.Version != expected {
		return Diff{}, s.refuse(ctx, p, expected)
	}
	_, d, err := p.with(edit)
	return d, err
}

// Save saves an edit of the version that the person saw and returns the policy
// as it then is; an edit that changes nothing saves nothing. It fails with
// fault.InvalidArguments, with fault.StaleProposal if the policy was saved since,
// or with fault.Refused if the name is taken or the platform would not know the
// document.
func (s Service) Save(ctx context.Context, companyID, id string, expected int, e Edit, by Author) (Policy, error) {
	p, err := s.Current(ctx, companyID, id)
	if err != nil {
		return Policy{}, err
	}
	if p.Version != expected {
		return Policy{}, fault.New(fault.StaleProposal,
			"the policy was saved again: version %d was changed, version %d is current; read it again", expected, p.Version)
	}
	next, d, err := p.with(e)
	if err != nil || d.Empty() {
		return p, err
	}
	return s.save(ctx, next, expected, Revision{SavedBy: by, Origin: FromPortal})
}

// SaveBy is Save for a person: a *Conflict if the policy was saved since.
func (s Service) SaveBy(ctx context.Context, who access.Principal, ref string, expected int, edit Edit) (Policy, error) {
	p, err := s.open(ctx, who, mayWrite, ref)
	if err != nil {
		return Policy{}, err
	}
	saved, err := s.Save(ctx, p.CompanyID, p.ID, expected, edit, AuthorOf(who.Actor()))
	return saved, s.explain(ctx, p, expected, err)
}

// Restore saves the document and the name of an earlier revision as the version
// after the one that the person saw, with the origin ROLLBACK: a *Conflict if
// the policy was saved since, fault.NotFound for a revision that never was.
// Description, labels and group stay (contract 4.3). If the policy is as it was
// then, nothing is saved.
func (s Service) Restore(ctx context.Context, who access.Principal, ref string, expected, revision int) (Policy, error) {
	p, err := s.open(ctx, who, mayWrite, ref)
	if err != nil {
		return Policy{}, err
	}
	earlier, err := s.Store.Revision(ctx, p.CompanyID, p.ID, revision)
	if err != nil {
		return Policy{}, err
	}
	if p.Version != expected {
		return Policy{}, s.refuse(ctx, p, expected)
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
	saved, err := s.save(ctx, next, expected, Revision{SavedBy: AuthorOf(who.Actor()), Origin: FromRollback})
	return saved, s.explain(ctx, p, expected, err)
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

// Check returns fault.InvalidArguments for texts, or changes, that no policy can get.
func (e Edit) Check() error {
	_, err := e.settle()
	return err
}

// settle checks all but the document, and returns name and changes in their normal form. What the edit leaves as it is may
// break the rules: it can be from before them.
func (e Edit) settle() (clean, error) {
	normal, faults := NormalChanges(e.Changes)
	must := func(kept bool, field, message string) {
		if !kept {
			faults = append(faults, fault.Field{Field: field, Message: message})
		}
	}
	name, wrong := CleanName(*cmp.Or(e.Name, new("unchanged")))
	must(wrong == "", "displayName", wrong)
	must(isDescription(*cmp.Or(e.Description, new(string))), "description",
		"must have at most 1000 characters and no control characters other than line breaks")
	labels, group := *cmp.Or(e.Labels, new([]string)), *cmp.Or(e.Group, new(string))
	must(len(labels) <= MaxLabels && !slices.ContainsFunc(labels, func(label string) bool { return !resource.IsLabel(label, MaxLabel) }),
		"labels", "must be at most 50, each of 1 to 64 printable characters without spaces around them")
	must(group == "" || resource.IsLabel(group, MaxLabel), "group",
		"must have at most 64 printable characters and no spaces around them")
	if len(faults) > 0 {
		return clean{}, fault.Invalid("the policy cannot be saved as asked", faults...)
	}
	return clean{name, normal}, nil
}

func isDescription(text string) bool {
	refused := func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\r' }
	return utf8.ValidString(text) && utf8.RuneCountInString(text) <= MaxDescription && !strings.ContainsFunc(text, refused)
}

func invalidDocument(err error) error {
	return fault.Invalid("the policy's document cannot be read",
		fault.Field{Field: "document", Message: err.Error()})
}
