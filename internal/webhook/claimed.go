package webhook

import (
	"context"
	"sync"
	"time"
)

const (
	// wavesAtOnce is how many waves of one webhook follow each other before others that wait are served.
	wavesAtOnce = 16
	// slowAfter is how long they may take.
	slowAfter = 2 * time.Second
	// waveTime is how long a wave waits for its calls. What other assets have to send does
	// not wait longer for one that gets no answer.
	waveTime = 500 * time.Millisecond
	// callLimit is after what time a call that has no result is made again, by any replica.
	callLimit = CallTime + 5*time.Second
)

// claimed is one replica's work for a webhook, while it has the claim.
type claimed struct {
	*Runner
	webhook Webhook
	claim   string
	flights *flights
	begun   time.Time
	waves   int
	kept    time.Time // when the claim was kept last
}

// run sends one wave after the other.
func (t *claimed) run(ctx context.Context, next wave) (err error) {
	for {
		t.waves++
		if last, err := t.send(ctx, &next); err != nil || last {
			return err
		}
		if next, err = t.load(context.WithoutCancel(ctx), t.webhook, t.flights.keys, t.Now()); err != nil {
			return err // the claim ends by itself
		}
		if ctx.Err() != nil || t.long() && len(t.free) == cap(t.free) {
			next.sendNothing()
		}
		if next.empty() && t.flights.none() {
			next.record.Claim, next.record.NextAt, next.record.Until = t.claim, next.next(), t.Now()
			_, err := t.Queue.RecordWave(context.WithoutCancel(ctx), next.record)
			return err
		}
	}
}

// long reports whether others may be served first.
func (t *claimed) long() bool { return t.waves >= wavesAtOnce || t.Now().Sub(t.begun) > slowAfter }

// send makes the calls of a wave, waits for them, and records what became of these and of
// earlier ones. It reports whether the claim was given back, or is lost.
func (t *claimed) send(ctx context.Context, next *wave) (last bool, err error) {
	again := t.Now().Add(callLimit)
	t.flights.start(next.sends)
	ended := t.flights.end()
	for ctx.Err() != nil && !t.flights.none() { // patient ends them
		ended = append(ended, t.flights.end()...)
	}
	next.settle(ended, t.Now())
	next.fly(t.flights.keys, again)
	for _, a := range next.record.Attempts {
		t.Observer.WebhookCalled(a.Delivered())
	}
	now := t.Now()
	last = next.record.Disable != "" || t.flights.none() && (ctx.Err() != nil || t.long() || next.finished(now))
	if !last && next.empty() && len(ended) == 0 && now.Sub(t.kept) < claimFor/3 {
		return false, nil
	}
	next.record.Claim, next.record.NextAt, next.record.Until = t.claim, next.next(), now.Add(claimFor)
	if last {
		next.record.Until = now
	}
	mine, err := t.Queue.RecordWave(context.WithoutCancel(ctx), next.record)
	t.webhook.Position, t.kept = next.record.Position, now
	return last || !mine, err
}

// flight is a call that has ended.
type flight struct {
	send
	result
}

// flights are the calls of one webhook that have not ended.
type flights struct {
	call    func(send) result
	keys    map[string]bool // of what they would hold back
	ended   chan flight
	running sync.WaitGroup
}

func (f *flights) none() bool { return len(f.keys) == 0 }

// start begins calls; with those that have not ended there are at most waveSize.
func (f *flights) start(sends []send) {
	for _, s := range sends {
		f.keys[s.held.Key] = true
		f.running.Go(func() { f.ended <- flight{s, f.call(s)} })
	}
}

// end waits until all calls have ended, at most waveTime, and returns those that have.
func (f *flights) end() (all []flight) {
	late := time.NewTimer(waveTime)
	defer late.Stop()
	for !f.none() {
		select {
		case e := <-f.ended:
			delete(f.keys, e.held.Key)
			all = append(all, e)
		case <-late.C:
			return all
		}
	}
	return all
}
