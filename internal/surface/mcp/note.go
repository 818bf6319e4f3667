package mcp

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/surface/status"
)

// record is what the access log reports about a request.
type record struct {
	id        string
	operation string       // the tool's; protocol: a call of no tool
	caller    caller       // zero until known
	failed    atomic.Int32 // the status that REST would have answered a failed tool with; 0: none
}

// protocol stands for what is no call of a tool.
const protocol = "mcp"

type recordContext struct{}

// noted writes the access log and the metrics. A failed tool is noted with
// REST's status, although the protocol answers it 200.
func (c Config) noted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := c.Now()
		noted := &record{id: resource.RequestID(r.Header.Get("X-Request-Id")), operation: protocol}
		w.Header().Set("X-Request-Id", noted.id)
		answer := &answer{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(answer, r.WithContext(context.WithValue(r.Context(), recordContext{}, noted)))
		code, took := answer.status, c.Now().Sub(start)
		if failed := noted.failed.Load(); failed != 0 {
			code = int(failed)
		}
		if c.Served != nil {
			c.Served(noted.operation, code, took)
		}
		p := noted.caller.principal
		c.Log.LogAttrs(r.Context(), slog.LevelInfo, "request", slog.String("request_id", noted.id), slog.String("method", r.Method),
			slog.String("path", Path), slog.String("operation", noted.operation), slog.Int("status", code),
			slog.Duration("took", took), slog.String("caller", p.ID), slog.String("key", p.Prefix),
			slog.String("client", access.OriginOf(r.Context()).Address))
	})
}

// recordOf is the request's record.
func recordOf(ctx context.Context) *record {
	if noted, ok := ctx.Value(recordContext{}).(*record); ok {
		return noted
	}
	return &record{}
}

func (r *record) fail(code fault.Code) { r.failed.Store(int32(status.Of(code))) }

// answer notes the status that is answered.
type answer struct {
	http.ResponseWriter
	status int
}

// WriteHeader notes the status.
func (a *answer) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

// Unwrap gives http.ResponseController what is beneath.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// Flush sends what was written so far, as streams need it.
func (a *answer) Flush() { _ = http.NewResponseController(a.ResponseWriter).Flush() } // the client has gone away: nothing to do
