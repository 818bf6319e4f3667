package asset

import (
	"context"
	"time"

	"github.com/musterhq/muster/internal/operation"
)

// Filter narrows a list. Zero members do not filter.
type Filter struct {
	CompanyID string
	Status    Status
	PolicyID  string
	// Enrolled leaves only what is managed now: ACTIVE, INACTIVE, SYNCHRONIZING.
	Enrolled bool
	// Policies limits the list to devices of these policies; nil: no limit.
	Policies []string
}

// Order is a sort field of the list.
type Order string

// The sort fields (contract 4.1); ties are ordered by id.
const (
	BySyncedAt       Order = "syncedAt"
	ByIdentification Order = "identification"
	ByStatus         Order = "status"
	ByCreatedAt      Order = "createdAt"
)

// Query asks for one page.
type Query struct {
	Filter
	Page       operation.PageRequest
	Order      Order
	Descending bool
}

// Store keeps assets. Every method is bound to one company: an id of another
// is fault.NotFound.
type Store interface {
	Asset(ctx context.Context, companyID, id string) (Asset, error)
	// Assets returns one page and the total, which comes from kept counters.
	Assets(ctx context.Context, q Query) ([]Asset, int64, error)
	CountAssets(ctx context.Context, f Filter) (int64, error)
	// ImportAssets adds assets that are not enrolled, all or none.
	ImportAssets(ctx context.Context, assets []Asset) error
}

// Search asks for the assets that a person looks for: what a console's list of
// devices needs beyond the public list. It is served in bounded time however
// many assets there are: what is rare is found through an index, and what is
// common is met soon on a walk along the order. A walk that has gone far
// without filling its page stops, and says where to go on.
type Search struct {
	Filter
	// Text is words, in any order. Each must begin a word of the asset's
	// identification, serial number, model, manufacturer, brand, tags or device
	// name; letters' case does not matter, and a word may begin after any
	// punctuation ("g991" finds "SM-G991B"). A word with a leading # begins a
	// whole tag. An asset's id or path name finds that asset. Words beyond the
	// eighth do not count.
	Text string
	// Tag is one whole tag, whatever the case.
	Tag string
	// Management is of enrolled devices.
	Management Management
	// QuietSince finds enrolled devices that were last heard of before it.
	QuietSince time.Time
	// HeardSince finds enrolled devices that were heard of at it or later.
	HeardSince time.Time
	// LocatedSince finds enrolled devices that told their place at it or later,
	// of the last PlacesKept.
	LocatedSince time.Time
	// Unlocated finds enrolled devices of which no place is known.
	Unlocated bool
	// Lost finds enrolled devices in lost mode.
	Lost bool

	Order      Order
	Descending bool
	// Size is how many assets to return at most: 1 to 1000; 0 means 20.
	Size int
	// After is the Next of a search that was the same but for After and Size;
	// empty: from the start.
	After string
}

// Found is what a search found.
type Found struct {
	// Assets may be fewer than the page takes although Next is set: the search
	// had gone far enough for one call.
	Assets []Asset
	// Next is where to go on; empty: there is nothing more.
	Next string
	// Total is how many assets match; Uncounted if they are too many to count.
	Total int64
}

// Uncounted is the Total of a search whose matches are too many to count.
const Uncounted int64 = -1
