package ops

import (
	"container/list"
	"net"
	"time"
)

// queue is connections in the order in which they were added.
type queue struct {
	order  *list.List // of queued
	places map[net.Conn]*list.Element
}

type queued struct {
	conn  net.Conn
	since time.Time
}

func newQueue() queue { return queue{list.New(), map[net.Conn]*list.Element{}} }

func (q queue) add(c net.Conn) {
	q.places[c] = q.order.PushBack(queued{c, time.Now()}) //nolint:forbidigo // the time of sockets, as in Gate.hurry
}

func (q queue) drop(c net.Conn) {
	if place, there := q.places[c]; there {
		q.order.Remove(place)
		delete(q.places, c)
	}
}

// first takes the connection out that has been there the longest, if it has been for an age.
// Otherwise it returns none, and how long that one still has, or 0 if there is none.
func (q queue) first(age time.Duration) (net.Conn, time.Duration) {
	oldest := q.order.Front()
	if oldest == nil {
		return nil, 0
	}
	c := oldest.Value.(queued)
	if left := age - time.Since(c.since); left > 0 { //nolint:forbidigo // as above
		return nil, left
	}
	q.drop(c.conn)
	return c.conn, 0
}
