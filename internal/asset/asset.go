// Package asset is the inventory: assets, and the managed device that an asset may be
// (docs/contract.md 2.1, 3.1, 4.1; "contract" below is that file).
package asset

import (
	"context"
	"encoding/json"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/resource"
)

// Status is the state of an asset (contract 3.4).
type Status string

// The statuses. The first three are enrolled. Pending was never enrolled; Deleted was, and its
// management ended.
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

// Ownership says who owns a device. The zero value is unknown: a command that needs an ownership is then
// not allowed.
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
	Archived       bool    // only a list of archived assets shows it; its status does not change
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
	PolicyApplied int    // the version of PolicyID, by Muster's count, that the device reported; 0: none yet
	EnrolledAt    time.Time
	LastSeenAt    time.Time
	LostMode      bool
	PushReachable bool
	StatusReport  json.RawMessage // {"reportedAt": …, …}; nil: none
	Location      *Location
	// Name is the device at its channel: "enterprises/…/devices/…" at the
	// platform, the agent's device id otherwise.
	Name string
	// Epoch counts the enrollments of this asset. A command belongs to one of them.
	Epoch    int
	APILevel int
}

// Location is where a device was, in degrees.
type Location struct {
	Latitude       float64   `json:"latitude"`
	Longitude      float64   `json:"longitude"`
	AccuracyMeters float64   `json:"accuracyMeters"`
	ReportedAt     time.Time `json:"reportedAt"`
}

// App is an app as the device reports it. Its texts are not trusted.
type App struct {
	Package string `json:"package"`
	Name    string `json:"name,omitempty"`
	Version string `json:"version,omitempty"`
	Source  string `json:"source,omitempty"` // such as INSTALLED_FROM_PLAY_STORE
	Removed bool   `json:"removed,omitempty"`
}

// MaxApps is how many apps of a device are kept; further ones are dropped.
const MaxApps = 1000

// Inventory is the apps of a device, by package, since they last changed. A
// device that does not report its apps has none, and no time.
type Inventory struct {
	Apps  []App
	Since time.Time
}

// TrailPeriod is how far back the portal shows the locations of a device.
const TrailPeriod = 30 * 24 * time.Hour

// MaxPlaces is how many places of a device are kept: the newest ones.
const MaxPlaces = 5000

// Place is the last location of an asset.
type Place struct {
	ID, Identification string
	Location           Location
}

// Overview reads the inventory for the portal. Every method is bound to one company. InstalledApps
// and Trail do not check the limits of a principal: call Find first. Each method fails as the
// database does.
type Overview interface {
	Store
	// InstalledApps returns the apps that a device reported. The result is empty if it reports
	// none, or is not a device of the company.
	InstalledApps(ctx context.Context, companyID, assetID string) (Inventory, error)
	// Trail returns the locations of an asset since a time, the oldest first. If there are
	// more than limit, it returns the newest limit.
	Trail(ctx context.Context, companyID, assetID string, since time.Time, limit int) ([]Location, error)
	// Located returns the last location of at most limit enrolled devices, the most recently
	// synchronized first. Only the company and the policies of f apply.
	Located(ctx context.Context, f Filter, limit int) ([]Place, error)
	// PatchLevels counts the devices of the policies by month, the newest first and the empty
	// month last. If policies is nil, it counts all devices.
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

// MaxViewName is the limit of a view's name, in characters. MaxViews is how many views a company
// may have, and MaxUserViews how many of them may be of one person.
const (
	MaxViewName  = 50
	MaxViews     = 500
	MaxUserViews = 50
)

// Views keeps saved views. A view belongs to the user who made it. Each method fails as the database
// does.
type Views interface {
	// SavedViews returns a person's own views and those that are shared, by name.
	SavedViews(ctx context.Context, companyID, userID string) ([]SavedView, error)
	// SaveView stores a new view; fault.Refused if the company or the person has as many as they may.
	SaveView(ctx context.Context, v SavedView) error
	// DropView removes a view of a person's own, and with shared also one that another person shares.
	DropView(ctx context.Context, companyID, userID, id string, shared bool) error
}

// SortArgs are the order of a list.
type SortArgs struct {
	Sort string `query:"sort" rule:"enum=syncedAt,asc|syncedAt,desc|identification,asc|identification,desc|status,asc|status,desc|createdAt,asc|createdAt,desc|lastSeenAt,asc|lastSeenAt,desc default=syncedAt,desc" doc:"Field and direction. With lastSeenAt, assets without a managed device come last in both directions. To read the whole inventory page by page, sort by createdAt,asc: it never changes, and what is added while you read comes last."`
}

// ListArgs are the arguments of list_assets.
type ListArgs struct {
	FilterArgs
	operation.PageRequest
	SortArgs
	View string `query:"view" rule:"enum=FULL|BASIC default=FULL" doc:"FULL: whole assets. BASIC: their main facts, much shorter."`
}

// CountArgs are the arguments of count_assets: those that a list has may have an order, which
// changes no count.
type CountArgs struct {
	FilterArgs
	SortArgs
}

// Target names one asset; embed it in the arguments of what acts on one.
type Target struct {
	AssetID string `path:"assetId" doc:"The asset's pathName from list_assets, or its short id."`
}

// Count is the result of count_assets.
type Count struct {
	Count int64 `json:"count" doc:"How many assets match the filters."`
}

// Reader answers the asset reads. Companions: messages reach devices of the platform.
type Reader struct {
	Store      Store
	Editor     Editor
	Companions bool
}

// Define declares the asset operations (contract 4.1).
func Define(r *operation.Registry, reader Reader) {
	operation.Define(r, read("list_assets", "List assets", "/assets",
		"Lists the company's assets, one page at a time, most recently synchronized first unless sorted otherwise. "+
			"All filters that are given must match; those about a device find only managed devices that reported what is asked for. "+
			"Each entry holds the asset's hardware specifications, its custom data and, when it is enrolled, its managed device; "+
			"with view=BASIC only the main facts. Use an entry's pathName as assetId in other operations."), reader.List)
	operation.Define(r, read("count_assets", "Count assets", "/assets/count",
		"Counts the company's assets that match the filters, which are those of list_assets."), reader.Count)
	one := read("get_asset", "Read an asset", "/assets/{assetId}",
		"Reads one asset with its specifications, custom data and managed device. "+
			"The latest status report and location of the device are part of it, also those that a status-report or location-update "+
			"command has asked for.")
	one.Ahead = operation.AheadToShow
	one.Faults = []fault.Code{fault.NotFound, fault.Unavailable}
	operation.Define(r, one, reader.Get)
	operation.DefineExplained(r, operation.Operation{
		Name: "update_asset", Title: "Change an asset", Method: "PATCH", Path: "/assets/{assetId}",
		Description: "Changes what people say of one asset: its name, its tags and its custom data, such as the user to whom the device " +
			"is assigned. Nothing is sent to the device. What is not given stays as it is; tags replace all tags that the asset has. It " +
			"can be undone by another change.",
		Needs: access.DevicesCommand | access.DevicesRead, Gate: access.DeviceCommands, Budget: operation.AfterValidation,
		Dialect: operation.Commands, Effect: operation.Writing, Disruptive: true, Repeatable: true,
		Faults: []fault.Code{fault.NotFound, fault.Unsupported, fault.Unavailable},
	}, reader.Update, reader.ForeseeUpdate)
}

func read(tool, title, path, description string) operation.Operation {
	return operation.Operation{
		Name: tool, Title: title, Description: description, Method: "GET", Path: path,
		Needs: access.DevicesRead, Dialect: operation.Reads, Effect: operation.Reading,
		Faults: []fault.Code{fault.Unavailable},
	}
}

// List answers GET /assets.
func (rd Reader) List(ctx context.Context, call operation.Call, args ListArgs) (operation.Page[Listed], error) {
	filter, findable := args.Filter(call.Principal, rd.Companions)
	if !findable {
		return operation.Page[Listed]{Content: []Listed{}, Request: args.PageRequest}, nil
	}
	field, descending := operation.SortOrder(args.Sort)
	assets, total, err := rd.Store.Assets(ctx, Query{Filter: filter, Page: args.PageRequest, Order: Order(field), Descending: descending})
	return operation.PageOf(args.PageRequest, assets, total, func(a Asset) Listed {
		return Listed{asset: a, basic: args.View == "BASIC"}
	}), err
}

// Count answers GET /assets/count.
func (rd Reader) Count(ctx context.Context, call operation.Call, args CountArgs) (Count, error) {
	filter, findable := args.Filter(call.Principal, rd.Companions)
	if !findable {
		return Count{}, nil
	}
	n, err := rd.Store.CountAssets(ctx, filter)
	return Count{Count: n}, err
}

// Get answers GET /assets/{assetId}.
func (rd Reader) Get(ctx context.Context, call operation.Call, args Target) (View, error) {
	a, err := Find(ctx, rd.Store, call.Principal, args.AssetID)
	return a.Public(), err
}

// Finder reads one asset of a company.
type Finder interface {
	// Asset returns an asset of the company, or fault.NotFound.
	Asset(ctx context.Context, companyID, id string) (Asset, error)
}

var errNoAsset error = fault.New(fault.NotFound, "there is no asset with this id in your company: take the pathName from the asset list")

// Find returns the asset that ref, a pathName or a short id, names. It fails with fault.NotFound if there
// is none in the principal's company, or if the principal may not see the asset's policy.
func Find(ctx context.Context, s Finder, p access.Principal, ref string) (Asset, error) {
	id, ok := resource.Short(p.CompanySlug, resource.Assets, ref)
	if !ok {
		return Asset{}, errNoAsset
	}
	a, err := s.Asset(ctx, p.CompanyID, id)
	if fault.CodeOf(err) == fault.NotFound || err == nil && !a.VisibleTo(p) {
		return Asset{}, errNoAsset
	}
	return a, err
}

// VisibleTo reports whether a caller may see the asset, of their company: who is limited to policies sees
// the devices that have one of these.
func (a Asset) VisibleTo(p access.Principal) bool {
	return p.Policies == nil || a.Device != nil && p.MaySee(a.Device.PolicyID)
}

// Asset is the reference as the caller gave it.
func (t Target) Asset() string { return t.AssetID }
