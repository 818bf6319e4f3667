// Package company is the tenant: its name, its settings for AI agent access
// and its binding to the vendor's platform.
package company

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/resource"
)

// DefaultInactiveAfter is how long an enrolled device may be silent before it
// reads as INACTIVE (contract 3.4).
const DefaultInactiveAfter = 30 * 24 * time.Hour

// DefaultKeepActivity is how long entries of the activity log are kept unless
// the company says otherwise.
const DefaultKeepActivity = 400 * 24 * time.Hour

// DefaultKeepCommands, DefaultKeepPlaces and DefaultKeepEvents are how long commands, the
// places where devices were, and events are kept unless the company says otherwise.
const (
	DefaultKeepCommands = 400 * 24 * time.Hour
	DefaultKeepPlaces   = 90 * 24 * time.Hour
	DefaultKeepEvents   = 30 * 24 * time.Hour
)

// RetentionNotice is how long after an upgrade nothing is deleted by KeepCommands and
// KeepPlaces.
const RetentionNotice = 30 * 24 * time.Hour

// Company is one tenant.
type Company struct {
	ID            string
	Slug          string // in path names; never changes
	Name          string
	Settings      access.Settings
	InactiveAfter time.Duration
	// KeepCommands, KeepPlaces and KeepEvents are how long commands, the places where devices
	// were, and events are kept: whole days.
	KeepCommands, KeepPlaces, KeepEvents time.Duration
	// Enterprise is the platform's name of the company, "enterprises/LC…";
	// empty while the company is not connected (contract 7.4).
	Enterprise string
	CreatedAt  time.Time
	// UpgradeNotice: the company is older than the controls, and the overview says
	// what is new until an administrator dismisses it.
	UpgradeNotice bool
	Lost          LostContact
}

// LostContact is what the portal's form for lost mode begins with; all of it may be empty.
type LostContact struct {
	Message, PhoneNumber, Organization string
}

// MaxLostText is the limit of each of its texts, in characters.
const MaxLostText = 500

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
	// CompanyByID returns a company, or fault.NotFound.
	CompanyByID(ctx context.Context, id string) (Company, error)
	// CompanyBySlug returns the company of a slug, or fault.NotFound.
	CompanyBySlug(ctx context.Context, slug string) (Company, error)
	// Companies returns all companies, by slug.
	Companies(ctx context.Context) ([]Company, error)
	// UpdateCompany changes what change changes, atomically; change may run
	// more than once and must be pure. It fails with fault.NotFound without the company, with
	// fault.Refused if another has the enterprise or the company is being deleted, and with the
	// error of change.
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

// MaxName is the limit of a company's name, in characters.
const MaxName = 100

// The shortest and the longest inactivity period.
const (
	MinInactiveAfter = time.Minute
	MaxInactiveAfter = 3650 * 24 * time.Hour
)

// The shortest and the longest time that the activity log is kept.
const (
	MinKeepActivity = 30 * 24 * time.Hour
	MaxKeepActivity = 3650 * 24 * time.Hour
)

// The shortest and the longest time that commands and places are kept. An idempotent
// answer lives no longer than the shortest.
const (
	MinKeep = 24 * time.Hour
	MaxKeep = 3650 * 24 * time.Hour
)

// KeepError says what is wrong with a time for which something is kept; empty: nothing.
func KeepError(d time.Duration) string {
	if d < MinKeep || d > MaxKeep || d%(24*time.Hour) != 0 {
		return "must be whole days, from 1d to 3650d"
	}
	return ""
}

// New makes a company, not yet connected to the platform. It fails with
// fault.InvalidArguments for a slug, a name or settings that cannot be.
func New(slug, displayName string, settings access.Settings, now time.Time) (Company, error) {
	if settings.Controls == (access.Controls{}) {
		settings.Controls = access.DefaultControls()
	}
	settings.KeepActivity = cmp.Or(settings.KeepActivity, DefaultKeepActivity)
	c := Company{
		ID: resource.NewID(), Slug: slug, Name: displayName, Settings: settings,
		InactiveAfter: DefaultInactiveAfter, KeepCommands: DefaultKeepCommands, KeepPlaces: DefaultKeepPlaces,
		KeepEvents: DefaultKeepEvents, CreatedAt: now.UTC().Truncate(time.Millisecond),
	}
	return c, c.Check()
}

// Check returns fault.InvalidArguments, naming every field at fault, for a
// company that may not be saved. Command line and portal both ask it, inside
// Store.UpdateCompany's change as well.
func (c Company) Check() error {
	var wrong fault.Wrong
	must := wrong.Must
	must(resource.IsSlug(c.Slug), "slug", "must be 1 to 40 lower-case letters, digits and inner hyphens")
	must(resource.IsLabel(c.Name, MaxName), "name", "must have 1 to 100 printable characters and no spaces around them")
	must(c.InactiveAfter >= MinInactiveAfter && c.InactiveAfter <= MaxInactiveAfter, "inactiveAfter",
		"must be between one minute and ten years")
	must(c.Settings.KeepActivity >= MinKeepActivity && c.Settings.KeepActivity <= MaxKeepActivity, "keepActivity",
		"must be between 30 days and ten years")
	for field, kept := range map[string]time.Duration{"keepCommands": c.KeepCommands, "keepPlaces": c.KeepPlaces,
		"keepEvents": c.KeepEvents} {
		must(KeepError(kept) == "", field, KeepError(kept))
	}
	must(c.Settings.DeviceCommands || !c.Settings.DestructiveCommands, "destructiveCommands",
		"needs deviceCommands: turn that on as well")
	for _, text := range []struct{ field, value string }{{"lostMessage", c.Lost.Message}, {"lostPhone", c.Lost.PhoneNumber},
		{"lostOrganization", c.Lost.Organization}} {
		must(text.value == "" || resource.IsLabel(text.value, MaxLostText), text.field,
			"must have at most 500 printable characters, in one line, and no spaces around them")
	}
	must(!c.Settings.Stop.On() || resource.IsLabel(c.Settings.Stop.Reason, access.MaxStopReason), "reason",
		"must have 1 to 200 printable characters and no spaces around them")
	controls := c.Settings.Controls.Wrong()
	for _, field := range slices.Sorted(maps.Keys(controls)) {
		must(false, field, controls[field])
	}
	return wrong.Err("")
}

// Change returns a change for Store.UpdateCompany that runs edit and refuses
// what Check refuses. The slug is part of every path name and stays.
func Change(edit func(*Company)) func(*Company) error {
	return func(c *Company) error {
		slug := c.Slug
		edit(c)
		if c.Slug != slug {
			return fault.Invalid("a company's slug never changes", fault.Field{Field: "slug", Message: "never changes"})
		}
		return c.Check()
	}
}

// Trouble is what is wrong with a company's enterprise at the platform.
type Trouble struct {
	LostSince     time.Time // the platform does not have it; zero: it has
	Disconnecting time.Time // when giving it up began; zero: it did not
}

// None reports whether nothing is wrong.
func (t Trouble) None() bool { return t.LostSince.IsZero() && t.Disconnecting.IsZero() }

// Foreign is an enterprise of another installation whose notifications came here.
type Foreign struct {
	Enterprise  string
	First, Last time.Time
}
