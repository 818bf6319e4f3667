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

// Settle waits until every active subscriber has acknowledged the messages. A
// subscription that nobody pulls, or has pulled in the last seconds, is not
// waited for. It gives up when nothing was acknowledged for the given patience,
// and reports whether all was.
func (b *Broker) Settle(ctx context.Context, receipts []Receipt, patience time.Duration) bool {
	var open []*delivery
	for _, r := range receipts {
		open = append(open, r.deliveries...)
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		b.mu.Lock()
		before := len(open)
		open = b.stillOpen(open)
		changed := b.changed
		b.mu.Unlock()
		if len(open) == 0 {
			return true
		}
		if len(open) < before {
			timer.Reset(patience)
		}
		select {
		case <-changed:
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
		active := d.queue.pullers > 0 || !d.queue.lastSeen.IsZero() && now.Sub(d.queue.lastSeen) < activeFor
		if !d.done && active {
			open = append(open, d)
		}
	}
	return open
}
