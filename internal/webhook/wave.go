package webhook

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/event"
)

const (
	// waveSize is how many calls one webhook makes at a time, each for another asset.
	waveSize = 8
	// heldOfWave is how many of them may be for what was held.
	heldOfWave = waveSize / 2
	// looked is how many positions one query looks through.
	looked = 10_000
	// passAfter is how many events a webhook passes over before that is kept.
	passAfter = 1000
	// passWithin is how long it is not kept at most: shorter than events are kept, so that
	// what was passed over is not counted as missed.
	passWithin = time.Hour
)

// send is one call that is to be made.
type send struct {
	event event.Event
	held  Held // what is held if the receiver does not take it
}

// wave is what one webhook sends at once, and what changes without a call.
type wave struct {
	sends  []send
	held   map[string]Held // everything that is held
	record Record
	last   int64 // position of the company's newest event
	room   int   // for calls
	from   int64 // position before its new events, after those that were missed
}

// finished reports whether nothing is left to send after the wave, as far as is known.
func (w *wave) finished(now time.Time) bool {
	next := w.next()
	return w.record.Position >= w.last && (next.IsZero() || next.After(now))
}

// empty reports whether there is nothing to do but to move the position.
func (w wave) empty() bool {
	return len(w.sends) == 0 && len(w.record.Held) == 0 && len(w.record.Free) == 0 && w.record.Missed == 0
}

// load finds what to send next for a webhook, beside what is being sent.
func (r *Runner) load(ctx context.Context, w Webhook, flying map[string]bool, now time.Time) (next wave, err error) {
	head, err := r.Queue.EventHead(ctx, w.CompanyID)
	if err != nil {
		return next, err
	}
	all, err := r.Queue.HeldBack(ctx, w.ID)
	if err != nil {
		return next, err
	}
	next.last = head.Last
	next.held, next.record = map[string]Held{}, Record{WebhookID: w.ID, CompanyID: w.CompanyID, Position: w.Position}
	if gone := head.Start() - w.Position; gone > 0 {
		next.record.Missed, next.record.Position = gone, head.Start()
	}
	next.from = next.record.Position
	for _, h := range all {
		next.held[h.Key] = h
	}
	next.room = waveSize - len(flying)
	for _, h := range all {
		if flying[h.Key] {
			continue
		}
		if h.NextAt.After(now) || len(next.sends) == min(heldOfWave, next.room) {
			break
		}
		if err := r.loadHeld(ctx, w, &next, h, head.Start()); err != nil {
			return next, err
		}
	}
	return next, r.loadNew(ctx, w, &next, head.Last)
}

// loadHeld finds the first event of what is held. Without any it is held no more.
func (r *Runner) loadHeld(ctx context.Context, w Webhook, next *wave, h Held, start int64) error {
	if h.Position <= start { // the event was deleted
		next.record.Missed++
		h.Position, h.Attempts, h.Since = start+1, 0, time.Time{}
		if h.AssetID == "" {
			next.free(h.Key)
			return nil
		}
	}
	upto := min(w.Position, h.Position+looked)
	if h.AssetID == "" {
		upto = h.Position
	}
	found, err := r.Queue.Events(ctx, event.Query{CompanyID: w.CompanyID, After: h.Position - 1, Upto: upto, Limit: 1,
		See: event.Sight{All: true}, Types: w.Events, Asset: h.AssetID})
	switch {
	case err != nil:
		return err
	case len(found) > 0:
		h.Position = found[0].Position
		next.sends = append(next.sends, send{found[0], h})
	case upto < w.Position && h.AssetID != "":
		h.Position = upto + 1
		next.hold(h)
	default:
		next.free(h.Key)
	}
	return nil
}

// loadNew finds events after the webhook's position, each of another asset, and moves the
// position past them.
func (r *Runner) loadNew(ctx context.Context, w Webhook, next *wave, last int64) error {
	var assets []string
	for _, h := range next.held {
		if h.AssetID != "" {
			assets = append(assets, h.AssetID)
		}
	}
	slices.Sort(assets)
	room := min(next.room-len(next.sends), MaxHeld-len(next.held))
	for room > 0 && next.record.Position < last {
		upto := min(last, next.record.Position+looked)
		found, err := r.Queue.Events(ctx, event.Query{CompanyID: w.CompanyID, After: next.record.Position, Upto: upto, Limit: room,
			See: event.Sight{All: true}, Types: w.Events, Except: assets})
		if err != nil {
			return err
		}
		if len(found) == room {
			upto = found[room-1].Position
		}
		next.record.Position = upto
		seen := map[string]bool{}
		for _, e := range found {
			if e.AssetID != "" && seen[e.AssetID] {
				next.record.Position = e.Position - 1 // after the one before it
				break
			}
			seen[e.AssetID] = true
			h := Held{Key: cmp.Or(e.AssetID, e.ID), AssetID: e.AssetID, Position: e.Position}
			next.sends = append(next.sends, send{e, h})
		}
		if len(found) > 0 {
			return nil
		}
	}
	return nil
}

func (w *wave) hold(h Held) {
	w.held[h.Key] = h
	w.record.Held = append(w.record.Held, h)
}

func (w *wave) free(key string) {
	if _, held := w.held[key]; held {
		delete(w.held, key)
		w.record.Free = append(w.record.Free, key)
	}
}

// result is how a call ended.
type result struct {
	at     time.Time
	status int
	detail string
	took   time.Duration
	done   bool // else the service stopped first, and nothing is known
}

// call makes one call. Without keys it fails as one that gets no answer: a replica with a newer key file can open the
// secret, unless its key is lost.
func (r *Runner) call(ctx context.Context, w Webhook, s send, keys [][]byte) result {
	begun := r.Now()
	if len(keys) == 0 {
		return result{at: begun, detail: "the secret cannot be opened with the key file: rotate the secret", done: true}
	}
	m, err := messageOf(w, s.event.View(w.CompanySlug), keys, begun)
	if err != nil {
		return result{at: begun, detail: "the event cannot be written as JSON", done: true}
	}
	status, detail := r.Sender.send(ctx, m)
	return result{begun, status, detail, r.Now().Sub(begun), status != 0 || ctx.Err() == nil}
}

// settle notes what became of calls in the record of the wave.
func (w *wave) settle(ended []flight, now time.Time) {
	for _, f := range ended {
		s, got, h := f.send, f.result, f.held
		if !got.done {
			h.NextAt = now
			w.hold(h)
			continue
		}
		a := Attempt{At: got.at, EventID: s.event.ID, Type: s.event.Type, Position: s.event.Position, Number: h.Attempts + 1,
			Status: got.status, Detail: got.detail, Took: got.took}
		switch {
		case !a.Delivered():
			next, giveUp := h.failed(now)
			a.NextAt = next.NextAt
			w.hold(next)
			if a.Status == gone {
				w.record.Disable = "the receiver answered 410: it wants no more events"
			} else if giveUp && w.record.Disable == "" {
				w.record.Disable = "the receiver did not take an event for 24 hours: " + got.detail
			}
		case h.AssetID != "" && w.held[h.Key].Key != "": // what came after it waits
			h.Position, h.Attempts, h.Since, h.NextAt = h.Position+1, 0, time.Time{}, now
			w.hold(h)
		default:
			w.free(h.Key)
		}
		w.record.Attempts = append(w.record.Attempts, a)
	}
	if w.record.Disable != "" {
		for i := range w.record.Attempts {
			w.record.Attempts[i].NextAt = time.Time{}
		}
	}
}

// fly holds what the wave's calls would hold back while they have not ended.
func (w *wave) fly(flying map[string]bool, again time.Time) {
	for _, s := range w.sends {
		if flying[s.held.Key] {
			s.held.NextAt = again
			w.hold(s.held)
		}
	}
}

// sendNothing leaves new events and what is held for later.
func (w *wave) sendNothing() { w.sends, w.record.Position = nil, w.from }

// next is when the first of what is held is due.
func (w *wave) next() (first time.Time) {
	for _, h := range w.held {
		if first.IsZero() || h.NextAt.Before(first) {
			first = h.NextAt
		}
	}
	return first
}
