package proposal

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/access"
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
	State ApprovalState // empty: Waiting
	By    string        // the person's name
	At    time.Time
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

// Unapproved reports whether an approval is needed and not there.
func (p Proposal) Unapproved() bool {
	return p.NeedsApproval() && p.Approval.State != Approved
}

// AwaitsApproval reports whether a person can approve it now.
func (p Proposal) AwaitsApproval() bool { return p.Status == Pending && p.Unapproved() }

// lifetime is how long a proposal of the owner can be applied.
func lifetime(rule access.ApprovalRule, o Owner) time.Duration {
	if rule.On() && (o.Kind == access.APIKey || o.Kind == access.Connection) {
		return ApprovalLifetime
	}
	return Lifetime
}

// Change is the canonical change: what a person approves, whole, and by which apply
// decides. Devices may become fewer, or more within the same impact; everything else
// is exactly so.
type Change struct {
	signature.Head
	Kind           string         `json:"kind"`
	Policy         ChangedPolicy  `json:"policy"`
	Result         string         `json:"result"` // id of the policy that applying changes or makes
	BaseVersion    int            `json:"baseVersion"`
	Changes        []ChangedValue `json:"changes"` // in the order of the proposal
	DocumentSHA256 string         `json:"documentSha256"`
	Impact         Impact         `json:"impact"`
	Devices        int            `json:"devices"`
	Warnings       []string       `json:"warnings"`
	Caller         Caller         `json:"caller"`
}

// ChangedPolicy is the policy that a change is about; of a copy: the source, and the
// new name.
type ChangedPolicy struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// ChangedValue is an entry of a canonical change.
type ChangedValue struct {
	Setting string `json:"setting"`
	From    string `json:"from"`
	To      string `json:"to"`
}

// Caller is who proposed.
type Caller struct {
	Kind   access.Kind       `json:"kind"`
	ID     string            `json:"id"`
	Prefix string            `json:"prefix,omitempty"` // of a key
	Client string            `json:"client,omitempty"` // of a connection, with its
	User   *signature.Person `json:"user,omitempty"`
}

// Change is the canonical change of the proposal as it now is. Of the head, the person,
// the decision and the time are taken.
func (l Listed) Change(head signature.Head) Change {
	head.Domain, head.Company, head.Subject, head.Expires = signature.PolicyChange, l.CompanySlug, l.ID, signature.Time(l.ExpiresAt)
	sum := sha256.Sum256(l.Next.Document)
	c := Change{Head: head, Kind: map[Capability]string{CreatePolicy: "copy", RollBack: "rollback"}[l.Capability],
		Policy: ChangedPolicy{l.PolicyID, l.TargetName}, Result: l.Next.PolicyID, BaseVersion: l.BaseVersion,
		Changes: []ChangedValue{}, DocumentSHA256: hex.EncodeToString(sum[:]), Impact: l.Impact, Devices: l.Devices,
		Warnings: append([]string{}, l.Warnings...), Caller: Caller{Kind: l.Owner.Kind, ID: l.Owner.ID, Prefix: l.Maker.KeyPrefix, Client: l.Maker.Client}}
	if c.Kind == "" {
		c.Kind = "change"
	}
	for _, f := range l.Fields {
		c.Changes = append(c.Changes, ChangedValue{f.Label, f.PreviousValue, f.Value})
	}
	if l.Owner.Kind == access.Connection {
		c.Caller.User = &signature.Person{ID: l.Owner.UserID, Name: l.Maker.UserName}
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

// Keys knows the service's passkeys.
type Keys interface {
	// PublicKey is the public key of a stored passkey, as a signature names it.
	PublicKey(credential json.RawMessage) ([]byte, error)
	Party() signature.Party
}

// Standing is all that decides whether a person's decision counts now.
type Standing struct {
	Listed
	Signed     signature.Signed
	Controls   access.Controls
	Approver   access.Approver // who signed, with the passkey; zero: is not there any more
	Credential json.RawMessage // that passkey as it is stored
	Now        time.Time
}

// Matter is what the approver of the proposal must be able to do.
func (l Listed) Matter() access.Matter {
	return access.Matter{Needs: mayReview, Policies: []string{l.PolicyID}, AskedBy: l.AskedBy(), AskedSince: l.Maker.Since}
}

// Check returns nil if the person's signature is for the decision about exactly what
// would be applied now, by a passkey of theirs, and they may decide.
func (s Standing) Check(keys Keys, want signature.Decision) error {
	if keys == nil {
		return fault.New(fault.Unsupported, "passkeys need a host name: they do not work at an IP address")
	}
	if s.Approver.UserID == "" {
		return fault.New(fault.Refused, "the person, or the passkey, is not there any more")
	}
	if err := s.Approver.May(s.Matter(), s.Controls, s.Now); err != nil {
		return err
	}
	changed := fault.New(fault.Refused, "what would be applied is no longer what was shown: look at it again")
	var c Change
	if err := json.Unmarshal(s.Signed.Document, &c); err != nil {
		return changed.Because(err)
	}
	now := s.Change(c.Head)
	now.Devices = c.Devices // whose number the impact bounds
	text, err := signature.Canonical(now)
	if err != nil || !bytes.Equal(text, s.Signed.Document) || c.Decision != want || c.Approver.ID != s.Approver.UserID {
		return changed.Because(err)
	}
	public, err := keys.PublicKey(s.Credential)
	if err != nil || !bytes.Equal(public, s.Signed.PublicKey) {
		return fault.New(fault.Refused, "the passkey is no longer the person's").Because(err)
	}
	if err := s.Signed.Verify(s.Signed.Document, keys.Party()); err != nil {
		return fault.New(fault.Refused, "the passkey's signature does not count").Because(err)
	}
	return nil
}

// Decision is a person's word on a proposal, signed with a passkey.
type Decision struct {
	CompanyID string
	ID        string
	UserID    string
	PasskeyID string
	Want      signature.Decision
	Signed    signature.Signed
	Confirmed bool // the policy's name was typed
	Check     func(s Standing, want signature.Decision) error
}

// Decide saves a person's decision about a proposal of the company; typed is the
// policy's name as they typed it, for a HIGH impact.
func (r Reviewer) Decide(ctx context.Context, who access.Principal, d Decision, typed string) (Proposal, error) {
	found, err := r.look(ctx, who, d.ID)
	if err != nil {
		return Proposal{}, err
	}
	d.CompanyID, d.UserID, d.Check = who.CompanyID, who.ID, r.Service.checks
	d.Confirmed = confirms(typed, found.TargetName)
	return r.Service.Store.DecideProposal(ctx, d)
}

// approvalRequired is the fault of a proposal that a person must approve first.
func (s *Service) approvalRequired(p Proposal) *fault.Error {
	url := s.approvalURL(p)
	f := fault.New(fault.ConfirmationRequired,
		"a person must approve this change with a passkey at %s: ask a user who may edit the policy to open that address, and apply the proposal again once it is approved; typing the policy's name does not replace it", url)
	f.Review = &fault.Review{Impact: string(p.Impact), RequiresConfirmation: p.NeedsConfirmation(), Summary: p.Summary}
	f.Approval = &fault.Approval{Required: true, URL: url}
	return f
}

func (s *Service) approvalURL(p Proposal) string { return s.PublicURL + "/approvals/" + p.ID }

// checks is Standing.Check with the service's keys.
func (s *Service) checks(st Standing, want signature.Decision) error { return st.Check(s.Keys, want) }

// checksSent is checks for a proposal as it was read, which is what will be sent.
func (s *Service) checksSent(p Proposal) func(Standing, signature.Decision) error {
	return func(st Standing, want signature.Decision) error {
		if st.Next.PolicyID != p.Next.PolicyID || st.Next.Name != p.Next.Name || !bytes.Equal(st.Next.Document, p.Next.Document) {
			return fault.New(fault.Refused, "the proposal was altered while it was applied")
		}
		return s.checks(st, want)
	}
}

// DeclinedBy is how a proposal ends that a person declined.
func DeclinedBy(name string) string { return "a person declined it: " + strings.TrimSpace(name) }
