package activity

import (
	"context"
	"time"

	"github.com/musterhq/muster/internal/access"
)

// Filter chooses entries of one company. Zero members do not filter.
type Filter struct {
	CompanyID string
	Actor     access.Kind
	ActorID   string
	Area      string
	Action    Action
	Actions   []Action // one of them; empty: any
	Text      string   // words that the names of the actor and the target have, in any case
	AssetID   string   // a device
	TargetID  string   // anything else
	Outcome   Outcome
	From, To  time.Time // From included, To not
	// Once leaves out the second entry of a command, which records that it failed
	// or is unconfirmed: the first has the command's state of now. A filter by
	// Outcome finds second entries all the same. The version that a proposal saved is
	// left out, too: the entry of the proposal has it. So are the entries of a job's
	// devices, but of AssetID.
	Once bool
	// Limit shows a user who is limited to some policies only what concerns
	// these, their devices, and the user; nil: everything.
	Limit *Limit
}

// Limit is whose eyes a list is for.
type Limit struct {
	UserID   string
	Policies []string // ids
}

// Cursor is a place between two entries; zero: before the newest.
type Cursor struct {
	At time.Time
	ID string
}

// Of is the cursor just after an entry.
func Of(e Entry) Cursor { return Cursor{At: e.At, ID: e.ID} }

// MaxPage is how many entries one page has at most.
const MaxPage = 200

// Bucket counts the entries of one stretch of time.
type Bucket struct {
	From  time.Time
	Count int64
}

// Store reads the record.
type Store interface {
	Recorder
	ChainExporter
	// Activity returns up to limit entries after the cursor, newest first.
	Activity(ctx context.Context, f Filter, after Cursor, limit int) ([]Entry, error)
	// ActivityEntry returns one entry; fault.NotFound if the company has none such.
	ActivityEntry(ctx context.Context, companyID string, at time.Time, id string) (Entry, error)
	// ActivityDensity counts the filter's entries in stretches of width from
	// f.From on; stretches without any are left out.
	ActivityDensity(ctx context.Context, f Filter, width time.Duration) ([]Bucket, error)
}
