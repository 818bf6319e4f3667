package pubsub

import (
	"context"
	"time"
)

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
