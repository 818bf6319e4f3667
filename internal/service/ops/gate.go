package ops

import (
	"cmp"
	"container/list"
	"errors"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

// Gate is a listener that holds at most a number of connections for requests.
// At the limit it closes the connection that has been idle the longest, or else the one that
// has brought no whole request for the longest, if for more than patience, and
// accepts no other until there is room. A hijacked connection no longer counts.
type Gate struct {
	*net.TCPListener
	limit int

	mu      sync.Mutex
	changed sync.Cond
	open    int
	unread  queue // accepted, and no request has been read
	idle    queue
	leaving bool
	closed  bool
}

// patience is how long a connection may be at its first request when others wait.
const patience = time.Second

// NewGate returns a gate in front of a listener.
func NewGate(on *net.TCPListener, limit int) *Gate {
	g := &Gate{TCPListener: on, limit: limit, unread: newQueue(), idle: newQueue()}
	g.changed.L = &g.mu
	return g
}

// quiet is how long no connection comes before a gate that is left closes: longer than a
// proxy in the same network takes to complete one that has begun.
const quiet = 20 * time.Millisecond

// Accept implements net.Listener.
func (g *Gate) Accept() (net.Conn, error) {
	for {
		leaving := g.room()
		if leaving {
			g.hurry()
		}
		c, err := g.TCPListener.Accept()
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return c, err
		}
		if leaving { // no connection waits
			return nil, errors.Join(net.ErrClosed, g.Close())
		}
	}
}

// room waits until a connection may be accepted, and reports whether the gate is being left.
func (g *Gate) room() (leaving bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.open >= g.limit && !g.closed {
		c, left := g.idle.first(0)
		if c == nil {
			c, left = g.unread.first(patience)
		}
		if c != nil {
			g.mu.Unlock()
			_ = c.Close() // its server notices, and calls ConnState
			g.mu.Lock()
			continue
		}
		wake := time.AfterFunc(cmp.Or(left, time.Hour), func() {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.changed.Broadcast()
		})
		g.changed.Wait()
		wake.Stop()
	}
	return g.leaving
}

// Leave closes the gate and loses no request of a connection that a client has opened:
// those that wait to be accepted are, and each gets to send a request. http.Server.Shutdown
// drops both, and what a proxy has sent there it must not send again. On Linux, without Multipath
// TCP, no other connection begins; elsewhere one may, and is lost if it begins as the gate
// closes. It returns after at most the limit; a connection that has sent nothing by then is
// dropped.
func (g *Gate) Leave(limit time.Duration) {
	expired := false
	defer time.AfterFunc(limit, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		expired = true
		g.changed.Broadcast()
	}).Stop()
	_ = refuseNew(g.TCPListener) // without it few are lost
	g.mu.Lock()
	g.leaving = true
	g.hurry()
	for !expired && (!g.closed || len(g.unread.places) > 0) {
		g.changed.Wait()
	}
	g.mu.Unlock()
	_ = g.Close()
}

// hurry ends Accept after quiet. A socket's deadline is in real time, also where a test
// moves the clock.
func (g *Gate) hurry() {
	_ = g.SetDeadline(time.Now().Add(quiet)) //nolint:forbidigo // see above
}

// Close implements net.Listener. Closing again does nothing.
func (g *Gate) Close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil
	}
	g.closed = true
	g.changed.Broadcast()
	return g.TCPListener.Close()
}

// ConnState is called by the server for each change of a connection. The server
// calls it for a new connection before it accepts the next.
func (g *Gate) ConnState(c net.Conn, state http.ConnState) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.unread.drop(c)
	g.idle.drop(c)
	switch state {
	case http.StateNew:
		g.open++
		g.unread.add(c)
	case http.StateIdle:
		g.idle.add(c)
	case http.StateHijacked, http.StateClosed:
		g.open--
	case http.StateActive:
	}
	g.changed.Broadcast()
}

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
