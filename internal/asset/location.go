package asset

import (
	"context"
	"time"
)

// PlacesKept is how long it is remembered where a device was.
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
	SearchAssets(ctx context.Context, s Search) (Found, error)
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
	SaveView(ctx context.Context, v SavedView) error
	// DropView removes a view of a person's own.
	DropView(ctx context.Context, companyID, userID, id string) error
}
