package platform

import (
	"html/template"
	"log/slog"
	"net/http"

	"github.com/musterhq/muster/internal/fault"
)

// CallbackPath is where the service mounts Callback.
const CallbackPath = "/connect/callback"

// callbackPage is all that a person sees of the way back from the vendor.
type callbackPage struct{ Title, Text string }

var callbackTemplate = template.Must(template.New("callback").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{{.Title}}</title></head>
<body><h1>{{.Title}}</h1><p>{{.Text}}</p><p><a href="/settings/platform">Back to Muster</a></p></body></html>
`))

// Callback answers a browser that comes back from the vendor's sign-up page.
// Who comes is known by the secret state alone; nothing here needs a session.
func (p *Platform) Callback(w http.ResponseWriter, r *http.Request) {
	page, status := callbackPage{"Connected", ""}, http.StatusOK
	owner, err := p.FinishSignup(r.Context(), r.URL.Query().Get("state"), r.URL.Query().Get("enterpriseToken"))
	switch {
	case err == nil:
		page.Text = owner.Name + " is connected to the device-management platform. You may close this page."
	case fault.CodeOf(err) == fault.NotFound:
		page, status = callbackPage{"Not found", "This sign-up is not known here. Begin again."}, http.StatusNotFound
	default:
		f := fault.From(err)
		page, status = callbackPage{"Not connected", f.Detail + ". You need not sign up again: go back to Muster and finish there."}, http.StatusBadGateway
		p.log.WarnContext(r.Context(), "cannot finish a sign-up", slog.Any("error", err))
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer") // the address holds the token
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = callbackTemplate.Execute(w, page)
}
