package pubsub

import (
	"context"
	"time"
)

// Received is a message together with what acknowledges it.
type Received struct {
	AckID   string
	Message Message
}

// Pull delivers at most limit messages. If there are none it waits for up to
// wait, then delivers none. It ends early with the context's error.
func (b *Broker) Pull(ctx context.Context, subscription string, limit int, wait time.Duration) ([]Received, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q, err := b.queue(subscription)
	if err != nil {
		return nil, err
	}
	q.pullers++
	defer func() {
		q.pullers--
		q.lastSeen = b.now()
	}()
	timeout := time.NewTimer(wait)
	defer timeout.Stop()
	for more := true; ; {
		if q.closed { // deleted, or replaced by a restore: the next pull will tell
			return nil, nil
		}
		now := b.now()
		next := q.sweep(now)
		if taken := q.take(limit, now); len(taken) > 0 || !more {
			return taken, nil
		}
		if more, err = b.sleep(ctx, q, next, now, timeout); err != nil {
			return nil, err
		}
	}
}

// sleep waits, without the lock, until something may have become ready. It
// reports false when the pull's time is over.
func (b *Broker) sleep(ctx context.Context, q *queue, next, now time.Time, timeout *time.Timer) (bool, error) {
	arrived := q.arrived
	var lapse <-chan time.Time
	if !next.IsZero() {
		timer := time.NewTimer(next.Sub(now))
		defer timer.Stop()
		lapse = timer.C
	}
	b.mu.Unlock()
	defer b.mu.Lock()
	select {
	case <-arrived:
		return true, nil
	case <-lapse:
		return true, nil
	case <-timeout.C:
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// Acknowledge takes messages out of the subscription. Unknown ackIds are
// ignored, as the vendor does.
func (b *Broker) Acknowledge(subscription string, ackIDs []string) error {
	return b.each(subscription, ackIDs, func(q *queue, d *delivery) { q.finish(d) }, func(*queue) { b.announce() })
}

// ModifyAckDeadline gives delivered messages another deadline, counted from now;
// zero makes them ready again at once.
func (b *Broker) ModifyAckDeadline(subscription string, ackIDs []string, deadline time.Duration) error {
	return b.each(subscription, ackIDs, func(q *queue, d *delivery) {
		switch {
		case d.element != nil:
		case deadline <= 0:
			q.release(d)
		default:
			d.deadline = b.now().Add(deadline)
		}
	}, (*queue).wake)
}

// each changes the deliveries that a subscription knows of some ackIds, and then ends.
func (b *Broker) each(subscription string, ackIDs []string, change func(*queue, *delivery), end func(*queue)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	q, err := b.queue(subscription)
	if err != nil {
		return err
	}
	q.lastSeen = b.now()
	for _, id := range ackIDs {
		if d := q.find(id); d != nil {
			change(q, d)
		}
	}
	end(q)
	return nil
}
