package pubsub

import (
	"maps"
	"slices"
	"time"
)

// Snapshot is all that a broker holds, to be kept in a file.
type Snapshot struct {
	LastID        int64           `json:"lastId"`
	LastPublished time.Time       `json:"lastPublished"`
	Topics        []string        `json:"topics"`
	Subscriptions []QueueSnapshot `json:"subscriptions"`
}

// QueueSnapshot is a subscription with its unacknowledged messages.
type QueueSnapshot struct {
	Subscription
	Messages []Message `json:"messages,omitempty"`
}

// Snapshot gives what the broker holds.
func (b *Broker) Snapshot() Snapshot {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := Snapshot{LastID: b.lastID, LastPublished: b.lastPublished, Topics: slices.Sorted(maps.Keys(b.topics))}
	for _, name := range slices.Sorted(maps.Keys(b.subscriptions)) {
		q := b.subscriptions[name]
		kept := QueueSnapshot{Subscription: q.settings}
		for e := q.ready.Front(); e != nil; e = e.Next() {
			kept.Messages = append(kept.Messages, *e.Value.(*delivery).message)
		}
		for _, d := range q.waiting {
			kept.Messages = append(kept.Messages, *d.message)
		}
		slices.SortFunc(kept.Messages, func(a, b Message) int { return a.PublishTime.Compare(b.PublishTime) })
		s.Subscriptions = append(s.Subscriptions, kept)
	}
	return s
}

// Restore replaces all that the broker holds. Messages that waited for their
// acknowledgment are delivered again. Pulls under way end.
func (b *Broker) Restore(s Snapshot) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, q := range b.subscriptions {
		q.close()
	}
	b.lastID, b.lastPublished = s.LastID, s.LastPublished
	b.topics, b.subscriptions = map[string]bool{}, map[string]*queue{}
	for _, name := range s.Topics {
		b.topics[name] = true
	}
	for _, kept := range s.Subscriptions {
		q := newQueue(kept.Subscription)
		for _, m := range kept.Messages {
			q.add(&m)
		}
		b.subscriptions[kept.Name] = q
	}
	b.announce()
}
