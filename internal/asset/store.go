package asset

import (
	"context"
	"time"

	"github.com/musterhq/muster/internal/operation"
)

// Filter narrows a list. Zero members do not filter. Of the members below Archived,
// those about a device find only managed devices that reported what is asked of.
type Filter struct {
	CompanyID string
	Status    Status
	PolicyID  string
	// Enrolled leaves only what is managed now: ACTIVE, INACTIVE, SYNCHRONIZING.
	Enrolled bool
	// Policies limits the list to devices of these policies; nil: no limit.
	Policies []string
	// Archived finds archived assets alone, which no other filter finds.
	Archived bool
	// ID finds one asset.
	ID string

	// Text is words: runs of letters and digits, in any order. Each must begin a
	// word of the asset's identification, serial number, IMEI, model, tags or
	// assigned user; letters' case does not matter. A text without a word finds
	// nothing.
	Text string
	// Serial is a whole serial number; letters' case does not matter. Empty, or one that
	// identifies nothing (IdentityKey): all assets.
	Serial string
	// Tags are whole tags, to the letter; an asset has all of them.
	Tags []string
	// Management is of managed devices.
	Management Management
	// SeenBefore and SeenAfter find devices that were last heard of before, or
	// after, a time.
	SeenBefore, SeenAfter time.Time
	// PatchBefore finds devices whose security patch level is older than a day,
	// such as "2026-10-01"; PatchMonth those of a month, such as "2026-10", or with
	// NoPatch those that reported none.
	PatchBefore, PatchMonth string
	// BatteryBelow is in percent.
	BatteryBelow int
	// App finds devices that have an app installed, by package; with AppBelow,
	// whose version code is lower than that.
	App      string
	AppBelow *int64
	// PolicyBehind is whether the policy's version that a device applied is below
	// its policy's.
	PolicyBehind *bool
	// Compliant is whether a device says that it follows its policy.
	Compliant *bool
	// Lost is whether a device is in lost mode.
	Lost *bool
	// Messages is whether a device can be sent messages: it can be woken, and is
	// managed by our own agent or, if Companions, by the platform.
	Messages   *bool
	Companions bool
	// LocatedSince finds devices that told their place at a time or later, of the
	// last TrailPeriod; Unlocated those of which no place is known.
	LocatedSince time.Time
	Unlocated    bool
	// EnrolledSince finds managed devices that were enrolled at a time or later.
	EnrolledSince time.Time
}

// NoPatch stands for the month of a security patch level that was not reported.
const NoPatch = "none"

// Order is a sort field of the list.
type Order string

// The sort fields (contract 4.1); ties are ordered by id.
const (
	BySyncedAt       Order = "syncedAt"
	ByIdentification Order = "identification"
	ByStatus         Order = "status"
	ByCreatedAt      Order = "createdAt"
	ByLastSeenAt     Order = "lastSeenAt" // assets without a managed device come last in both directions
)

// Query asks for one page.
type Query struct {
	Filter
	Page       operation.PageRequest
	Order      Order
	Descending bool
	// Uncounted leaves out the total, which takes time if many assets meet more than
	// a status and a policy.
	Uncounted bool
}

// Store keeps assets. Every method is bound to one company: an id of another
// is fault.NotFound.
type Store interface {
	// Asset returns an asset of the company, or fault.NotFound.
	Asset(ctx context.Context, companyID, id string) (Asset, error)
	// Assets returns one page and the exact total. What has no condition beyond
	// status and policy is counted by kept counters.
	Assets(ctx context.Context, q Query) ([]Asset, int64, error)
	// CountAssets counts the assets that meet a filter.
	CountAssets(ctx context.Context, f Filter) (int64, error)
	// AssetIDs returns the ids of all assets that meet a filter, in order.
	AssetIDs(ctx context.Context, f Filter, o Order, descending bool) ([]string, error)
	// AssetsByID reads those of some assets that are the company's, in the order of the ids.
	AssetsByID(ctx context.Context, companyID string, ids []string) ([]Asset, error)
	// ImportAssets adds assets that are not enrolled, all or none; fault.Refused if one with an id
	// of theirs exists.
	ImportAssets(ctx context.Context, assets []Asset) error
	// Import brings lines into a company's inventory, all or none: a line changes the
	// asset that it means, which an archived one restores, or makes one that is not
	// enrolled. A line with a serial number means the asset with that number, of several
	// the managed one; another line the asset without a number that has its
	// identification. It fails with fault.NotFound without the company, and with
	// fault.Unavailable if it waited ten minutes for other imports; what is wrong with a line is
	// in Imported.Errors.
	Import(ctx context.Context, companyID string, lines []Line, o ImportOptions) (Imported, error)
}
