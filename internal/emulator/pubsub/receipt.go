package pubsub

import (
	"context"
	"time"
)

// Receipt stands for a published message.
type Receipt struct {
	ID         string
	deliveries []*delivery
}

// activeFor is how long after its last call a subscriber counts as active.
const activeFor = 3 * time.Second

// maxPatience bounds a wait for subscribers that go on acknowledging, but never
// what is waited for.
const maxPatience = 2 * time.Minute

// Settle waits until every active subscriber has acknowledged the messages. A
// subscription that was not pulled in the last seconds is not
// waited for. It gives up when nothing at all was acknowledged for the given
// patience, and reports whether all was acknowledged that it waited for.
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
