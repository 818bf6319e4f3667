// Package pubsub is a small Cloud Pub/Sub broker in memory: topics,
// subscriptions that are pulled, acknowledgment deadlines and redelivery.
//
// It keeps the vendor's promises and no more: a message is delivered at least
// once to each subscription that existed when it was published, in no promised
// order. Memory is bounded: a subscription holds at most [MaxBacklog] messages
// for at most [Retention].
package pubsub

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/slice"
)

// What the broker holds at most.
const (
	MaxBacklog = 100_000            // messages of one subscription; the oldest go first
	Retention  = 7 * 24 * time.Hour // of a message that is not acknowledged
)

// DefaultAckDeadline is how long a subscriber has to acknowledge, unless its
// subscription says otherwise.
const DefaultAckDeadline = 10 * time.Second

// ErrNotFound says that there is no such topic or subscription.
var ErrNotFound = errors.New("resource not found")

// ErrExists says that a topic or subscription of that name exists.
var ErrExists = errors.New("resource already exists")

// Error is [ErrNotFound] or [ErrExists] about a topic or a subscription.
type Error struct {
	Err      error
	Resource string // its whole name
}

func (e *Error) Error() string { return e.Err.Error() + ": " + e.Resource }

func (e *Error) Unwrap() error { return e.Err }

// Message is a published message.
type Message struct {
	ID          string            `json:"id"`
	Data        []byte            `json:"data"`
	Attributes  map[string]string `json:"attributes,omitempty"`
	OrderingKey string            `json:"orderingKey,omitempty"`
	PublishTime time.Time         `json:"publishTime"`
}

// Subscription is what a subscription was set up with.
type Subscription struct {
	Name        string        `json:"name"`  // projects/P/subscriptions/S
	Topic       string        `json:"topic"` // projects/P/topics/T; empty: every topic of the project
	AckDeadline time.Duration `json:"ackDeadline"`
}

// Broker holds all topics and subscriptions. Its methods may be called at the
// same time.
type Broker struct {
	now func() time.Time

	mu            sync.Mutex
	lastID        int64
	lastPublished time.Time
	topics        map[string]bool
	subscriptions map[string]*queue
	changed       chan struct{} // closed when a message was acknowledged or dropped
}

// New makes an empty broker. now is its clock; waits use real timers.
func New(now func() time.Time) *Broker {
	return &Broker{now: now, topics: map[string]bool{}, subscriptions: map[string]*queue{}, changed: make(chan struct{})}
}

// CreateTopic makes a topic; it fails with [ErrExists] if there is one.
func (b *Broker) CreateTopic(name string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.topics[name] {
		return &Error{ErrExists, name}
	}
	b.topics[name] = true
	return nil
}

// HasTopic reports whether a topic exists.
func (b *Broker) HasTopic(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.topics[name]
}

// DeleteTopic removes a topic. Its subscriptions stay, without a topic.
func (b *Broker) DeleteTopic(name string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.topics[name] {
		return &Error{ErrNotFound, name}
	}
	delete(b.topics, name)
	for _, q := range b.subscriptions {
		if q.settings.Topic == name {
			q.settings.Topic = "_deleted-topic_"
		}
	}
	return nil
}

// Topics gives the names of a project's topics, sorted.
func (b *Broker) Topics(project string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return inProject(maps.Keys(b.topics), project)
}

// CreateSubscription makes a subscription; it fails with [ErrExists] if there is
// one, with [ErrNotFound] if its topic is missing.
func (b *Broker) CreateSubscription(s Subscription) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.subscriptions[s.Name] != nil {
		return &Error{ErrExists, s.Name}
	}
	if s.Topic != "" && !b.topics[s.Topic] {
		return &Error{ErrNotFound, s.Topic}
	}
	s.AckDeadline = cmp.Or(s.AckDeadline, DefaultAckDeadline)
	b.subscriptions[s.Name] = newQueue(s)
	return nil
}

// Subscription gives a subscription's settings.
func (b *Broker) Subscription(name string) (Subscription, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q, err := b.queue(name)
	if err != nil {
		return Subscription{}, err
	}
	return q.settings, nil
}

// Subscriptions gives the settings of a project's subscriptions, by name.
func (b *Broker) Subscriptions(project string) []Subscription {
	b.mu.Lock()
	defer b.mu.Unlock()
	names := inProject(maps.Keys(b.subscriptions), project)
	return slice.Map(names, func(name string) Subscription { return b.subscriptions[name].settings })
}

// DeleteSubscription removes a subscription and its messages.
func (b *Broker) DeleteSubscription(name string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	q, err := b.queue(name)
	if err != nil {
		return err
	}
	delete(b.subscriptions, name)
	q.close()
	b.announce()
	return nil
}

// Publish hands a message to every subscription of the topic and gives a
// receipt with which to wait until it was acknowledged. The broker sets the
// message's id and time; times of publication only grow. A topic that does not
// exist is [ErrNotFound].
func (b *Broker) Publish(topic string, m Message) (Receipt, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.topics[topic] {
		return Receipt{}, &Error{ErrNotFound, topic}
	}
	now := b.now()
	// Microseconds survive the consumers' databases; equal times would hide an order.
	m.PublishTime = now.Truncate(time.Microsecond)
	if !m.PublishTime.After(b.lastPublished) {
		m.PublishTime = b.lastPublished.Add(time.Microsecond)
	}
	b.lastPublished = m.PublishTime
	b.lastID++
	m.ID = fmt.Sprintf("%016d", 10_000_000_000+b.lastID)
	receipt := Receipt{ID: m.ID}
	for _, q := range b.subscriptions {
		if q.settings.Topic == topic || q.settings.Topic == "" && project(q.settings.Name) == project(topic) {
			receipt.deliveries = append(receipt.deliveries, q.add(&m))
		}
	}
	return receipt, nil
}

func (b *Broker) queue(name string) (*queue, error) {
	q := b.subscriptions[name]
	if q == nil {
		return nil, &Error{ErrNotFound, name}
	}
	return q, nil
}

// announce wakes those who wait for acknowledgments.
func (b *Broker) announce() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// project is the project in the name of a topic or a subscription.
func project(name string) string {
	_, rest, _ := strings.Cut(name, "/")
	id, _, _ := strings.Cut(rest, "/")
	return id
}

func inProject(names iter.Seq[string], wanted string) []string {
	found := slices.Sorted(names)
	return slices.DeleteFunc(found, func(name string) bool { return project(name) != wanted })
}

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
