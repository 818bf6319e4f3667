package engine

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/wait"
)

// maxPending bounds the ids that wait to be sent to other replicas. One more,
// and the others are told to look at everything instead.
const maxPending = 100_000

// wakes carries hints that something changed. A hint may be lost or
// delivered twice; listeners also poll.
type wakes struct {
	id     string // of this replica, to know its own hints by
	logger *slog.Logger
	quiet  time.Duration // how long the listening connection may hear nothing before it is asked whether it lives

	mu        sync.Mutex
	listeners map[string][]*listener // by topic
	pending   map[string]map[string]struct{}
	everyone  map[string]bool // topics with too many ids to name
	signal    chan struct{}   // nil: there are no other replicas
	listening func()          // starts the listening connection; nil: started, or not needed
}

type listener struct{ wake func(ids []string) }

// Notify hints to every replica that something about ids changed. It does not
// wait for the other replicas. Call it after the change is committed.
//
// The ids are sent as soon as the sender is free, so that one message carries all that arrived
// since the last.
func (db *DB) Notify(topic string, ids ...string) {
	w := db.wakes
	w.deliver(topic, ids)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.signal == nil {
		return
	}
	if ids == nil || len(w.pending[topic])+len(ids) > maxPending {
		w.everyone[topic] = true
		delete(w.pending, topic)
	}
	if !w.everyone[topic] {
		if w.pending[topic] == nil {
			w.pending[topic] = map[string]struct{}{}
		}
		for _, id := range ids {
			w.pending[topic][id] = struct{}{}
		}
	}
	wait.Wake(w.signal)
}

// Listen has wake called with the ids of a topic's hints, from several
// goroutines; nil ids mean that hints may have been missed, and anything may
// have changed. wake must not block. stop ends it; a call under way may still
// finish.
func (db *DB) Listen(topic string, wake func(ids []string)) (stop func()) {
	w, l := db.wakes, &listener{wake}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.listeners[topic] = append(w.listeners[topic], l)
	if w.listening != nil {
		w.listening()
		w.listening = nil
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		// A copy: deliver may be walking along the slice.
		w.listeners[topic] = slices.DeleteFunc(slices.Clone(w.listeners[topic]), func(o *listener) bool { return o == l })
	}
}

// deliver notifies this replica's listeners.
func (w *wakes) deliver(topic string, ids []string) {
	w.mu.Lock()
	listeners := w.listeners[topic]
	w.mu.Unlock()
	for _, l := range listeners {
		l.wake(ids)
	}
}

// deliverAll notifies every listener that anything may have changed.
func (w *wakes) deliverAll() {
	w.mu.Lock()
	topics := slices.Collect(maps.Keys(w.listeners))
	w.mu.Unlock()
	for _, topic := range topics {
		w.deliver(topic, nil)
	}
}

// collect takes what is queued, as payloads.
func (w *wakes) collect() []string {
	w.mu.Lock()
	pending, everyone := w.pending, w.everyone
	w.pending, w.everyone = map[string]map[string]struct{}{}, map[string]bool{}
	w.mu.Unlock()
	var payloads []string
	for topic := range everyone {
		payloads = append(payloads, w.id+"\n"+topic)
	}
	for topic, ids := range pending {
		payloads = append(payloads, payloadsOf(w.id+"\n"+topic, ids)...)
	}
	return payloads
}

// send runs until stop is closed and then sends what is left.
func (w *wakes) send(stop <-chan struct{}, publish func(ctx context.Context, payloads []string) error) {
	failing := false
	for stopped := false; !stopped; {
		select {
		case <-w.signal:
		case <-stop:
			stopped = true
		}
		payloads := w.collect()
		if len(payloads) == 0 {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), publishLimit)
		err := publish(ctx, payloads)
		cancel()
		if err != nil && !failing {
			w.logger.Warn("cannot wake the other replicas; they find out at their next look", slog.Any("error", err))
		}
		failing = err != nil
	}
}
