package frame

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/approval/attention"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/surface/web"
)

// Frame is what every page has in common, and needs.
type Frame struct {
	Registry *operation.Registry
	// Own are operations that the portal alone has.
	Own    *operation.Registry
	Kernel *operation.Kernel
	// Stands returns access.ErrMoved if what the caller may do has changed since the request was let in (access.Permit): a
	// form that has changed nothing is then served once more from the start.
	Stands    func(ctx context.Context) error
	Companies company.Store
	Users     account.UserStore
	Sessions  web.Sessions
	Sealer    access.Sealer // of notices in cookies
	PublicURL string        // without a slash at the end
	Hub       *Hub
	// Attention finds what waits for people: at most attention.Limit items of each kind, the oldest first.
	Attention func(ctx context.Context, q attention.Query) ([]attention.Item, error)
	// Activity is that of activity.Store.
	Activity func(ctx context.Context, f activity.Filter, after activity.Cursor, limit int) ([]activity.Entry, error)
	// Trouble returns what is wrong with a company's enterprise at the platform.
	Trouble func(ctx context.Context, companyID string) (company.Trouble, error)
	Now     func() time.Time
	Log     *slog.Logger
}

// Handler serves one page, fragment or action. An error becomes a page, or a
// notice for a fragment, with the request's id.
type Handler func(v *Visit) error

// On serves what find finds, such as the device of the address. An error of find is the answer.
func On[T any](find func(v *Visit) (T, error), serve func(v *Visit, found T) error) Handler {
	return func(v *Visit) error {
		found, err := find(v)
		if err != nil {
			return err
		}
		return serve(v, found)
	}
}

// Route is one address of the portal.
type Route struct {
	Pattern string        // as http.ServeMux has it, with its method
	Needs   account.Right // without it: the page that says who can grant it; 0: every signed-in user
	Serve   Handler
	// Query are parameters of the address with their choices; nil: a whole number of at least 0, such as a time
	// in milliseconds, which is then one of Visit.Numbers. Another value is refused: a page that left it out would
	// say that it shows what was asked for.
	Query map[string][]string
	// DuringStop: the route takes changes also while changes in the portal are stopped.
	DuringStop bool
	Proof      Proof            // of who the person is, if it takes one
	Guest      http.HandlerFunc // answers without a session; nil: sign in first
	// Upload, if not nil, reads a form with files, which may be larger than others. It is
	// called after the person was let in, and once: what it returns is Visit.Uploaded, also
	// of a visit that is made once more.
	Upload func(v *Visit) any
}

// Proof says that an address takes a fresh proof of who the person is: without one nothing
// is done, and the person gives it first. The zero value takes none.
type Proof struct {
	Then string // what the person can do then, such as "add a passkey"; empty: no proof
	// Next is the page where they can; {name} in it is the value of the path or the form.
	Next string
	// If reports whether this request takes a proof; nil: every one does.
	If func(v *Visit) (bool, error)
}

// ProofHeader marks a request that asks, with the whole form, whether it takes a proof.
// Nothing is done: the answer is 204, or 403 with the header if a proof is missing. The
// page's script asks so before it sends a form, so that what was typed stays in the page.
const ProofHeader = "Muster-Proof"

// userHeader names whose session answers. A page that another person's answers does not go on.
const userHeader = "Muster-User"

// Mount adds routes.
func (f *Frame) Mount(mux *http.ServeMux, routes []Route) {
	for _, route := range routes {
		mux.Handle(route.Pattern, f.admitted(route))
	}
	mux.Handle("GET "+LivePath, f.admitted(Route{Serve: f.live}))
	mux.Handle("GET "+AttentionCountPath, f.admitted(Route{Serve: f.count}))
	mux.HandleFunc("/", f.missing)
}

// missing answers unknown addresses with 404 for all clients, so that
// programs which look for a well-known document are not sent to sign in.
func (f *Frame) missing(w http.ResponseWriter, r *http.Request) {
	if _, ok, err := f.Sessions.Person(r); err == nil && ok {
		f.admitted(Route{Serve: func(*Visit) error { return fault.New(fault.NotFound, "Check the address, or search with ⌘K.") }}).
			ServeHTTP(w, r)
		return
	}
	web.Answer(w, r, f.Log, http.StatusNotFound, web.Notice("Page not found", "Check the address, or start at "+f.PublicURL+".", ""))
}

// serve serves a route, or refuses a visit: by right, address, stop, form, and a proof of who the person is, in this order.
func (f *Frame) serve(v *Visit, route Route) (err error) {
	if v.Company, err = f.Companies.CompanyByID(v.Context(), v.Principal.CompanyID); err != nil {
		return err
	}
	if err := v.Require(route.Needs); err != nil {
		return err
	}
	if err := v.readQuery(route.Query); err != nil {
		return err
	}
	if err := v.admitChange(route); err != nil {
		return err
	}
	unproved, err := v.unproved(route.Proof)
	switch {
	case err != nil:
		return err
	case v.r.Header.Get(ProofHeader) != "":
		v.tell(unproved)
		return nil
	case unproved:
		return v.askProof(route.Proof)
	}
	return route.Serve(v)
}

// admitChange refuses what changes something while changes are stopped. Of a form it reads what was typed, and, unless
// it is served once more, looks whether the person may still do what they could when they were let in.
func (v *Visit) admitChange(route Route) error {
	method := v.r.Method
	if !route.DuringStop && method != http.MethodGet && method != http.MethodHead {
		if err := v.Running(); err != nil {
			return err
		}
	}
	if method != http.MethodPost {
		return nil
	}
	if err := v.receive(route); err != nil || v.second {
		return err
	}
	return v.stillIn()
}

// broken answers when the session cannot even be read.
func (f *Frame) broken(w http.ResponseWriter, r *http.Request, err error) {
	v := f.visit(w, r)
	f.Log.ErrorContext(r.Context(), "cannot read the session", "request_id", v.RequestID, "error", err)
	web.Answer(w, r, f.Log, http.StatusServiceUnavailable,
		web.Notice("Muster cannot be reached just now", "Its database does not answer. Try again in a moment.", v.RequestID))
}
