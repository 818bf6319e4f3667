package platform

import (
	"context"
	"time"

	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/enrolment"
	"github.com/musterhq/muster/internal/policy"
)

// Stores are what the adapter needs of the rest of the service. The database
// implements them, but for Inventory and Commands, which are the domain's
// services.
type Stores struct {
	Companies Companies
	Inventory Inventory
	Policies  Policies
	Leases    Leases
	Quota     Quota // nil: no limit of our own
}

// Companies finds companies. An unknown one is fault.NotFound.
type Companies interface {
	CompanyByID(ctx context.Context, id string) (company.Company, error)
	CompanyByEnterprise(ctx context.Context, enterprise string) (company.Company, error)
	Companies(ctx context.Context) ([]company.Company, error)
	UpdateCompany(ctx context.Context, id string, change func(*company.Company) error) (company.Company, error)
}

// Inventory takes what the platform tells about devices.
type Inventory interface {
	Observe(ctx context.Context, o enrolment.Observation) (enrolment.Change, error)
}

// Policies keeps policies and what became of the platform's copies.
type Policies interface {
	// Policy returns tombstones too.
	Policy(ctx context.Context, companyID, id string) (policy.Policy, error)
	// PoliciesToPush returns up to limit policies of connected companies whose
	// copy at the platform is not the saved version and whose next try is due.
	PoliciesToPush(ctx context.Context, now time.Time, limit int) ([]policy.Policy, error)
	// SetUnpushed notes that it is not known which version the platform holds.
	SetUnpushed(ctx context.Context, policyID string) error
	// SetPushed notes that the platform holds our version, and what it calls it.
	SetPushed(ctx context.Context, policyID string, version int, vendorVersion int64, at time.Time) error
	SetPushFailed(ctx context.Context, f PushFailure) error
	// PushedVersion translates the vendor's version of a policy into ours;
	// fault.NotFound if it was not pushed by us.
	PushedVersion(ctx context.Context, policyID string, vendorVersion int64) (int, error)
}

// PushFailure is why a saved version of a policy could not be pushed.
type PushFailure struct {
	PolicyID string
	Version  int
	Text     string    // for people
	At       time.Time //
	// Final: the version was refused, and is not due again until somebody
	// saves or pushes the policy.
	Final bool
	// Backoff says how long to wait, by how long this version has failed.
	Backoff func(failing time.Duration) time.Duration
}

// Leases say who does what only one may do at a time, over all replicas.
type Leases interface {
	// AcquireLease takes a lease, or renews it if holder holds it; false while
	// another does.
	AcquireLease(ctx context.Context, name, holder string, now, until time.Time) (bool, error)
	// ReleaseLease gives it back, if holder still holds it.
	ReleaseLease(ctx context.Context, name, holder string) error
}

// Query is one query of the vendor to be counted against its quota.
type Query struct {
	Project    string
	Limit      int           // queries allowed in Window; they flow back evenly
	Window     time.Duration //
	Reserve    int           // how many must be left for others
	Background bool          // waits while PauseQueries lasts
	Now        time.Time
}

// Quota is the vendor's quota as all replicas share it.
type Quota interface {
	// SpendQuery takes one query; false: none is left for it at present.
	SpendQuery(ctx context.Context, q Query) (bool, error)
	// PauseQueries holds background queries back until a time.
	PauseQueries(ctx context.Context, project string, until time.Time) error
}
