package frame

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/approval/attention"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/signature"
	"github.com/musterhq/muster/internal/surface/web"
)

// Visit is one request of a signed-in person. It knows who they are and what
// they may do; whatever is read or done for them goes through it.
type Visit struct {
	web.Person
	Company   company.Company
	RequestID string
	Now       time.Time
	PublicURL string
	Mark      string           // what the hub had heard when the visit began
	Numbers   map[string]int64 // of the address, that Route.Query names; 0: it is not given
	Form      url.Values       // what was posted
	Uploaded  any              // what Route.Upload read; nil: it was not called

	frame   *Frame
	w       http.ResponseWriter
	r       *http.Request
	flashes []Flash

	attention []attention.Item // once it was read
	granters  string           // once they were looked for
	second    bool             // the visit is made once more
}

func (f *Frame) visit(w http.ResponseWriter, r *http.Request) *Visit {
	v := &Visit{Person: web.From(r.Context()), RequestID: resource.NewID(), Now: f.Now(), PublicURL: f.PublicURL,
		Mark: f.Hub.Mark(), frame: f, w: w}
	v.r = r.WithContext(access.WithActor(r.Context(), v.Principal.Actor(), v.RequestID))
	return v
}

// unproved reports whether the request takes a proof that the person has not given lately.
func (v *Visit) unproved(p Proof) (bool, error) {
	switch {
	case p.Then == "" || v.Session.Fresh(v.Now):
		return false, nil
	case p.If == nil:
		return true, nil
	}
	return p.If(v)
}

// tell answers a request that asks whether a proof is missing.
func (v *Visit) tell(unproved bool) {
	if !unproved {
		v.w.WriteHeader(http.StatusNoContent)
		return
	}
	v.w.Header().Set(ProofHeader, "missing")
	v.w.WriteHeader(http.StatusForbidden)
}

// askProof sends the person to prove who they are. Then they come to the page where they
// can do what they wanted; what they typed is not kept.
func (v *Visit) askProof(p Proof) error {
	next := pathValues.ReplaceAllStringFunc(p.Next, func(name string) string {
		name = strings.Trim(name, "{}")
		return cmp.Or(url.PathEscape(v.PathValue(name)), url.QueryEscape(v.r.FormValue(name)))
	})
	return v.Redirect(web.ProveAddress(next), Flash{Tone: Warn, Text: "Confirm it's you, then " + p.Then + ". Nothing has changed yet."})
}

var pathValues = regexp.MustCompile(`\{[a-z]+\}`)

// Running returns fault.Forbidden while changes in the portal are stopped.
func (v *Visit) Running() error { return v.Principal.Settings.Stop.Refuses(access.User) }

// Context is the request's.
func (v *Visit) Context() context.Context { return v.r.Context() }

// Clock is the time now; Now is when the visit began.
func (v *Visit) Clock() time.Time { return v.frame.Now() }

// Request is the HTTP request.
func (v *Visit) Request() *http.Request { return v.r }

// Writer is for answers that are no page: downloads, streams.
func (v *Visit) Writer() http.ResponseWriter { return v.w }

// PathValue is a part of the path that the route's pattern names.
func (v *Visit) PathValue(key string) string { return v.r.PathValue(key) }

// Query is the address's query.
func (v *Visit) Query() url.Values { return v.r.URL.Query() }

// Parted are the tags or labels of a form's field, which commas part; never nil.
func Parted(text string) []string { return filled(strings.SplitSeq(text, ",")) }

// Lines are those of a form's field that are not blank, without the space around them; never nil.
func Lines(text string) []string { return filled(strings.Lines(text)) }

func filled(parts iter.Seq[string]) []string {
	all := []string{}
	for one := range parts {
		if one = strings.TrimSpace(one); one != "" {
			all = append(all, one)
		}
	}
	return all
}

// Partial reports whether a part of the page is asked for, by htmx, rather
// than a whole page.
func (v *Visit) Partial() bool { return v.r.Header.Get("Hx-Request-Type") == "partial" }

// scripted reports whether our own script asks.
func (v *Visit) scripted() bool { return v.r.Header.Get("Hx-Request") == "true" }

// May reports whether the person has the right.
func (v *Visit) May(right account.Right) bool { return v.User.Held().Has(right) }

// Require returns a Denied for a right that the person lacks.
func (v *Visit) Require(right account.Right) error {
	if missing := right &^ v.User.Held(); missing != 0 {
		return &Denied{Right: missing}
	}
	return nil
}

// Denied is the error of a page or action for which a right is missing.
type Denied struct{ Right account.Right }

// Error implements error.
func (d *Denied) Error() string { return "missing right: " + strings.Join(d.Right.Names(), ", ") }

// Granters are the names of the people who can grant rights, at most three, as the end of
// a sentence.
func (v *Visit) Granters() string {
	if v.granters == "" {
		v.granters = v.findGranters()
	}
	return v.granters
}

// Missing says which of some rights the person still needs for a control or a part that they may not
// use, and whom to ask for them.
func (v *Visit) Missing(rights account.Right) string {
	return missingText((rights &^ v.User.Held()).Words(), v.Granters())
}

func missingText(rights, granters string) string {
	return "You need the permission to " + rights + ". Ask " + granters + "."
}

func (v *Visit) findGranters() string {
	users, err := v.frame.Users.Users(v.Context(), v.Company.ID)
	if err != nil {
		return "an administrator"
	}
	users = slices.DeleteFunc(users, func(u account.User) bool {
		return u.Disabled || !u.Rights.Has(account.ManageUsers) || u.ID == v.User.ID
	})
	return cmp.Or(AnyOf(users, func(u account.User) string { return u.Name }), "an administrator")
}

// maxForm bounds a posted form, in bytes.
const maxForm = 2 << 20

// receive reads what was posted.
func (v *Visit) receive(route Route) error {
	media, _, _ := mime.ParseMediaType(v.r.Header.Get("Content-Type"))
	if route.Upload == nil || media != "multipart/form-data" || v.r.Header.Get(ProofHeader) != "" {
		return v.readForm()
	}
	if !v.second {
		v.Uploaded = route.Upload(v)
	}
	return nil
}

// readForm reads the posted form.
func (v *Visit) readForm() error {
	v.r.Body = http.MaxBytesReader(v.w, v.r.Body, maxForm)
	if err := v.r.ParseForm(); err != nil {
		return fault.Invalid("the form cannot be read").Because(err)
	}
	v.Form = v.r.PostForm
	return nil
}

// Run runs an operation of the registry as the person, with the arguments as
// one JSON object: rights, rules and budget are the same as for every other
// caller (contract 1.5). A fault is a *fault.Error.
//
// once, if not empty, is the form's OnceField: the same form sent twice runs a
// command once. The note is that of the form, if it has one: see NoteInputs.
func (v *Visit) Run(operationName string, args map[string]any, once string) (any, error) {
	o := cmp.Or(v.frame.Registry.Find(operationName), v.frame.Own.Find(operationName))
	if o == nil {
		return nil, fmt.Errorf("no operation %s", operationName)
	}
	text, err := json.Marshal(args)
	if err != nil {
		return nil, err
	}
	note, wrong := v.ReadNote()
	meta := operation.Meta{RequestID: v.RequestID, Note: note, Wrong: wrong}
	if once != "" {
		meta.IdempotencyRef = "portal:" + v.User.ID + ":" + once
	}
	// What was begun ends, also when the browser goes away.
	ctx := context.WithoutCancel(v.Context())
	out := v.frame.Kernel.Run(ctx, o, v.Principal, meta, operation.Flat(text))
	if out.Fault != nil {
		return nil, out.Fault
	}
	return out.Result, nil
}

// ReadNote is the note of the form, and what is wrong with it.
func (v *Visit) ReadNote() (access.Note, *fault.Error) {
	return operation.NoteFields{Reason: "Reason", Ticket: "Ticket"}.Read(v.Form.Get(reasonField), v.Form.Get(ticketField))
}

// The fields of a note. No argument of an operation has these names.
const (
	reasonField = "note-reason"
	ticketField = "note-ticket"
)

// wantsNote reports whether the company wants a reason for something from its API keys and
// AI clients, or one was typed in a form that is shown again: people are then offered to give one at once.
func (v *Visit) wantsNote(again bool) bool {
	rule := v.Company.Settings.Controls.RequireReason
	return v.noted(again, reasonField)+v.noted(again, ticketField) != "" || rule != "" && rule != access.ReasonNone
}

// noted is what was typed in a field of NoteInputs, if its form is shown again.
func (v *Visit) noted(again bool, field string) string { return Either(again, v.Form.Get(field), "") }

// OnceField is the hidden field of a form that must not act twice; its value
// is resource.NewID().
const OnceField = "once"

// Show answers with a whole page. active is the Path of its Section.
func (v *Visit) Show(title, active string, body templ.Component) error {
	return v.ShowStatus(http.StatusOK, title, active, body)
}

// ShowUnless is Show with what was read, unless that failed with err, which it returns.
func (v *Visit) ShowUnless(err error, title, active string, body templ.Component) error {
	if err != nil {
		return err
	}
	return v.Show(title, active, body)
}

// ShowStatus is Show with another status, such as for a form with mistakes.
func (v *Visit) ShowStatus(status int, title, active string, body templ.Component) error {
	v.takeFlashes()
	return v.FragmentStatus(status, page(v, title, active, body))
}

// ShowLive answers with a whole page, or with the part of it that keeps up to date where
// htmx asks for that.
func (v *Visit) ShowLive(title, active string, body, part templ.Component) error {
	if v.Partial() {
		return v.Fragment(part)
	}
	return v.Show(title, active, body)
}

// Fragment answers with a part of a page.
func (v *Visit) Fragment(part templ.Component) error { return v.FragmentStatus(http.StatusOK, part) }

// FragmentStatus is Fragment with another status. It renders first and answers then, so that a failure is still reported.
func (v *Visit) FragmentStatus(status int, part templ.Component) error {
	var buffer bytes.Buffer
	if err := part.Render(v.Context(), &buffer); err != nil {
		return err
	}
	h := v.w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Add("Vary", "Accept-Encoding, HX-Request-Type")
	if !strings.Contains(v.r.Header.Get("Accept-Encoding"), "gzip") {
		v.w.WriteHeader(status)
		_, _ = v.w.Write(buffer.Bytes()) // the browser has gone away: nothing to do
		return nil
	}
	h.Set("Content-Encoding", "gzip")
	v.w.WriteHeader(status)
	zip, err := gzip.NewWriterLevel(v.w, gzip.BestSpeed)
	if err != nil {
		return err
	}
	_, _ = zip.Write(buffer.Bytes())
	_ = zip.Close()
	return nil
}

// Redirect sends the browser to another page of the portal, which shows the
// flashes.
func (v *Visit) Redirect(to string, flashes ...Flash) error {
	v.keep(flashes)
	if v.scripted() {
		v.w.Header().Set("HX-Redirect", to)
		v.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	http.Redirect(v.w, v.r, to, http.StatusSeeOther)
	return nil
}

// Refused leads to a page that says why something was not done, if the error has one
// of the codes. Any other error is returned.
func (v *Visit) Refused(to string, err error, codes ...fault.Code) error {
	if slices.Contains(codes, fault.CodeOf(err)) {
		return v.Redirect(to, v.Failed(err))
	}
	return err
}

// Finish leads to a page that says what was done or, if the error has one of the codes, why it was not. Any
// other error is returned.
func (v *Visit) Finish(to string, err error, done string, codes ...fault.Code) error {
	if err != nil {
		return v.Refused(to, err, codes...)
	}
	return v.Redirect(to, Done(done))
}

// Download has the browser keep what is written next as a file.
func (v *Visit) Download(mediaType, name string) {
	h := v.w.Header()
	h.Set("Content-Type", mediaType)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Disposition", `attachment; filename="`+name+`"`)
}

// NewOnce is a fresh value for OnceField.
func NewOnce() string { return resource.NewID() }

// Note logs that a part of a page failed, while the rest is shown.
func (v *Visit) Note(part string, err error) {
	v.frame.Log.ErrorContext(v.Context(), "part of a page failed", "part", part, "request_id", v.RequestID, "path",
		v.r.URL.Path, "error", err)
}

// Signed reads a posted SignForm: the document that the person has signed, and the
// passkey that they signed it with. The other fields are in Form.
func (v *Visit) Signed(keys account.Passkeys) (signature.Signed, account.Passkey, error) {
	return keys.FinishSigning(v.Context(), v.User, v.Form.Get("token"), json.RawMessage(v.Form.Get("answer")))
}
