// Package web is what every page has in common: the shell around it, its files,
// its security headers, and the signed-in person. The portal and the consent
// page of OAuth build on it.
package web

import (
	"log/slog"
	"net/http"
	"strings"

	"github.com/a-h/templ"
)

// policy is the content security policy of every page: nothing from elsewhere,
// no inline script, no frames. Basecoat's stylesheet draws its icons from data
// addresses.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; " +
	"connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// Secure adds the security headers to every answer and refuses cross-origin
// writes. Exempt are the paths that programs post to without a cookie.
func Secure(next http.Handler, exempt ...string) http.Handler {
	origin := http.NewCrossOriginProtection()
	for _, path := range exempt {
		origin.AddInsecureBypassPattern(path)
	}
	return origin.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set(permissionsPolicy, "camera=(), microphone=(), geolocation=(), usb=()")
		if !strings.HasPrefix(r.URL.Path, StaticPath) {
			h.Set("Cache-Control", "no-store")
		}
		next.ServeHTTP(w, r)
	}))
}

const permissionsPolicy = "Permissions-Policy"

// AllowCamera lets the page of an answer use the camera, if the person allows it.
func AllowCamera(w http.ResponseWriter) {
	w.Header().Set(permissionsPolicy, "camera=(self), microphone=(), geolocation=(), usb=()")
}

// Answer sends a page.
func Answer(w http.ResponseWriter, r *http.Request, log *slog.Logger, status int, page templ.Component) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	if err := page.Render(r.Context(), w); err != nil {
		log.DebugContext(r.Context(), "page broke off", "error", err)
	}
}
