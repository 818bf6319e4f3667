package proposal

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/signature"
)

// ApprovalLifetime is how long a proposal of a key or connection can be applied if the company requires approvals: long
// enough for a person to see and decide it. Other proposals have Lifetime.
const ApprovalLifetime = 24 * time.Hour

// ApprovalState says what a person decided about a proposal.
type ApprovalState string

// The states.
//
//	WAITING ──a person approves──► APPROVED ──apply──► the proposal is EXECUTING
//	   │  ▲                            │
//	   │  └── the approval is void ────┘
//	   └──a person declines──► DECLINED, and the proposal FAILED
//
// A proposal whose policy has been saved since does not wait: it cannot be applied, and is FAILED once a caller tries that.
const (
	Waiting  ApprovalState = "WAITING"
	Approved ApprovalState = "APPROVED"
	Declined ApprovalState = "DECLINED"
)

// Approval is a person's decision about a proposal; zero: there is none yet.
type Approval struct {
	State  ApprovalState // empty: Waiting, if an approval is needed
	By     string        // the person's name
	At     time.Time
	Reason string // why it was declined, in the person's words
}

// NeedsApproval reports whether a person must approve a proposal before it is applied, by the setting applyApproval. Only
// proposals of keys and connections need an approval. RISKY means High impact or any warning.
func NeedsApproval(rule access.ApprovalRule, by access.Kind, impact Impact, warnings []string) bool {
	if !by.Automated() {
		return false
	}
	switch rule {
	case "", access.ApproveNone:
		return false
	case access.ApproveRisky:
		return impact == High || len(warnings) > 0
	default:
		return true
	}
}

// NeedsApproval reports whether a person must approve the proposal with the impact that it has now.
func (p Proposal) NeedsApproval() bool {
	return NeedsApproval(p.Rule, p.Owner.Kind, p.Impact, p.Warnings)
}

// Unapproved reports whether the proposal needs an approval and has none that counts. An approval does not count if the
// impact has risen since, or if the policy has been saved since.
func (p Proposal) Unapproved() bool {
	return p.NeedsApproval() && (p.Approval.State != Approved || p.Rose || p.Outdated)
}

// AwaitsApproval reports whether the proposal needs an approval that a person can give now.
func (p Proposal) AwaitsApproval() bool { return p.Status == Pending && p.Unapproved() && !p.Outdated }

// lifetime returns how long a proposal of the owner can be applied under a company's rule.
func lifetime(rule access.ApprovalRule, o access.Actor) time.Duration {
	if rule.On() && o.Kind.Automated() {
		return ApprovalLifetime
	}
	return Lifetime
}

// Subject returns what a person decides about: the proposal as it is now. The decision holds as long as nothing in it
// changes but the number of devices, which may change within the same impact.
func (l Listed) Subject() approval.Subject {
	s := approval.Subject{Kind: approval.ChangeKind, ID: l.ID, CompanyID: l.CompanyID, Company: l.CompanySlug,
		Domain:  signature.PolicyChange,
		Expires: l.ExpiresAt, Document: l.document,
		Matter: access.Matter{Needs: mayReview, Policies: []string{l.PolicyID}, AskedBy: l.AskedBy(), AskedSince: l.Maker.Since}}
	if l.NeedsConfirmation() {
		s.Name = l.TargetName
	}
	return s
}

// document returns the canonical document that a person signs. When the proposal is applied, it is made again and compared
// with the signed one. shown is the document that the person saw, a *signature.Change, whose number of devices is used;
// nil: the present number.
func (l Listed) document(h signature.Head, shown any) any {
	c := signature.Change{Head: h,
		Kind:   cmp.Or(map[Capability]string{CreatePolicy: "copy", RollBack: "rollback"}[l.Capability], "change"),
		Policy: signature.Policy{ID: l.PolicyID, Name: l.TargetName}, Result: l.Next.PolicyID, BaseVersion: l.BaseVersion,
		Changes: []signature.Moved{}, DocumentSHA256: signature.Hash(l.Next.Document), Impact: string(l.Impact), Devices: l.Devices,
		Warnings: append([]string{}, l.Warnings...),
		Caller:   signature.Caller{Kind: string(l.Owner.Kind), ID: l.Owner.ID, Prefix: l.Maker.KeyPrefix, Client: l.Maker.Client}}
	for _, f := range l.Fields {
		c.Changes = append(c.Changes, signature.Moved{Setting: f.Label, From: f.PreviousValue, To: f.Value})
	}
	if l.Owner.Kind == access.Connection {
		c.Caller.User = &signature.Person{ID: l.Owner.UserID, Name: l.Maker.UserName}
	}
	if was, ok := shown.(*signature.Change); ok {
		c.Devices = was.Devices
	}
	return c
}

// AskedBy returns the id of the user whose connection made the proposal, or who made the key that did. Empty: the operator
// made the key.
func (l Listed) AskedBy() string {
	if l.Owner.Kind == access.APIKey {
		return l.Maker.KeyMaker
	}
	return l.Owner.UserID
}

// present returns the proposal, without its approval if that does not count any more. It changes nothing in the store.
func (s *Service) present(ctx context.Context, p Proposal) (Proposal, error) {
	if p.Status != Pending || p.Approval.State != Approved || !p.NeedsApproval() {
		return p, nil
	}
	if p.Unapproved() {
		p.Approval = Approval{}
		return p, nil
	}
	void, err := s.Store.PeekApproval(ctx, p, s.Verifier)
	if void != nil {
		p.Approval = Approval{}
	}
	return p, err
}

// approvalRequired returns the error for applying a proposal that a person must approve first.
func (s *Service) approvalRequired(p Proposal) *fault.Error {
	url := s.approvalURL(p)
	f := fault.New(fault.ConfirmationRequired,
		"a person must approve this change with a passkey at %s: ask a user who may edit the policy to open that address, and apply the "+
			"proposal again once it is approved; typing the policy's name does not replace it", url)
	f.Review = p.review()
	f.Approval = &fault.Approval{Required: true, URL: url}
	return f
}

func (s *Service) approvalURL(p Proposal) string { return s.PublicURL + "/approvals/" + p.ID }

// DeclinedBy returns the outcome of a proposal that the named person declined. reason may be empty.
func DeclinedBy(name, reason string) string {
	text := "a person declined it: " + strings.TrimSpace(name)
	if reason != "" {
		text += "; the reason: " + reason
	}
	return text
}

// MaxWaiting is how many proposals of one key or connection may wait for an approval at the same time.
const MaxWaiting = 20

// TooMany returns the error for a proposal beyond MaxWaiting. until is how long to wait before a retry.
func TooMany(until time.Duration) *fault.Error {
	return fault.Limited(until, "%d proposals of this caller wait for a person already: no further one is taken until one of them is "+
		"decided or expires", MaxWaiting)
}
