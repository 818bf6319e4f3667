// Package company is the tenant: its name, its settings for AI agent access
// and its binding to the vendor's platform.
package company

import (
	"context"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/resource"
)

// DefaultInactiveAfter is how long an enrolled device may be silent before it
// reads as INACTIVE (contract 3.4).
const DefaultInactiveAfter = 30 * 24 * time.Hour

// DefaultKeepActivity is how long entries of the activity log are kept unless
// the company says otherwise.
const DefaultKeepActivity = 400 * 24 * time.Hour

// Company is one tenant.
type Company struct {
	ID            string
	Slug          string // in path names; never changes
	Name          string
	Settings      access.Settings
	InactiveAfter time.Duration
	// KeepActivity is how long entries of the activity log are kept.
	KeepActivity time.Duration
	// Enterprise is the platform's name of the company, "enterprises/LC…";
	// empty while the company is not connected (contract 7.4).
	Enterprise string
	CreatedAt  time.Time
	// UpgradeNotice: the company is older than the controls, and the overview says
	// what is new until an administrator dismisses it.
	UpgradeNotice bool
}

// PathName is the company's resource name.
func (c Company) PathName() string { return resource.Company(c.Slug) }

// Connected reports whether the company is bound to an enterprise.
func (c Company) Connected() bool { return c.Enterprise != "" }

// Switch reports who last switched one of the settings for AI agents.
type Switch struct {
	Gate    access.Gate
	Enabled bool
	At      time.Time
	By      access.Actor
}

// Store keeps companies. Find methods return fault.NotFound.
type Store interface {
	CreateCompany(ctx context.Context, c Company) error // fault.Refused if the slug is taken
	CompanyByID(ctx context.Context, id string) (Company, error)
	CompanyBySlug(ctx context.Context, slug string) (Company, error)
	CompanyByEnterprise(ctx context.Context, enterprise string) (Company, error)
	Companies(ctx context.Context) ([]Company, error)
	// UpdateCompany changes what change changes, atomically; change may run
	// more than once and must be pure.
	UpdateCompany(ctx context.Context, id string, change func(*Company) error) (Company, error)
	// Switches reports who last switched each of the settings for AI agents.
	Switches(ctx context.Context, companyID string) ([]Switch, error)
}

// SignupKept is how long a sign-up that was left half-way can be gone on with.
const SignupKept = 7 * 24 * time.Hour

// Signup is an unfinished sign-up at the device-management platform, so that
// an administrator who left can go on.
type Signup struct {
	State      string // the secret that the vendor's page brings back
	CompanyID  string
	Session    string // the id of the portal's session that began it; empty: the command line did
	Name       string // the vendor's name of it
	Address    string // the vendor's page
	Token      string // what the vendor brought back; empty: not finished yet
	Nonce      string // part of the enterprise's display name; empty: the vendor was not asked to make it, or it has its final name
	Enterprise string // empty until it is finished
	Begun      time.Time
}

// Returned reports whether the administrator came back from the vendor's page
// while the company could not be bound yet.
func (s Signup) Returned() bool { return s.Token != "" }
