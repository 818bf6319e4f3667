package pubsub

import (
	"container/list"
	"context"
	"strconv"
	"strings"
	"time"
)

// queue is a subscription's backlog: messages that may be delivered now, and
// those that were and wait for their acknowledgment.
type queue struct {
	settings Subscription
	ready    *list.List // of *delivery, first to go first
	waiting  map[string]*delivery
	next     int64
	arrived  chan struct{} // closed when a message became ready
	pullers  int           // pulls under way
	lastSeen time.Time     // of its subscriber: a pull ended, an acknowledgment came
	closed   bool
}

// delivery is one message on its way to one subscription.
type delivery struct {
	id       string
	queue    *queue
	message  *Message
	attempt  int
	deadline time.Time     // while it waits
	element  *list.Element // while it is ready
	done     bool          // acknowledged or dropped
}

func newQueue(s Subscription) *queue {
	return &queue{settings: s, ready: list.New(), waiting: map[string]*delivery{}, arrived: make(chan struct{})}
}

func (q *queue) len() int { return q.ready.Len() + len(q.waiting) }

func (q *queue) add(m *Message) *delivery {
	q.next++
	d := &delivery{id: strconv.FormatInt(q.next, 36), queue: q, message: m}
	d.element = q.ready.PushBack(d)
	for q.len() > MaxBacklog && q.ready.Len() > 0 {
		q.finish(q.ready.Front().Value.(*delivery))
	}
	q.wake()
	return d
}

func (q *queue) wake() {
	close(q.arrived)
	q.arrived = make(chan struct{})
}

func (q *queue) close() {
	q.closed = true
	for e := q.ready.Front(); e != nil; e = e.Next() {
		e.Value.(*delivery).done = true
	}
	for _, d := range q.waiting {
		d.done = true
	}
	q.wake()
}

// finish takes a delivery out for good.
func (q *queue) finish(d *delivery) {
	d.done = true
	if d.element != nil {
		q.ready.Remove(d.element)
		d.element = nil
	}
	delete(q.waiting, d.id)
}

// release makes a delivery ready again.
func (q *queue) release(d *delivery) {
	delete(q.waiting, d.id)
	d.element = q.ready.PushBack(d)
}

// sweep brings back what was not acknowledged in time, drops what is too old,
// and gives the next moment at which there is something to bring back.
func (q *queue) sweep(now time.Time) (next time.Time) {
	for _, d := range q.waiting {
		switch {
		case now.Sub(d.message.PublishTime) > Retention:
			q.finish(d)
		case !d.deadline.After(now):
			q.release(d)
		case next.IsZero() || d.deadline.Before(next):
			next = d.deadline
		}
	}
	for e := q.ready.Front(); e != nil && now.Sub(e.Value.(*delivery).message.PublishTime) > Retention; e = q.ready.Front() {
		q.finish(e.Value.(*delivery))
	}
	return next
}

// take delivers up to n messages.
func (q *queue) take(n int, now time.Time) []Received {
	var taken []Received
	for len(taken) < n && q.ready.Len() > 0 {
		d := q.ready.Remove(q.ready.Front()).(*delivery)
		d.element = nil
		d.attempt++
		d.deadline = now.Add(q.settings.AckDeadline)
		q.waiting[d.id] = d
		taken = append(taken, Received{AckID: d.id + "." + strconv.Itoa(d.attempt), Message: *d.message})
	}
	return taken
}

// find gives the delivery that an ackId stands for, if it still waits.
func (q *queue) find(ackID string) *delivery {
	id, _, _ := strings.Cut(ackID, ".")
	if d := q.waiting[id]; d != nil {
		return d
	}
	// Late acknowledgments count, as they do for the vendor, until the message is delivered again.
	for e := q.ready.Front(); e != nil; e = e.Next() {
		if d := e.Value.(*delivery); d.id == id {
			return d
		}
	}
	return nil
}

// Receipt stands for a published message and its deliveries, one for each subscription that got the message.
type Receipt struct {
	ID         string
	deliveries []*delivery
}

// activeFor is how long after its last call a subscriber counts as active.
const activeFor = 3 * time.Second

// maxPatience bounds the whole of a Settle call, unless the caller's patience is longer. Without it, subscribers that
// acknowledge other messages but never these would keep Settle waiting forever.
const maxPatience = 2 * time.Minute

// Settle waits until every active subscription has acknowledged the messages, or dropped them. A subscription is active
// while a pull runs, and for activeFor after its last pull ended or its last acknowledgment arrived. Settle does not wait
// for the other subscriptions. It gives up when the broker gets no acknowledgment at all for patience, after maxPatience
// in all, or when ctx ends. It reports whether no delivery is left to wait for.
func (b *Broker) Settle(ctx context.Context, receipts []Receipt, patience time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, max(maxPatience, patience))
	defer cancel()
	var open []*delivery
	for _, r := range receipts {
		open = append(open, r.deliveries...)
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		b.mu.Lock()
		open = b.stillOpen(open)
		changed := b.changed
		b.mu.Unlock()
		if len(open) == 0 {
			return true
		}
		select {
		case <-changed:
			timer.Reset(patience)
		case <-timer.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// stillOpen returns the deliveries that active subscriptions have not finished. It reuses the slice. The caller holds b.mu.
func (b *Broker) stillOpen(deliveries []*delivery) []*delivery {
	now := b.now()
	open := deliveries[:0]
	for _, d := range deliveries {
		q := d.queue
		active := q.pullers > 0 || !q.lastSeen.IsZero() && now.Sub(q.lastSeen) < activeFor
		if !d.done && active {
			open = append(open, d)
		}
	}
	return open
}
