package event

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/resource"
)

// Topic is that of hints that events got their positions; ids are companies.
const Topic = "events"

// Query asks for events of a company after a position and up to another.
type Query struct {
	CompanyID   string
	After, Upto int64
	Limit       int
	See         Sight
	Types       []Type   // of these alone; nil: of any
	Asset       string   // of this one alone; empty: of any
	Except      []string // assets whose events are left out
}

// Sight is what a caller may see.
type Sight struct {
	All      bool // every type: of a webhook
	Devices  bool
	Policies bool
	Only     []string // policies; nil: of any
	Owner    string   // whose proposals
	// Proposals: with Policies, those of everyone. Company: what is about the company as a
	// whole, such as its keys and controls. Both are for mail to people.
	Proposals, Company bool
}

// Shows reports whether there may be events of a type to see.
func (s Sight) Shows(t Type) bool {
	switch t.Area() {
	case "device", "command":
		return s.All || s.Devices
	case "policy", "proposal":
		return s.All || s.Policies
	}
	return s.All || s.Company
}

// SightOf is what a caller may see now.
func SightOf(p access.Principal) Sight {
	return Sight{Devices: p.Permissions.Has(access.DevicesRead), Policies: p.Permissions.Has(access.PoliciesRead), Only: p.Policies,
		Owner: OwnerOf(p.Kind, p.ID, p.UserID)}
}

// Store reads events. Each method fails as the database does.
type Store interface {
	// EventHead returns the newest and the oldest position of a company; zeros if it has no
	// events.
	EventHead(ctx context.Context, companyID string) (Head, error)
	// Events returns events in the order of their positions.
	Events(ctx context.Context, q Query) ([]Event, error)
	// ControlVersions returns the versions of companies' controls.
	ControlVersions(ctx context.Context, companies []string) (map[string]int64, error)
}

// Limits of reading.
const (
	maxLooked = 10_000 // positions that one call looks through
	// lookAgain is how often a replica looks whether callers who wait may still do so.
	lookAgain = time.Second
	// waitersOf is how many calls of one key or connection may wait on a replica.
	waitersOf = 16
)

// Feed answers what happened, and lets callers wait for it.
type Feed struct {
	Store Store
	// Stands returns an error if the permit of the context is no longer valid.
	Stands func(ctx context.Context) error
	// Waiters is how many calls may wait at a time.
	Waiters int

	mu      sync.Mutex
	waiting map[*waiter]struct{}
	closed  bool
}

// waiter is a call that waits.
type waiter struct {
	company, caller string
	wake            chan struct{} // of capacity one
}

// Args are the arguments of list_events.
type Args struct {
	After string `query:"after" doc:"next of the answer before, or latest for what happens from now on. Without it: from the oldest event that is kept."`
	Limit int    `query:"limit" rule:"min=1 max=1000 default=100" doc:"How many events at most."`
}

// WaitArgs are those of REST, whose calls may wait.
type WaitArgs struct {
	Args
	Wait int `query:"wait" rule:"min=0 max=60 default=0" only:"REST" doc:"Seconds to wait if nothing has happened yet, at most 60. The answer comes as soon as something has."`
}

// Page is the result of list_events.
type Page struct {
	Events []View `json:"events" doc:"In their order; an event is never before one that was shown earlier."`
	Next   string `json:"next" doc:"Give it as after in the next call."`
}

// Define declares the operation.
func Define(r *operation.Registry, f *Feed) {
	operation.Define(r, operation.Operation{
		Name: "list_events", Title: "List events", Method: "GET", Path: "/events",
		Description: "Lists what happened in the company, in order: devices that enrolled, were lost, fell silent or left; commands that " +
			"ended; policies that changed; what became of your own proposals. Only what you may read is in it. Events are kept for 30 " +
			"days unless the company says otherwise. Go on with next of the answer; it is there also when there are no events.",
		Dialect: operation.Reads, Effect: operation.Reading, Open: true, Waits: true,
		Samples: []any{Page{Events: []View{Sample(CommandSucceeded)}, Next: "q3mQ0tV8mVd4KgE"}},
		Faults:  []fault.Code{fault.CursorExpired, fault.Unavailable},
	}, f.List)
}

// List answers GET /events. A call whose caller's rights changed while it waited is answered
// by the rights of now, and does not wait once more.
func (f *Feed) List(ctx context.Context, call operation.Call, args WaitArgs) (Page, error) {
	if permit := access.PermitOf(ctx); args.Wait == 0 || permit != nil && permit.Moves() > 0 {
		page, _, err := f.read(ctx, call.Principal, args.Args)
		return page, err
	}
	w, err := f.enter(call.Principal)
	if err != nil {
		return Page{}, err
	}
	defer f.leave(w)
	deadline := time.NewTimer(time.Duration(args.Wait) * time.Second)
	defer deadline.Stop()
	for {
		page, after, err := f.read(ctx, call.Principal, args.Args)
		if err != nil || len(page.Events) > 0 {
			return page, err
		}
		if args.After = page.Next; after == "" {
			continue
		}
		select {
		case _, open := <-w.wake:
			if !open {
				return page, f.Stands(ctx)
			}
		case <-deadline.C:
			return page, f.Stands(ctx)
		case <-ctx.Done():
			return page, nil // the caller has gone
		}
		if err := f.Stands(ctx); err != nil {
			return Page{}, err
		}
	}
}

// read answers what there is now. looked is empty if there may be more to look through.
func (f *Feed) read(ctx context.Context, p access.Principal, args Args) (page Page, looked string, err error) {
	head, err := f.Store.EventHead(ctx, p.CompanyID)
	if err != nil {
		return Page{}, "", err
	}
	after, err := head.Position(p.CompanyID, args.After)
	if err != nil {
		return Page{}, "", err
	}
	upto := min(head.Last, after+maxLooked)
	page.Events = []View{}
	if see := SightOf(p); upto > after {
		found, err := f.Store.Events(ctx, Query{CompanyID: p.CompanyID, After: after, Upto: upto, Limit: args.Limit, See: see})
		if err != nil {
			return Page{}, "", err
		}
		for _, e := range found {
			if e.Owner != see.Owner { // a failed policy names a proposal that is another's
				e.ProposalID = ""
			}
			page.Events = append(page.Events, e.View(p.CompanySlug))
		}
		if len(found) == args.Limit {
			upto = found[len(found)-1].Position
		}
	}
	page.Next = head.Cursor(p.CompanyID, upto)
	if upto == head.Last {
		looked = page.Next
	}
	return page, looked, nil
}

// View is the event as callers of a company see it.
func (e Event) View(slug string) View {
	of := func(c resource.Collection, id string) string {
		if id == "" {
			return ""
		}
		return resource.Of(slug, c, id)
	}
	request := e.RequestID
	if strings.HasPrefix(request, "job/") { // the service's own act
		request = ""
	}
	return View{ID: e.ID, Type: e.Type, At: e.At.UTC(),
		Data: Data{AssetID: of(resource.Assets, e.AssetID), PolicyID: of(resource.Policies, e.PolicyID),
			ProposalID: e.ProposalID, Type: e.Command, Status: e.Status, RequestID: request}}
}
