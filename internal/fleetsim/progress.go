package fleetsim

import (
	"context"
	"fmt"
	"time"

	"github.com/musterhq/muster/internal/wait"
)

// Progress is how far a run is.
type Progress struct {
	Doing string // what happens now, such as "Enrolling agents"
	Done  int64  // of Total
	Total int64  // 0: there is nothing to count
	// Rate is Done a second since the last Progress of the same work.
	Rate      float64
	LastError string        // the latest error of some agent; empty: none
	Since     time.Duration // real time since the run began
}

// String is one line of text.
func (p Progress) String() string {
	text := p.Doing
	if p.Total > 0 {
		text += fmt.Sprintf(": %d of %d (%d %%), %.0f a second", p.Done, p.Total, 100*p.Done/p.Total, p.Rate)
	}
	text += fmt.Sprintf(", %.0f s", p.Since.Seconds())
	if p.LastError != "" {
		text += "; " + p.LastError
	}
	return text
}

// work is what a run does now.
type work struct {
	doing string
	total int64
	done  func() int64
}

// begin notes what the run does from now on, and says it.
func (f *fleet) begin(doing string, total int, done func() int64) {
	f.work.Store(&work{doing, int64(total), done})
	f.Say("%s …", doing)
}

// reportProgress reports the progress until ctx ends.
func (f *fleet) reportProgress(ctx context.Context) {
	const every = 500 * time.Millisecond
	var last *work
	var before int64
	at := f.Clock()
	for wait.For(ctx, every) {
		w := f.work.Load()
		if w == nil {
			continue
		}
		if w != last {
			last, before, at = w, 0, f.Clock()
		}
		now := f.Clock()
		p := Progress{Doing: w.doing, Total: w.total, Done: w.done(), LastError: f.lastError(), Since: now.Sub(f.started)}
		if took := now.Sub(at).Seconds(); took > 0 {
			p.Rate = float64(p.Done-before) / took
		}
		before, at = p.Done, now
		f.Progress(p)
	}
}
