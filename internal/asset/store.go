package asset

import (
	"context"

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
