package platform

import (
	"context"
	"net/http/httptrace"
	"sync/atomic"
)

// phase watches how far one attempt got. A failure without an answer came
// before anything was written, or leaves the outcome open.
type phase struct {
	written  atomic.Bool
	answered atomic.Bool
}

// watch returns a context whose request reports to the phase. GetConn comes at
// the start of each attempt: Go makes another one only when nothing of the
// first was written.
func (p *phase) watch(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn:              func(string) { p.written.Store(false) },
		WroteHeaders:         func() { p.written.Store(true) },
		GotFirstResponseByte: func() { p.answered.Store(true) },
	})
}
