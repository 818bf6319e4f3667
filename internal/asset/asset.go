// Package asset is the inventory: assets, and the managed device that an
// asset may be (contract 2.1, 3.1, 4.1).
package asset

import (
	"context"
	"encoding/json"
	"time"

	"github.com/musterhq/muster/internal/resource"
)

// Status is the state of an asset (contract 3.4).
type Status string

// The statuses. The first three are enrolled.
const (
	Active        Status = "ACTIVE"
	Inactive      Status = "INACTIVE"
	Synchronizing Status = "SYNCHRONIZING"
	Pending       Status = "PENDING"
	Deleted       Status = "DELETED"
)

// Enrolled reports whether a device of this status takes commands (contract 3.1).
func (s Status) Enrolled() bool { return s == Active || s == Inactive || s == Synchronizing }

// Management says who manages a device.
type Management string

// The two kinds of management.
const (
	Platform Management = "PLATFORM"
	Agent    Management = "AGENT"
)

// Ownership says whose a device is. The zero value is unknown, and counts as
// not allowed wherever ownership matters.
type Ownership string

// The ownerships.
const (
	CompanyOwned    Ownership = "COMPANY_OWNED"
	PersonallyOwned Ownership = "PERSONALLY_OWNED"
)

// Mode says how much of the device is managed. The zero value is unknown.
type Mode string

// The modes of management.
const (
	FullyManaged Mode = "DEVICE_OWNER"
	WorkProfile  Mode = "PROFILE_OWNER"
)

// Asset is an inventory item.
type Asset struct {
	ID             string
	CompanyID      string
	CompanySlug    string
	Identification string
	Status         Status
	SyncedAt       time.Time // zero: never
	CreatedAt      time.Time
	CustomData     map[string]string
	Tags           []string
	Specifications map[string]string
	Device         *Device // nil unless enrolled
	Archived       bool    // no list shows it unless it is asked for; it keeps its status
}

// PathName is the asset's resource name.
func (a Asset) PathName() string { return resource.Of(a.CompanySlug, resource.Assets, a.ID) }

// Device is the managed device that an asset is.
type Device struct {
	Management    Management
	Ownership     Ownership
	Mode          Mode
	PolicyID      string
	PolicyName    string // read together with the device
	PolicyApplied int    // our version of PolicyID that the device reported; 0: none yet
	EnrolledAt    time.Time
	LastSeenAt    time.Time
	LostMode      bool
	PushReachable bool
	StatusReport  json.RawMessage // {"reportedAt": …, …}; nil: none
	Location      *Location
	// Name is the device at its channel: "enterprises/…/devices/…" at the
	// platform, the agent's device id otherwise.
	Name string
	// Epoch counts enrollments of this asset; commands belong to one.
	Epoch    int
	APILevel int
}

// Location is where a device was.
type Location struct {
	Latitude       float64   `json:"latitude"`
	Longitude      float64   `json:"longitude"`
	AccuracyMeters float64   `json:"accuracyMeters"`
	ReportedAt     time.Time `json:"reportedAt"`
}

// App is an app that a device reports, in its own words.
type App struct {
	Package string `json:"package"`
	Name    string `json:"name,omitempty"`
	Version string `json:"version,omitempty"`
	Source  string `json:"source,omitempty"` // such as INSTALLED_FROM_PLAY_STORE
	Removed bool   `json:"removed,omitempty"`
}

// MaxApps is how many apps of a device are kept.
const MaxApps = 1000

// Inventory is the apps of a device, by package, since they last changed. A
// device that does not report its apps has none, and no time.
type Inventory struct {
	Apps  []App
	Since time.Time
}

// PlacesKept is how far back pages show where a device was.
const PlacesKept = 30 * 24 * time.Hour

// Place is where an asset was last.
type Place struct {
	ID, Identification string
	Location           Location
}

// Overview reads the inventory for people. Every method is bound to one company, and to
// the policies that it is given or that the filter names; nil: to all.
type Overview interface {
	Store
	// InstalledApps returns the apps that a device reported; none if it reports none, or is
	// not the company's.
	InstalledApps(ctx context.Context, companyID, assetID string) (Inventory, error)
	// Trail returns where an asset was since a time, the oldest first, at most
	// limit of the newest.
	Trail(ctx context.Context, companyID, assetID string, since time.Time, limit int) ([]Location, error)
	// Located returns the last places of the devices that reported last, at
	// most limit of them.
	Located(ctx context.Context, f Filter, limit int) ([]Place, error)
	// PatchLevels counts devices by patch level, the newest first and what was not
	// reported last.
	PatchLevels(ctx context.Context, companyID string, policies []string) ([]PatchLevel, error)
}

// PatchLevel is how many enrolled devices have a security patch level of a
// month, such as 2026-10; an empty month: none that they reported.
type PatchLevel struct {
	Month   string
	Devices int64
}

// SavedView is a person's view of the list of devices: its filters, order and
// columns under a name.
type SavedView struct {
	ID, CompanyID, UserID string
	Name                  string
	Query                 string // of the list's address
	Shared                bool   // all users of the company see it
	CreatedAt             time.Time
}

// MaxViewName is the limit of a view's name, in characters; MaxViews is how
// many a company may have.
const (
	MaxViewName = 50
	MaxViews    = 500
)

// Views keeps saved views. A view belongs to the user who made it.
type Views interface {
	// SavedViews returns a person's own views and those that are shared, by name.
	SavedViews(ctx context.Context, companyID, userID string) ([]SavedView, error)
	// SaveView stores a new view.
	SaveView(ctx context.Context, v SavedView) error
	// DropView removes a view of a person's own.
	DropView(ctx context.Context, companyID, userID, id string) error
}
