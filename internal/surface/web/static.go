package web

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"mime"
	"net/http"
	"path"
	"strings"
	"sync"
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
