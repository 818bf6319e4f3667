package webhook

import (
	"context"
	"time"
)

// flights are the calls of one webhook that were begun and have not ended. A call that takes
// long keeps its own asset waiting alone.
type flights struct {
	out   map[string]send // by the key of what is held
	ended chan landed
}

// landed is a call that ended.
type landed struct {
	send
	result
}

func newFlights() *flights {
	return &flights{map[string]send{}, make(chan landed, waveSize)} // no call waits to say that it ended
}

// begin begins the calls of a wave.
func (r *Runner) begin(ctx context.Context, f *flights, w Webhook, sends []send, keys [][]byte) {
	for _, s := range sends {
		f.out[s.held.Key] = s
		go func() { f.ended <- landed{s, r.call(ctx, w, s, keys)} }()
	}
}

// next waits briefly for the calls of a wave. Where it has none, it waits until an earlier one
// ends or there may be new events.
func (f *flights) next(w wave) []landed {
	if len(w.sends) == 0 {
		return f.wait(max(w.out-1, 0), Every)
	}
	return f.wait(w.out, briefly)
}

// wait waits until at most some calls are left, or for a time. It returns those that ended.
func (f *flights) wait(left int, atMost time.Duration) (all []landed) {
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	for len(f.out) > left {
		select {
		case l := <-f.ended:
			all = append(all, f.land(l))
		case <-timer.C:
			return all
		}
	}
	for {
		select {
		case l := <-f.ended:
			all = append(all, f.land(l))
		default:
			return all
		}
	}
}

func (f *flights) land(l landed) landed {
	delete(f.out, l.held.Key)
	return l
}
