package frame

import (
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

// Tone says how a state is meant; it is never told by colour alone.
type Tone string

// The tones.
const (
	Idle Tone = "idle"
	OK   Tone = "ok"
	Warn Tone = "warn"
	Bad  Tone = "bad"
)

// Done is the flash of something that worked.
func Done(text string) Flash { return Flash{Tone: OK, Text: text} }

// Failed is the flash of a fault; v gives it the request's id.
func (v *Visit) Failed(err error) Flash {
	_, p := v.explain(err)
	text := p.Text
	if text == "" {
		text = p.Title
	}
	return Flash{Tone: Bad, Text: text, RequestID: v.RequestID}
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
	flashCookie = "muster-flash"
	maxFlash    = 3000 // bytes of cookie
	flashAge    = 60   // seconds
)

func (v *Visit) keep(flashes []Flash) {
	if len(flashes) == 0 {
		return
	}
	text, err := json.Marshal(flashes)
	value := base64.RawURLEncoding.EncodeToString(text)
	if err != nil || len(value) > maxFlash {
		return
	}
	http.SetCookie(v.w, &http.Cookie{Name: flashCookie, Value: value, Path: "/", MaxAge: flashAge, HttpOnly: true,
		Secure: v.frame.Sessions.Secure, SameSite: http.SameSiteLaxMode})
}

// takeFlashes reads the flashes of the page before and drops them.
func (v *Visit) takeFlashes() {
	cookie, err := v.r.Cookie(flashCookie)
	if err != nil {
		return
	}
	http.SetCookie(v.w, &http.Cookie{Name: flashCookie, Path: "/", MaxAge: -1, HttpOnly: true,
		Secure: v.frame.Sessions.Secure, SameSite: http.SameSiteLaxMode})
	text, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	if err == nil {
		err = json.Unmarshal(text, &v.flashes)
	}
	if err != nil || len(v.flashes) > 5 {
		v.flashes = nil
	}
}
