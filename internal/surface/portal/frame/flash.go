package frame

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/surface/edge"
)

// Flash is a notice that the next page shows once. It never holds a secret:
// it travels in a cookie.
type Flash struct {
	Tone      Tone   `json:"t"`
	Text      string `json:"x"`
	Link      string `json:"l,omitempty"` // a path of the portal
	LinkText  string `json:"n,omitempty"`
	RequestID string `json:"i,omitempty"`
}

// Tone says how a state is meant; it is never shown by color alone.
type Tone string

// The tones.
const (
	Idle Tone = "idle"
	OK   Tone = "ok"
	Warn Tone = "warn"
	Bad  Tone = "bad"
)

// GateState is how it stands with a setting that lets programs act. One that lets them
// destroy is marked while it is on; that the others are on is neither good nor bad.
func GateState(on, destroys bool) (Tone, string) {
	return Either(on && destroys, Warn, Idle), Either(on, "On", "Off")
}

// Done is the flash of something that worked.
func Done(text string) Flash { return Flash{Tone: OK, Text: text} }

// Failed is the flash of a fault; v gives it the request's id.
func (v *Visit) Failed(err error) Flash {
	_, p := v.explain(err)
	return Flash{Tone: Bad, Text: cmp.Or(p.Text, p.Title), RequestID: v.RequestID}
}

// Fields are a fault's fields by their names, to be shown at the inputs.
func Fields(err error) map[string]string {
	fields := map[string]string{}
	for _, f := range fault.From(err).Fields {
		fields[f.Field] = f.Message
	}
	return fields
}

const (
	// flashCookie holds notices, sealed for the user: another host of the domain cannot put one on a page.
	flashCookie = "-flash"
	maxFlash    = 3500 // bytes of cookie
	flashAge    = time.Minute
)

func (v *Visit) flashPurpose() string { return "notice for user " + v.User.ID }

func (v *Visit) keep(flashes []Flash) {
	if len(flashes) == 0 {
		return
	}
	text, err := json.Marshal(flashes)
	value := base64.RawURLEncoding.EncodeToString(v.frame.Sealer.Seal(v.flashPurpose(), text))
	if err != nil || len(value) > maxFlash {
		return
	}
	v.frame.Sessions.SetCookie(v.w, flashCookie, value, flashAge)
}

// takeFlashes reads the flashes of the page before and drops them.
func (v *Visit) takeFlashes() {
	cookie, err := v.r.Cookie(v.frame.Sessions.Cookie(flashCookie))
	if err != nil {
		return
	}
	v.frame.Sessions.SetCookie(v.w, flashCookie, "", -time.Second)
	text, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	if err == nil {
		text, err = v.frame.Sealer.Open(v.flashPurpose(), text)
	}
	if err == nil {
		err = json.Unmarshal(text, &v.flashes)
	}
	if err != nil || len(v.flashes) > 5 {
		v.flashes = nil
	}
}

// fail answers an error: with a whole page; or, for a part of a page, with a
// notice that leaves the page, and its last good data, as they are. The script shows
// each text once. It takes the name of the notices for the sign that the service
// answered, and no proxy: after 403 it removes the part that was asked for.
func (v *Visit) fail(err error) {
	code, problem := v.explain(err)
	if v.scripted() {
		h := v.w.Header()
		h.Set("HX-Retarget", "#notices")
		h.Set("HX-Reswap", "beforeend")
		v.answer(v.FragmentStatus(code, notice(problem)))
		return
	}
	v.answer(v.ShowStatus(code, problem.Title, "", problemPage(problem)))
}

func (v *Visit) answer(err error) {
	if err != nil {
		v.frame.Log.ErrorContext(v.Context(), "cannot render", "request_id", v.RequestID, "error", err)
	}
}

// Problem is what went wrong, for people.
type Problem struct {
	Title, Text string
	RequestID   string
	Retry       string // where to try again; empty: there is no point
	All         string // the list whose filter is wrong
	Right       string // the missing right
	Granters    string // who can grant it
}

// explain turns an error into a text and a status. An unexpected error is
// logged, and shown with the request's id alone.
func (v *Visit) explain(err error) (int, Problem) {
	if d, ok := errors.AsType[*Denied](err); ok {
		return http.StatusForbidden, Problem{Title: "You may not see this", RequestID: v.RequestID,
			Right: d.Right.Words(), Granters: v.Granters()}
	}
	f := fault.From(err)
	p := Problem{Title: titleOf(f.Code), Text: Sentence(f.Detail), RequestID: v.RequestID}
	switch f.Code {
	case fault.NotFound:
		p.Text = Sentence(withoutAPI(f.Detail))
	case fault.Internal:
		p.Text = "This is a fault of ours, and it has been noted. Nothing that you see here is lost."
		v.frame.Log.ErrorContext(v.Context(), "a page failed", "request_id", v.RequestID, "path", v.r.URL.Path,
			"user", v.User.ID, "error", err)
	case fault.Forbidden:
		if errors.Is(err, access.ErrStopped) {
			p.Title = "Changes are stopped" // no right helps
		} else {
			p.Granters = v.Granters()
		}
	default: // its own words are enough
	}
	switch {
	case errors.Is(err, errQuery):
		p.All = strings.TrimSuffix(v.r.URL.Path, "/export")
	case v.r.Method == http.MethodGet && f.Code != fault.NotFound && f.Code != fault.InvalidArguments:
		p.Retry = v.r.URL.RequestURI()
	}
	return edge.Status(f.Code), p
}

// apiWords are names of tools and members: list_logs, pathName.
var apiWords = regexp.MustCompile(`[a-z](_[a-z]|[A-Z])`)

// withoutAPI leaves out the advice of a detail that is for callers of the API.
func withoutAPI(detail string) string {
	if text, advice, _ := strings.Cut(detail, ": "); apiWords.MatchString(advice) {
		return text
	}
	return detail
}

func titleOf(code fault.Code) string {
	const refused = "It was refused"
	return cmp.Or(map[fault.Code]string{
		fault.NotFound: "Page not found", fault.Forbidden: "You may not do this", fault.InvalidArguments: "Check your entries",
		fault.RateLimited: "Too much at once", fault.Unsupported: "This cannot be done here",
		fault.Refused: refused, fault.StaleProposal: refused, fault.NotPending: refused, fault.ConfirmationRequired: refused,
		fault.Provider: "The platform did not do it", fault.Unavailable: "It was not sent",
	}[code], "Something went wrong here")
}
