// Package edge is what the answers of every surface have in common: headers, statuses,
// and what happens to a request whose body is late.
package edge

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
)

// Harden sets the headers that every answer has, and answers requests whose
// body is not sent in time. public is the service's address; browsers are told
// to stay with https where it is https.
func Harden(next http.Handler, public string, log *slog.Logger) http.Handler {
	next = Punctual(next, log)
	https := strings.HasPrefix(public, "https://")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if https {
			w.Header().Set("Strict-Transport-Security", "max-age=31536000")
		}
		next.ServeHTTP(w, r)
	})
}

// NoStore is the Cache-Control of answers that nothing may keep.
const NoStore = "no-store"

// JSON answers with a value. cache says who may keep the answer.
func JSON(w http.ResponseWriter, status int, cache string, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", cache)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) // the client has gone away: nothing to do
}

// Punctual answers 408 when the time for reading a request ends before its body
// did. No surface has to tell that from other faults of a body, or from a fault
// of its own that follows from it.
func Punctual(next http.Handler, log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.ContentLength != 0 {
			r.Body = &body{ReadCloser: r.Body, late: func() {
				log.LogAttrs(r.Context(), slog.LevelInfo, "request body not sent in time",
					slog.String("method", r.Method), slog.String("path", r.URL.Path))
				w.Header().Set("Connection", "close")
				JSON(w, http.StatusRequestTimeout, NoStore, map[string]any{
					"error": "Request Timeout", "message": "the request body was not sent in time", "status": http.StatusRequestTimeout})
				_ = http.NewResponseController(w).Flush() // the client may be gone
				panic(http.ErrAbortHandler)
			}}
		}
		next.ServeHTTP(w, r)
	})
}

// body is a request's body that calls late, which does not return, when it can
// no longer be read in time.
type body struct {
	io.ReadCloser
	late func()
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		b.late()
	}
	return n, err
}
