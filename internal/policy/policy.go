// Package policy is a company's policies as versioned documents, and the
// catalog of settings through which people and scripts see them
// (contract 2.4, 2.5, 2.8).
//
// Muster's own document is the truth; what the platform holds is a projection
// of it, pushed whole. A document of a PLATFORM policy has the shape of the
// vendor's policy, one of an AGENT policy has our own.
package policy

import (
	"context"
	"encoding/json"
	"time"

	"github.com/musterhq/muster/internal/outcome"
	"github.com/musterhq/muster/internal/resource"
)

// Type says whose devices a policy is for.
type Type string

// The types; a policy's devices are managed the same way.
const (
	Platform Type = "PLATFORM"
	Agent    Type = "AGENT"
)

// MaxNameLength is the limit of a display name, in characters (contract 4.3).
const MaxNameLength = 50

// Policy is one policy at its current version.
type Policy struct {
	ID          string
	CompanyID   string
	CompanySlug string
	Name        string // unique in the company, ignoring case and outer spaces
	Type        Type
	VROnly      bool
	Version     int // grows by one with every save, from 1
	Document    json.RawMessage
	Description string
	Labels      []string
	Group       string
	DeviceCount int // devices enrolled under the policy
	CreatedAt   time.Time
	UpdatedAt   time.Time
	Deleted     bool // a tombstone: a QR request for it is refused, everything else finds nothing
	Push        Push
}

// Push is how far the platform's copy has come. The pusher owns it.
type Push struct {
	Version  int    // our version that the platform holds; 0: none
	Error    string // why the last push failed; empty: it did not
	PushedAt time.Time
	TriedAt  time.Time // when a push last ended, also one that failed
}

// Behind reports whether the platform's copy must be brought up to date.
func (p Policy) Behind() bool { return p.Type == Platform && !p.Deleted && p.Push.Version != p.Version }

// PathName is the policy's resource name.
func (p Policy) PathName() string { return resource.Of(p.CompanySlug, resource.Policies, p.ID) }

// Editable reports whether proposals may change the policy: only those of the
// platform type (contract 4.3).
func (p Policy) Editable() bool { return p.Type == Platform && !p.Deleted }

// Origin says what saved a revision (contract 2.5).
type Origin string

// The origins.
const (
	FromPortal   Origin = "PORTAL"
	FromProposal Origin = "PROPOSAL"
	FromRollback Origin = "ROLLBACK"
	FromCreate   Origin = "CREATE"
)

// Author is who saved a revision.
type Author struct {
	Kind string `json:"kind"` // an access.Kind
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Revision is a saved state of a policy.
type Revision struct {
	PolicyID    string
	Revision    int // numbered per policy, from 1
	Version     int
	SavedAt     time.Time
	SavedBy     Author
	Name        string // as it is shown: see ShownName
	NameRefused bool   // the name was given before the rules of names, and would be refused now
	Origin      Origin
	ProposalID  string
	Document    json.RawMessage
	Description string
	Labels      []string
	Group       string
}

// Store keeps policies and their revisions. Every method is bound to one
// company: an id of another is fault.NotFound. Policy returns tombstones too;
// its caller decides what they mean.
type Store interface {
	// Policy returns a policy, also a deleted one, or fault.NotFound.
	Policy(ctx context.Context, companyID, id string) (Policy, error)
	// Policies lists what is not deleted, without the documents, and how many there are.
	Policies(ctx context.Context, q Query) ([]Policy, int64, error)
	// CreatePolicy saves the policy at version 1 with its first revision;
	// fault.Refused if the name is taken.
	CreatePolicy(ctx context.Context, p Policy, by Author, proposalID string) error
	// SavePolicy saves next as the version after expected, with a revision, if
	// the policy still is at version expected: fault.StaleProposal if not,
	// fault.Refused if a new name is taken, fault.Unavailable while a proposal changes the
	// policy.
	SavePolicy(ctx context.Context, next Policy, expected int, r Revision) (Policy, error)
	// DeletePolicy leaves a tombstone; fault.Refused while devices use it, or a command or a job moves some to it,
	// fault.Unavailable while a proposal changes it. It revokes the
	// policy's enrollment codes, and returns how many of them devices could still enroll with.
	DeletePolicy(ctx context.Context, companyID, id string, at time.Time) (codes int, err error)
	// Revisions returns the newest first.
	Revisions(ctx context.Context, companyID, policyID string, limit int) ([]Revision, error)
	// Revision returns one revision, or fault.NotFound.
	Revision(ctx context.Context, companyID, policyID string, revision int) (Revision, error)
}

// Query asks for one page of policies.
type Query struct {
	CompanyID     string
	IDs           []string // nil: all; else only these
	Type          Type     // empty: both
	Order         Order
	Descending    bool
	Offset, Limit int
}

// Order is a sort field of the policy list.
type Order string

// The sort fields; ties are broken by id.
const (
	ByName      Order = "displayName"
	ByUpdatedAt Order = "updatedAt"
	ByVersion   Order = "version"
	ByDevices   Order = "devices"
)

// Copy is the platform's copy of a policy, compared with a document of ours; zero: there is none.
type Copy struct {
	Same    bool  // it means the same as the document
	Version int64 // what the platform calls it
}

// LeaseKey is the name of the lease under which a policy's document is sent to the
// platform and the outcome is saved. It makes documents of one policy reach the
// platform in the order of their versions.
func LeaseKey(policyID string) string { return "platform/policy/" + policyID }

// PushResult is the result of one attempt to bring the platform's copy of a policy up to
// date: Done (the platform holds the version), Refused (it evaluated and refused it),
// NotSent (nothing changed: nothing was sent, or the platform was busy or denied access)
// or Unknown. After Unknown the reconciler brings both copies together.
type PushResult struct {
	Code   outcome.Code
	Detail string // for people: why, unless it was pushed
	Cause  error  // for the log
}
