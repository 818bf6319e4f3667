package asset

import "time"

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
