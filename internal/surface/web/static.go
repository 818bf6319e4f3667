package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"sync"
)

//go:embed static
var files embed.FS

// StaticPath is where the shell's files are served.
const StaticPath = "/static/"

// asset is one file, ready to send.
type asset struct {
	plain     []byte
	gzipped   func() []byte // nil: it is compressed already
	mediaType string
	tag       string
}

// Static serves the shell's files: stylesheet, scripts, font, outlines.
type Static struct{ assets map[string]asset }

// NewStatic prepares the files that are compiled in, and more from others.
func NewStatic(more ...fs.FS) (*Static, error) {
	own, err := fs.Sub(files, "static")
	if err != nil {
		return nil, err
	}
	s := &Static{assets: map[string]asset{}}
	for _, tree := range append([]fs.FS{own}, more...) {
		if err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			body, err := fs.ReadFile(tree, name)
			if err != nil {
				return err
			}
			s.assets[name] = prepare(name, body)
			return nil
		}); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func prepare(name string, body []byte) asset {
	sum := sha256.Sum256(body)
	a := asset{plain: body, mediaType: mime.TypeByExtension(path.Ext(name)), tag: `"` + hex.EncodeToString(sum[:8]) + `"`}
	switch path.Ext(name) {
	case ".woff2":
		a.mediaType = "font/woff2"
		return a
	case ".js":
		a.mediaType = "text/javascript; charset=utf-8"
	}
	a.gzipped = sync.OnceValue(func() []byte {
		var buffer bytes.Buffer
		zip, _ := gzip.NewWriterLevel(&buffer, gzip.BestCompression) // the level is one that there is
		_, _ = zip.Write(body)                                       // a buffer takes it all
		_ = zip.Close()
		return buffer.Bytes()
	})
	return a
}

// ServeHTTP serves one file. Browsers keep it, and ask whether it changed.
func (s *Static) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a, ok := s.assets[strings.TrimPrefix(r.URL.Path, StaticPath)]
	if !ok {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", a.mediaType)
	h.Set("ETag", a.tag)
	h.Set("Cache-Control", "public, max-age=300, stale-while-revalidate=86400")
	h.Set("Vary", "Accept-Encoding")
	if strings.Contains(r.Header.Get("If-None-Match"), a.tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body := a.plain
	if a.gzipped != nil && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		body = a.gzipped()
	}
	_, _ = w.Write(body) // the browser has gone away: nothing to do
}
