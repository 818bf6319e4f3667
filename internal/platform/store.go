package platform

import (
	"context"
	"time"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/enrollment"
	"github.com/musterhq/muster/internal/policy"
)

// Stores are what the adapter needs of the rest of the service. *database.DB is
// all of them but Inventory and Commands, which are the domain's services.
// A program that only pushes policies, connects or disconnects companies needs
// Companies, Enterprises, Policies, Signups, Leases and Quota.
type Stores struct {
	Companies   Companies
	Enterprises Enterprises
	Policies    Policies
	Signups     Signups
	Leases      Leases
	Quota       Quota     // nil: no limit of our own
	Inventory   Inventory // *enrollment.Service
	Commands    Commands  // *command.Service
	Records     Records
}

// Companies finds companies. An unknown one is fault.NotFound.
type Companies interface {
	// CompanyByID returns a company, or fault.NotFound.
	CompanyByID(ctx context.Context, id string) (company.Company, error)
	// CompanyByEnterprise returns the company that is connected to an enterprise, or
	// fault.NotFound.
	CompanyByEnterprise(ctx context.Context, enterprise string) (company.Company, error)
	// Companies returns all companies, by slug.
	Companies(ctx context.Context) ([]company.Company, error)
}

// Enterprises keeps what is wrong with enterprises, ours and those of others. Each method fails as the
// database does, and with the faults that it names.
type Enterprises interface {
	// BeginDisconnection stores that a company's enterprise is to be given up;
	// fault.Refused if it is another one or, unless it is lost, manages devices.
	BeginDisconnection(ctx context.Context, companyID, enterprise string, lost bool, at time.Time) error
	// CancelDisconnection takes that back.
	CancelDisconnection(ctx context.Context, enterprise string) error
	// FinishDisconnection ends the devices and takes the enterprise from the company.
	// It may be called again after it was interrupted. It fails with fault.Refused unless
	// BeginDisconnection was called for the company's enterprise.
	FinishDisconnection(ctx context.Context, companyID, enterprise string, at time.Time) error
	// FormerEnterprise reports whether an enterprise was given up here.
	FormerEnterprise(ctx context.Context, enterprise string) (bool, error)
	// NoteForeign notes that a notification came of an enterprise that no company has.
	NoteForeign(ctx context.Context, enterprise string, at time.Time) error
	// EnterpriseTroubles returns what is noted of companies' enterprises, by company.
	EnterpriseTroubles(ctx context.Context) (map[string]company.Trouble, error)
	// SetEnterpriseLost notes that the platform does not have a company's enterprise,
	// or has it again.
	SetEnterpriseLost(ctx context.Context, companyID, enterprise string, lost bool, at time.Time) error
}

// Inventory takes what the platform reports about devices.
type Inventory interface {
	// Observe fails as enrollment.Service does: with fault.InvalidArguments for what can never be
	// applied.
	Observe(ctx context.Context, o enrollment.Observation) (enrollment.Change, error)
}

// Commands takes what the platform reports about commands. See command.Service. Each method fails as
// the database does, and with the faults that it names.
type Commands interface {
	// Settle makes a command final by what the platform reports, as command.Service does.
	// fault.NotFound if the command was not sent here.
	Settle(ctx context.Context, f command.Feedback) (command.Command, bool, error)
	// Adopt records an effect that the platform reports and whose command has no outcome yet,
	// as command.Service does; fault.NotFound if there is no such command.
	Adopt(ctx context.Context, ref string, seen command.Observation) (command.Command, error)
	// PolicyApplied ends the commands that moved an asset to the policy that it reports.
	PolicyApplied(ctx context.Context, assetID, policyID string, m asset.Management, at time.Time) error
}

// Records are what the service knows of commands and devices. Each method fails as the database does,
// and with the faults that it names.
type Records interface {
	// CommandByRef returns the command with the platform's reference, or fault.NotFound.
	CommandByRef(ctx context.Context, ref string) (command.Command, error)
	// CommandsToPoll returns up to limit commands of platform-managed devices
	// in a state, created before a time, whose outcome is to be asked for by
	// now.
	CommandsToPoll(ctx context.Context, state command.State, created, now time.Time, limit int) ([]command.Command, error)
	// SetPolled notes when to ask after a command again.
	SetPolled(ctx context.Context, commandID string, next time.Time) error
	// AssetOfDevice finds the asset of a device by the device's name, or fault.NotFound.
	AssetOfDevice(ctx context.Context, companyID, device string) (string, error)
	// Asset returns an asset of the company, or fault.NotFound.
	Asset(ctx context.Context, companyID, id string) (asset.Asset, error)
	// DeviceNames returns the names of the devices that the platform manages, with
	// when each enrolled.
	DeviceNames(ctx context.Context, companyID string) (map[string]time.Time, error)
}

// Policies keeps policies and what became of the platform's copies. Each method fails as the database
// does, and with the faults that it names.
type Policies interface {
	// Policy returns a policy, also a deleted one, or fault.NotFound.
	Policy(ctx context.Context, companyID, id string) (policy.Policy, error)
	// PoliciesToPush returns up to limit policies of connected companies, or of
	// one of them, whose copy at the platform is not the saved version and
	// whose next try is due. They come without their documents.
	PoliciesToPush(ctx context.Context, companyID string, now time.Time, limit int) ([]policy.Policy, error)
	// NotePushAsked records that the caller has a policy pushed again.
	NotePushAsked(ctx context.Context, p policy.Policy) error
	// SetPushed notes that the platform holds our version, and what it calls it.
	SetPushed(ctx context.Context, policyID string, version int, vendorVersion int64, at time.Time) error
	// SetPushFailed notes why a version was not pushed, in words for people.
	// backoff says when to try again, by how long the version has failed; nil:
	// not before the policy is saved or pushed again.
	SetPushFailed(ctx context.Context, policyID string, version int, text string, at time.Time,
		backoff func(failing time.Duration) time.Duration) error
}

// Leases say who does what only one may do at a time, over all replicas. Each method fails as the
// database does.
type Leases interface {
	// Lease gives a lease for some time, or renews it if holder holds it; false
	// while another does.
	Lease(ctx context.Context, name, holder string, ttl time.Duration) (bool, error)
	// Release gives it back, if holder still holds it.
	Release(ctx context.Context, name, holder string) error
}

// Signups keeps the sign-ups with which companies are bound to enterprises. Each method fails as the
// database does, and with the faults that it names.
type Signups interface {
	// SaveSignup keeps one that was begun. It fails with fault.Refused if the company is
	// being deleted, and so do KeepSignupToken and FinishSignup.
	SaveSignup(ctx context.Context, s company.Signup) error
	// KeepSignupToken notes what the vendor brought back until it is finished;
	// fault.NotFound if it is not known or finished.
	KeepSignupToken(ctx context.Context, state, token string) error
	// SetSignupNonce stores or, if empty, removes company.Signup.Nonce; fault.NotFound
	// without such a sign-up.
	SetSignupNonce(ctx context.Context, state, nonce string) error
	// MarkedSignups returns the company's finished ones that still have a nonce.
	MarkedSignups(ctx context.Context, companyID string) ([]company.Signup, error)
	// OpenSignup finds the company's newest one begun since and not finished;
	// fault.NotFound if there is none.
	OpenSignup(ctx context.Context, companyID string, since time.Time) (company.Signup, error)
	// Signup finds one by its state, or fault.NotFound.
	Signup(ctx context.Context, state string) (company.Signup, error)
	// FinishSignup binds its company to the enterprise; fault.Refused if either
	// is bound elsewhere, fault.NotFound without such a sign-up.
	FinishSignup(ctx context.Context, state, enterprise string) error
}

// Quota is the vendor's quota as all replicas share it. Each method fails as the database does.
type Quota interface {
	// SpendQuery takes one of the limit queries allowed in a window, which flow
	// back evenly; false if fewer than reserve would be left, or, for
	// background work, while PauseQueries lasts.
	SpendQuery(ctx context.Context, project string, limit, reserve int, window time.Duration, background bool, now time.Time) (bool, error)
	// PauseQueries holds background queries back until a time.
	PauseQueries(ctx context.Context, project string, until time.Time) error
}
