// Package rest serves the registry's operations over HTTP under /api/v1
// (contract 4, 5, 7), with their description in OpenAPI and a reference page.
//
// It owns what only HTTP has: addresses and their three forms of ids, statuses,
// the dialects of errors (contract 7.2 to 7.4), Idempotency-Key, validators and
// request ids. Who may do what, and in which order things are checked, is the
// kernel's business.
package rest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/resource"
)

// Prefix is the path under which everything is served; contract 9.
const Prefix = "/api/v1"

// Authenticator finds out who brings an API key.
type Authenticator interface {
	// Authenticate returns fault.Unauthorized for a key that is no good.
	Authenticate(ctx context.Context, key string) (access.Principal, error)
}

// Config is what the server needs.
type Config struct {
	Registry      *operation.Registry
	Once          operation.Once // runs the operations, with the kernel that explains what fails beside it
	Authenticator Authenticator
	// PublicURL is the service's address, for the description.
	PublicURL string
	// Served is called once an answer is written, for metrics; operation is empty where the
	// request met none.
	Served func(operation string, status int, took time.Duration)
	Log    *slog.Logger
	Now    func() time.Time
}

// Server is the REST surface.
type Server struct {
	Config
	routes *node

	described func() []byte // openapi.json, written when it is first asked for
	reference http.Handler
}

// New returns the surface for all operations of the registry.
//
// Do not mount it on an http.ServeMux: that redirects "//" and "..". Use Wrap.
func New(c Config) *Server {
	return &Server{
		Config: c, routes: newRoutes(c.Registry),
		described: sync.OnceValue(func() []byte { return OpenAPI(c.Registry, c.PublicURL) }),
		reference: newReference(c.Registry, c.PublicURL),
	}
}

// isDescription reports whether the OpenAPI document is at a path. Programs that
// look for it by themselves try the first two.
func isDescription(path string) bool {
	return path == "/openapi.json" || path == "/api/openapi.json" || path == Prefix+"/openapi.json"
}

// Wrap serves Prefix, the reference page at /api/docs and what is below them,
// and the description at its other addresses, and leaves everything else to next.
func (s *Server) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path+"/", Prefix+"/"), isDescription(r.URL.Path):
			s.ServeHTTP(w, r)
		case strings.HasPrefix(r.URL.Path+"/", referencePath+"/"):
			s.reference.ServeHTTP(w, r)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// request is one request on its way through.
type request struct {
	*http.Request
	id        string
	operation *operation.Operation // nil: none at this address
	caller    access.Principal     // zero until known
	since     time.Time            // when the caller was let in
}

// ServeHTTP answers one request under Prefix.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := s.Now()
	q := &request{Request: r, id: resource.RequestID(r.Header.Get("X-Request-Id"))}
	w.Header()["X-Request-Id"] = []string{q.id}
	a := s.answer(w, q)
	status := a.write(w, r)
	s.note(q, status, s.Now().Sub(start))
}

// answer finds the operation at the request's address and runs it. A panic of this package
// becomes a 500 with an id. (The kernel does so for handlers.)
func (s *Server) answer(w http.ResponseWriter, q *request) (a reply) {
	defer fault.Rescue(func(panicked error) {
		s.Log.LogAttrs(q.Context(), slog.LevelError, "panic", slog.String("request_id", q.id), slog.Any("error", panicked))
		a = q.refuse(fault.New(fault.Internal, "an unexpected error occurred; its id is %s", q.id))
	}, http.ErrAbortHandler)
	if isDescription(q.URL.Path) {
		if !isRead(q.Method) {
			return notAllowed(q, "GET, HEAD")
		}
		return reply{status: http.StatusOK, contentType: jsonType, body: s.described()}
	}
	at, path := s.routes.find(strings.TrimPrefix(q.URL.EscapedPath(), Prefix))
	if at == nil {
		return q.refuse(fault.New(fault.NotFound, "unknown endpoint: see %s/openapi.json", Prefix))
	}
	method := q.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	q.operation = at.methods[method]
	if q.operation == nil {
		return notAllowed(q, at.allowed())
	}
	return s.operate(w, q, path)
}

func notAllowed(q *request, methods string) reply {
	a := q.refuse(fault.New(methodNotAllowed, "this address takes %s", methods))
	a.set("Allow", methods)
	return a
}

// operate runs the operation at the request's address.
func (s *Server) operate(w http.ResponseWriter, q *request, path []string) reply {
	if q.operation.Ahead == operation.AheadToShow {
		q.Request = q.WithContext(access.Shows(q.Context(), path[0]))
	}
	caller, err := s.authenticate(q.Context(), q)
	if err != nil {
		return q.refuse(s.explain(q, err))
	}
	q.caller, q.since = caller, s.Now()
	parts := readParts(w, q.Request, path)
	if q.operation.Waits { // the request is read: its end is no longer looked for in time
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	}
	return s.run(q, parts)
}

// run sends the request through the kernel, at most once for each Idempotency-Key.
func (s *Server) run(q *request, parts *operation.Parts) reply {
	key, wrong := idempotencyKey(q.Request)
	meta := operation.Meta{RequestID: q.id, Wrong: wrong, ReasonField: noteFields.Reason, Since: q.since,
		Again: func(ctx context.Context) (access.Principal, error) { return s.authenticate(ctx, q) }}
	if !isRead(q.Method) && wrong == nil {
		if meta.Wrong = conditional(q.Request); meta.Wrong == nil {
			meta.Note, meta.Wrong = note(q.Request)
		}
	}
	out := s.Once.Run(q.Context(), q.operation, q.caller, meta, parts, key)
	var a reply
	if out.Fault == nil {
		var err error
		if a, err = accept(q.operation, out.Result); err != nil {
			out.Fault = s.explain(q, err)
		}
	}
	if out.Fault != nil {
		a = q.refuse(out.Fault)
	}
	a.budget(out.Allowance)
	if out.Replayed {
		a.set("Idempotency-Replayed", "true")
	}
	return a
}

// explain makes an error that did not come through the kernel fit for the caller.
func (s *Server) explain(q *request, err error) *fault.Error {
	return s.Once.Kernel.Explain(q.Context(), q.operation, q.caller, operation.Meta{RequestID: q.id}, err)
}

// authenticate looks at X-API-Key alone: an Authorization header is ignored
// (contract 5.1).
func (s *Server) authenticate(ctx context.Context, q *request) (access.Principal, error) {
	given := q.Header["X-Api-Key"]
	if len(given) != 1 {
		return access.Principal{}, fault.New(fault.Unauthorized, "API key missing, invalid, expired or revoked: send one X-API-Key header")
	}
	caller, err := s.Authenticator.Authenticate(ctx, given[0])
	if err != nil && fault.CodeOf(err) != fault.Unauthorized {
		err = operation.NotSent(q.operation, err)
	}
	return caller, err
}

// refuse answers with a fault, in the dialect of the operation.
func (q *request) refuse(e *fault.Error) reply {
	dialect := operation.Reads
	if q.operation != nil {
		dialect = q.operation.Dialect
	}
	return refuse(dialect, q.URL.EscapedPath(), e)
}

// note writes the access log and the metrics.
func (s *Server) note(q *request, status int, took time.Duration) {
	name := ""
	if q.operation != nil {
		name = q.operation.Name
	}
	s.Served(name, status, took)
	s.Log.LogAttrs(q.Context(), slog.LevelInfo, "request", slog.String("request_id", q.id), slog.String("method", q.Method),
		slog.String("path", q.URL.EscapedPath()), slog.String("operation", name), slog.Int("status", status),
		slog.Duration("took", took), slog.String("caller", q.caller.ID), slog.String("key", q.caller.Prefix),
		slog.String("client", access.OriginOf(q.Context()).Address))
}

// maxBody is the largest body that is read, in bytes. The contract's largest is
// that of lost-mode: four texts of 4096 characters, each of them up to twelve
// bytes when it is written as two \u escapes.
const maxBody = 256 << 10

// readParts reads what the request brings as arguments. What is wrong with
// its body is not told yet: rights and budget come first.
func readParts(w http.ResponseWriter, r *http.Request, path []string) *operation.Parts {
	parts := &operation.Parts{Path: path, Query: r.URL.RawQuery}
	if isRead(r.Method) || r.Body == nil || r.ContentLength == 0 {
		return parts
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	parts.Body = body
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		parts.Refused = malformed(fmt.Sprintf("the body is larger than %d bytes", maxBody))
	} else if err != nil {
		parts.Refused = malformed("the body could not be read to its end")
	} else if len(body) > 0 && !isJSON(r.Header.Get("Content-Type")) {
		parts.Refused = malformed("the Content-Type must be application/json")
	}
	return parts
}

func malformed(detail string) *fault.Error {
	e := fault.Invalid(detail)
	e.Malformed = true
	return e
}

// isJSON accepts application/json in UTF-8, and nothing said at all.
func isJSON(contentType string) bool {
	if contentType == "" {
		return true
	}
	media, params, err := mime.ParseMediaType(contentType)
	charset := params["charset"]
	return err == nil && media == jsonType && (charset == "" || strings.EqualFold(charset, "utf-8"))
}

// idempotencyKey returns the request's Idempotency-Key, which every POST and PATCH may have, and
// what is wrong with it. A key of any other method is ignored.
func idempotencyKey(r *http.Request) (string, *fault.Error) {
	const header = "Idempotency-Key"
	values := r.Header[header]
	switch {
	case r.Method != http.MethodPost && r.Method != http.MethodPatch || len(values) == 0:
		return "", nil
	case len(values) > 1:
		return "", operation.InvalidKey(header)
	}
	return values[0], operation.CheckKey(header, values[0])
}

// conditional refuses a change that is to be made only if nothing else has changed: no operation
// looks, and to carry it out all the same would overwrite what the caller has not seen.
func conditional(r *http.Request) *fault.Error {
	for _, header := range [...]string{"If-Match", "If-Unmodified-Since"} {
		if given := r.Header.Get(header); given != "" && given != "*" {
			return fault.InvalidField(header, "is not supported: changes are made whatever the version is")
		}
	}
	return nil
}

// noteFields are the headers in which a caller says why it calls.
var noteFields = operation.NoteFields{Reason: "X-Muster-Reason", Ticket: "X-Muster-Ticket"} //nolint:gochecknoglobals // a table that is never written to

// note returns what the request says about itself.
func note(r *http.Request) (access.Note, *fault.Error) {
	reasons, tickets := r.Header.Values(noteFields.Reason), r.Header.Values(noteFields.Ticket)
	switch {
	case len(reasons)+len(tickets) == 0:
		return access.Note{}, nil
	case len(reasons) > 1:
		return access.Note{}, operation.WrongType(noteFields.Reason)
	case len(tickets) > 1:
		return access.Note{}, operation.WrongType(noteFields.Ticket)
	}
	return noteFields.Read(r.Header.Get(noteFields.Reason), r.Header.Get(noteFields.Ticket))
}
