package proposal

import (
	"context"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/signature"
)

// ApprovalLifetime is how long a proposal of a key or connection can be applied in a
// company whose people approve changes: long enough to find one of them.
const ApprovalLifetime = 24 * time.Hour

// ApprovalState says what a person decided about a proposal.
type ApprovalState string

// The states.
//
//	WAITING ──a person approves──► APPROVED ──apply──► the proposal is EXECUTING
//	   │  ▲                            │
//	   │  └── something has changed ───┘
//	   └──a person declines──► DECLINED, and the proposal FAILED
const (
	Waiting  ApprovalState = "WAITING"
	Approved ApprovalState = "APPROVED"
	Declined ApprovalState = "DECLINED"
)

// Approval is what was decided, by whom and when; zero until then.
type Approval struct {
	State  ApprovalState // empty: Waiting
	By     string        // the person's name
	At     time.Time
	Reason string // why it was declined, in the person's words
}

// NeedsApproval is the rule of the setting applyApproval: whether a person must
// approve a proposal before it is applied. It binds keys and connections alone.
func NeedsApproval(rule access.ApprovalRule, by access.Kind, impact Impact, warnings []string) bool {
	if by != access.APIKey && by != access.Connection {
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

// NeedsApproval reports whether a person must approve the proposal as it now is.
func (p Proposal) NeedsApproval() bool {
	return NeedsApproval(p.Rule, p.Owner.Kind, p.Impact, p.Warnings)
}

// Unapproved reports whether an approval is needed and not there: one of something with
// less impact, or of a policy that was saved since, is none.
func (p Proposal) Unapproved() bool {
	return p.NeedsApproval() && (p.Approval.State != Approved || p.Rose || p.Outdated)
}

// AwaitsApproval reports whether a person can approve it now.
func (p Proposal) AwaitsApproval() bool { return p.Status == Pending && p.Unapproved() && !p.Outdated }

// lifetime is how long a proposal of the owner can be applied.
func lifetime(rule access.ApprovalRule, o Owner) time.Duration {
	if rule.On() && (o.Kind == access.APIKey || o.Kind == access.Connection) {
		return ApprovalLifetime
	}
	return Lifetime
}

// Subject is what a person decides about: the proposal as it now is. Devices may become
// fewer, or more within the same impact; everything else is exactly so.
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

// document is the canonical change: what a person approves, whole, and by which apply
// decides. The number of devices is the one that was shown.
func (l Listed) document(h signature.Head, shown any) any {
	c := signature.Change{Head: h, Kind: map[Capability]string{CreatePolicy: "copy", RollBack: "rollback"}[l.Capability],
		Policy: signature.Policy{ID: l.PolicyID, Name: l.TargetName}, Result: l.Next.PolicyID, BaseVersion: l.BaseVersion,
		Changes: []signature.Moved{}, DocumentSHA256: signature.Hash(l.Next.Document), Impact: string(l.Impact), Devices: l.Devices,
		Warnings: append([]string{}, l.Warnings...),
		Caller:   signature.Caller{Kind: string(l.Owner.Kind), ID: l.Owner.ID, Prefix: l.Maker.KeyPrefix, Client: l.Maker.Client}}
	if c.Kind == "" {
		c.Kind = "change"
	}
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

// AskedBy is the user whose connection, or whose key, proposed; empty: the operator's.
func (l Listed) AskedBy() string {
	if l.Owner.Kind == access.APIKey {
		return l.Maker.KeyMaker
	}
	return l.Owner.UserID
}

// present is the proposal with its approval only if that still counts: from the moment on
// at which it does not, a person has to decide again.
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

// approvalRequired is the fault of a proposal that a person must approve first.
func (s *Service) approvalRequired(p Proposal) *fault.Error {
	url := s.approvalURL(p)
	f := fault.New(fault.ConfirmationRequired,
		"a person must approve this change with a passkey at %s: ask a user who may edit the policy to open that address, and apply the "+
			"proposal again once it is approved; typing the policy's name does not replace it", url)
	f.Review = &fault.Review{Impact: string(p.Impact), RequiresConfirmation: p.NeedsConfirmation(), Summary: p.Summary}
	f.Approval = &fault.Approval{Required: true, URL: url}
	return f
}

func (s *Service) approvalURL(p Proposal) string { return s.PublicURL + "/approvals/" + p.ID }

// DeclinedBy is how a proposal ends that a person declined, for a reason that may be empty.
func DeclinedBy(name, reason string) string {
	text := "a person declined it: " + strings.TrimSpace(name)
	if reason != "" {
		text += "; the reason: " + reason
	}
	return text
}

// MaxWaiting is how many proposals of one key or connection wait for a person at most.
const MaxWaiting = 20

// TooMany is the fault of a proposal beyond MaxWaiting.
func TooMany(until time.Duration) *fault.Error {
	return fault.Limited(until, "%d proposals of this caller wait for a person already: no further one is taken until one of them is "+
		"decided or expires", MaxWaiting)
}
