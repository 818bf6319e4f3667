package activity

import (
	"context"
	"time"

	"github.com/musterhq/muster/internal/access"
)

// Filter selects entries of one company that meet all its conditions. A zero field, but CompanyID, is
// no condition.
type Filter struct {
	CompanyID string
	Actor     access.Kind
	ActorID   string
	Area      string // the first part of an action's name, such as "command"
	Action    Action
	Actions   []Action  // any of them
	Text      string    // words, each part of the actor's or the target's name, in any case
	AssetID   string    // the target is this asset
	TargetID  string    // the target has this id
	Outcome   Outcome   // the outcome that was recorded
	From, To  time.Time // From included, To not
	// Once leaves out entries that repeat others: the entry that a command failed or is unconfirmed,
	// as its first entry shows the command's present state, unless Outcome is set; the version that
	// a proposal saved; and the entries of a job's devices, unless AssetID or Text is set.
	Once bool
	// Limit is for a user who is limited to some policies: their entries, and those whose target is one
	// of the policies or a device that has one. Its zero value: all entries.
	Limit Limit
}

// Limit is a user and the policies that the user is limited to.
type Limit struct {
	UserID   string
	Policies []string // ids; nil: the user is not limited
}

// Cursor is a position in the entries, newest first: after the entry with the time and the id. The zero
// value is before the newest.
type Cursor struct {
	At time.Time
	ID string
}

// Of is the cursor after an entry.
func Of(e Entry) Cursor { return Cursor{At: e.At, ID: e.ID} }

// MaxPage is the largest number of entries of one page.
const MaxPage = 200

// Bucket counts the entries of one interval.
type Bucket struct {
	From  time.Time
	Count int64
}

// Store records entries and reads them. Each method fails as the database does.
type Store interface {
	Recorder
	// ExportActivity shows a company's entries from the place of the first one since a
	// time on, newest first, those without a place yet before them; then the head and the
	// hash before the last that was shown; all of one moment.
	ExportActivity(ctx context.Context, companyID string, since time.Time, entry func(Entry) error, head func(h Head,
		before string) error) error
	// Activity returns up to limit entries after the cursor, newest first.
	Activity(ctx context.Context, f Filter, after Cursor, limit int) ([]Entry, error)
	// ActivityDensity counts the filter's entries in intervals of width, at least one
	// millisecond, from f.From on. It leaves out intervals without entries.
	ActivityDensity(ctx context.Context, f Filter, width time.Duration) ([]Bucket, error)
}
