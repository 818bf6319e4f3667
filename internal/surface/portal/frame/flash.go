package frame

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/http"

	"github.com/musterhq/muster/internal/fault"
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
	switch {
	case on && destroys:
		return Warn, "On"
	case on:
		return Idle, "On"
	}
	return Idle, "Off"
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
	if err == nil {
		return fields
	}
	for _, f := range fault.From(err).Fields {
		fields[f.Field] = f.Message
	}
	return fields
}

const (
	maxFlash = 3500 // bytes of cookie
	flashAge = 60   // seconds
)

// flashCookie is bound to this host where the browser can do that, and sealed
// for the session: another host of the domain cannot put a notice on a page.
func (v *Visit) flashCookie() string {
	if v.frame.Sessions.Secure {
		return "__Host-muster-flash"
	}
	return "muster-flash"
}

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
	v.setFlash(value, flashAge)
}

func (v *Visit) setFlash(value string, age int) {
	http.SetCookie(v.w, &http.Cookie{Name: v.flashCookie(), Value: value, Path: "/", MaxAge: age, HttpOnly: true,
		Secure: v.frame.Sessions.Secure, SameSite: http.SameSiteLaxMode})
}

// takeFlashes reads the flashes of the page before and drops them.
func (v *Visit) takeFlashes() {
	cookie, err := v.r.Cookie(v.flashCookie())
	if err != nil {
		return
	}
	v.setFlash("", -1)
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
