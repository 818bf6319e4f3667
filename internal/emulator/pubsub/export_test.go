package pubsub

// Backlog counts a subscription's messages that are not acknowledged.
func (b *Broker) Backlog(name string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	q, err := b.queue(name)
	if err != nil {
		return 0
	}
	return q.len()
}
