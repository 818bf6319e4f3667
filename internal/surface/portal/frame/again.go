package frame

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"net/http"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
)

// A visit is let in when its headers have arrived, and its form is read after that. What
// it writes is compared with the permit that it got then. If that has moved, and nothing
// was written yet, the visit is made once more from its beginning, with the form as it was
// read: session, user, rights, stop and proof are looked at as they are now.

// admitted serves a route to people who are signed in.
func (f *Frame) admitted(route Route) http.Handler {
	var whole http.Handler
	whole = f.Sessions.Admit(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		held := &held{ResponseWriter: w}
		if r.Method == http.MethodPost {
			held.header = maps.Clone(w.Header())
		}
		if again := f.visitOnce(held, r, route); again != nil {
			held.header = nil // it is not sent
			whole.ServeHTTP(w, again)
			return
		}
		held.send()
	}), route.Guest, f.broken)
	return whole
}

type secondKey struct{}

// another is what a visit that is made once more begins with.
type another struct {
	then     Handler // nil: the route's
	uploaded any
}

// visitOnce serves a visit, and returns the request with which it is to be made once more;
// nil: its answer stands.
func (f *Frame) visitOnce(w http.ResponseWriter, r *http.Request, route Route) *http.Request {
	second, isSecond := r.Context().Value(secondKey{}).(another)
	if second.then != nil {
		route.Serve = second.then
	}
	v := f.visit(w, r)
	v.second, v.Uploaded = isSecond, second.uploaded
	v.w.Header().Set("X-Request-Id", v.RequestID)
	v.w.Header().Set(userHeader, v.User.ID)
	permit := access.NewPermit(v.Principal, f.Sessions.Again(r))
	v.r = v.r.WithContext(access.WithPermit(v.r.Context(), permit))
	defer fault.Rescue(v.fail, http.ErrAbortHandler)
	failed := f.serve(v, route)
	if !isSecond && r.Method == http.MethodPost && !permit.Used() && permit.Moves() == 0 && !errors.Is(failed, errLate) {
		if err := v.Stands(); err != nil && failed == nil && permit.Moves() == 0 {
			failed = err
		}
	}
	if !isSecond && (errors.Is(failed, errLate) || onceMore(permit, r.Method, failed)) {
		then := Handler(nil)
		if permit.Used() { // it is not done again, but who may not come in is told so
			if errors.Is(failed, access.ErrMoved) {
				failed = errInPart
			}
			then = func(*Visit) error { return failed }
		}
		return v.r.WithContext(context.WithValue(r.Context(), secondKey{}, another{then, v.Uploaded}))
	}
	if failed != nil {
		v.fail(failed)
	}
	return nil
}

// onceMore reports whether a visit is to be made once more: its permit moved, and what it
// answered, which is not sent yet, is not what it would be answered now.
func onceMore(permit *access.Permit, method string, failed error) bool {
	return permit.Moves() > 0 && (failed != nil || method != http.MethodGet && !permit.Used())
}

// lateAfter is after how long a form that is still being read is one of a person who was
// let in too long ago. errLate says so of a visit that has done nothing yet.
const lateAfter = time.Second

var errLate = errors.New("frame: the form came late")

// errInPart is the error of a visit that wrote, and may not write any more.
var errInPart error = &fault.Error{Code: fault.Refused,
	Detail: "What you may do changed while this was carried out: a part of it is done, and the rest is not. Look at what has changed " +
		"before you go on."}

// stillIn returns an error if the person of a form that was just read is to be let in once
// more. What is written is compared when it is; this is for what the platform is asked first.
func (v *Visit) stillIn() error {
	if v.frame.Now().Sub(v.Now) >= lateAfter {
		return errLate
	}
	return v.Stands()
}

// Stands returns an error if the person may no longer do what they could when the visit began.
func (v *Visit) Stands() error {
	return v.frame.Stands(v.Context())
}

// held is the answer of a form, which is sent when it is known that it stands. That of a
// page goes out as it is written.
type held struct {
	http.ResponseWriter
	header http.Header // nil: nothing is held
	status int
	body   bytes.Buffer
}

// Unwrap is for http.ResponseController.
func (h *held) Unwrap() http.ResponseWriter { return h.ResponseWriter }

func (h *held) Header() http.Header {
	if h.header == nil {
		return h.ResponseWriter.Header()
	}
	return h.header
}

func (h *held) WriteHeader(status int) {
	if h.header == nil {
		h.ResponseWriter.WriteHeader(status)
	} else if h.status == 0 {
		h.status = status
	}
}

func (h *held) Write(text []byte) (int, error) {
	if h.header == nil {
		return h.ResponseWriter.Write(text)
	}
	h.WriteHeader(http.StatusOK)
	return h.body.Write(text)
}

// send sends what was held.
func (h *held) send() {
	if h.header == nil {
		return
	}
	header := h.ResponseWriter.Header()
	clear(header)
	maps.Copy(header, h.header)
	if h.status != 0 {
		h.ResponseWriter.WriteHeader(h.status)
	}
	_, _ = h.ResponseWriter.Write(h.body.Bytes()) // the browser has gone away: nothing to do
}
