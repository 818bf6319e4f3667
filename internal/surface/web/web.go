// Package web is what every page has in common: the shell around it, its files,
// its security headers, and the signed-in person. The portal and the consent
// page of OAuth build on it.
package web

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"log/slog"
	"mime"
	"net/http"
	"path"
	"strings"
	"sync"

	"github.com/a-h/templ"
)

//go:embed static
var files embed.FS

// StaticPath is where the files of the pages are served: stylesheet, scripts, font, icons.
const StaticPath = "/static/"

// file is one of them, ready to send.
type file struct {
	plain     []byte
	gzipped   func() []byte // nil: it is compressed already
	mediaType string
}

// static is all of them and their fingerprint, which changes when one of them does.
type static struct {
	files       map[string]file
	fingerprint string
}

var shipped = sync.OnceValue(readFiles) //nolint:gochecknoglobals // reads embedded files once

// File is the address of one of the files. It contains the fingerprint of all, so that a
// browser keeps the file for a year and asks again only after an update of Muster.
func File(name string) string { return StaticPath + shipped().fingerprint + "/" + name }

// Static serves the files, below StaticPath.
func Static() http.Handler { return shipped() }

func readFiles() *static {
	s, all := &static{files: map[string]file{}}, sha256.New()
	entries, _ := files.ReadDir("static") // what is compiled in can be read
	for _, entry := range entries {
		body, _ := files.ReadFile("static/" + entry.Name())
		all.Write(body)
		s.files[entry.Name()] = prepare(entry.Name(), body)
	}
	s.fingerprint = hex.EncodeToString(all.Sum(nil)[:8])
	return s
}

func prepare(name string, body []byte) file {
	types := map[string]string{".woff2": "font/woff2", ".js": "text/javascript; charset=utf-8"}
	f := file{plain: body, mediaType: cmp.Or(types[path.Ext(name)], mime.TypeByExtension(path.Ext(name)))}
	if path.Ext(name) != ".woff2" {
		f.gzipped = sync.OnceValue(func() []byte { return compressed(body) })
	}
	return f
}

func compressed(body []byte) []byte {
	var buffer bytes.Buffer
	zip, _ := gzip.NewWriterLevel(&buffer, gzip.BestCompression) // the level is one that there is
	_, _ = zip.Write(body)                                       // a buffer takes it all
	_ = zip.Close()
	return buffer.Bytes()
}

// ServeHTTP serves one file. Under its fingerprint it never changes. Under another one, as
// a page of another version of Muster asks for it, and without one, browsers ask each time.
func (s *static) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fingerprint, name := path.Split(strings.TrimPrefix(r.URL.Path, StaticPath))
	f, ok := s.files[name]
	if !ok || strings.Count(fingerprint, "/") > 1 {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", f.mediaType)
	h.Set("ETag", `"`+s.fingerprint+`"`)
	h.Set("Vary", "Accept-Encoding")
	h.Set("Cache-Control", "no-cache")
	if fingerprint == s.fingerprint+"/" {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	if strings.Contains(r.Header.Get("If-None-Match"), s.fingerprint) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body := f.plain
	if f.gzipped != nil && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		body = f.gzipped()
	}
	_, _ = w.Write(body) // the browser has gone away: nothing to do
}

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
