package platform

import (
	"context"
	"errors"
	"net/http/httptrace"
	"sync/atomic"
)

// phase watches how far one attempt got. A failure without an answer came
// before anything was written, or leaves the outcome open.
type phase struct {
	written atomic.Bool // headers were written, perhaps only into a buffer
	flushed atomic.Bool // the whole request was
}

// errReplayed ends an attempt that Go is about to repeat by itself.
var errReplayed = errors.New("the connection broke after the request was written")

// watch returns a context whose request reports to the phase. GetConn comes at
// the start of each attempt. Go makes another one if a kept connection turns
// out to be dead: that is welcome while nothing was written. But it also
// repeats a GET that was: that is not, one attempt means one. A GET counts as
// written from its headers on, since word of the rest may come too late.
func (p *phase) watch(ctx context.Context, get bool) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) {
			if p.flushed.Load() || get && p.written.Load() {
				cancel(errReplayed)
				return
			}
			p.written.Store(false)
		},
		WroteHeaders: func() { p.written.Store(true) },
		WroteRequest: func(info httptrace.WroteRequestInfo) { p.flushed.Store(info.Err == nil) },
	}), cancel
}
