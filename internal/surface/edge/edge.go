// Package edge is what the answers of every surface have in common: headers, statuses,
// and what happens to a request whose body is late.
package edge

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
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

// ReadsOnly answers 405 to every method but GET and HEAD, whose handler the address has.
func ReadsOnly(mux *http.ServeMux, path string) {
	mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
		const methods = "GET, HEAD"
		w.Header().Set("Allow", methods)
		JSON(w, http.StatusMethodNotAllowed, NoStore, map[string]string{"error": "this address takes " + methods})
	})
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

// Success returns the status of a call that succeeded.
func Success(created bool) int {
	if created {
		return http.StatusCreated
	}
	return http.StatusOK
}

var statuses = map[fault.Code]int{ //nolint:gochecknoglobals // a table that is never written to
	fault.InvalidArguments:     http.StatusBadRequest,
	fault.Unauthorized:         http.StatusUnauthorized,
	fault.Forbidden:            http.StatusForbidden,
	fault.NotFound:             http.StatusNotFound,
	fault.Unsupported:          http.StatusConflict,
	fault.NotPending:           http.StatusConflict,
	fault.StaleProposal:        http.StatusConflict,
	fault.InFlight:             http.StatusConflict,
	fault.Refused:              http.StatusUnprocessableEntity,
	fault.ConfirmationRequired: http.StatusUnprocessableEntity,
	fault.KeyReused:            http.StatusUnprocessableEntity,
	fault.CursorExpired:        http.StatusGone,
	fault.RateLimited:          http.StatusTooManyRequests,
	fault.Provider:             http.StatusBadGateway,
	fault.Unavailable:          http.StatusServiceUnavailable,
}

// Status is what a fault's code means over HTTP, on every surface (contract 7.1, 7.3, 7.4);
// of an unknown one, 500.
func Status(code fault.Code) int { return cmp.Or(statuses[code], http.StatusInternalServerError) }

// Statuses are those that a call of an operation, or of none (nil), is answered with: its
// successes and every fault.
func Statuses(o *operation.Operation) []int {
	all := append(slices.Collect(maps.Values(statuses)), http.StatusInternalServerError)
	switch {
	case o == nil:
		all = append(all, Success(false), http.StatusAccepted,
			http.StatusMethodNotAllowed, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType) // of MCP
	case o.Unconfirmed:
		all = append(all, Success(o.Created), http.StatusAccepted)
	case o.Effect == operation.Reading:
		all = append(all, Success(false), http.StatusNotModified)
	default:
		all = append(all, Success(o.Created))
	}
	slices.Sort(all)
	return slices.Compact(all)
}
