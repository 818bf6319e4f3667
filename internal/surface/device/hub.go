package device

import (
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/agentproto"
)

// Times and limits of wake streams.
const (
	heartbeat    = 55 * time.Second // comments keep proxies and the agent from giving up
	writeLimit   = 10 * time.Second // a device that does not read is dropped
	streamsLimit = 100_000          // a replica takes no more; agents then poll
)

// Hub holds the wake streams of a replica: one for each device, of which the
// newest counts. A stream is served by a small goroutine of its own on the
// bare connection, so that an idle device costs a few KiB.
type Hub struct {
	now     func() time.Time
	mu      sync.Mutex
	streams map[string]*stream
	closed  bool
	running sync.WaitGroup
}

type stream struct {
	conn net.Conn
	wake chan struct{} // of one place; closed: end the stream
}

// NewHub returns an empty hub.
func NewHub(now func() time.Time) *Hub { return &Hub{now: now, streams: map[string]*stream{}} }

// Wake hints to the devices that there is something to fetch; nil: to all. It
// does not block, and a device without a stream finds out when it next polls.
func (h *Hub) Wake(ids []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if ids == nil {
		for _, s := range h.streams {
			s.hint()
		}
		return
	}
	for _, id := range ids {
		if s, ok := h.streams[id]; ok {
			s.hint()
		}
	}
}

func (s *stream) hint() {
	select {
	case s.wake <- struct{}{}:
	default: // one is under way
	}
}

// Count is how many streams are open.
func (h *Hub) Count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.streams)
}

// Close ends every stream and waits for them.
func (h *Hub) Close() {
	h.mu.Lock()
	h.closed = true
	for id, s := range h.streams {
		delete(h.streams, id)
		close(s.wake)
	}
	h.mu.Unlock()
	h.running.Wait()
}

// add takes a stream in; the device's older one ends.
func (h *Hub) add(id string, s *stream) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	if older, ok := h.streams[id]; ok {
		close(older.wake)
	}
	h.streams[id] = s
	h.running.Add(1)
	return true
}

// remove takes the stream out, unless a newer one has its place.
func (h *Hub) remove(id string, s *stream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.streams[id] == s {
		delete(h.streams, id)
	}
}

// serve writes hints until the device goes, or a newer stream comes.
func (h *Hub) serve(id string, s *stream) {
	defer h.running.Done()
	defer s.conn.Close()
	defer h.remove(id, s)
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		text := "data: w\n\n"
		select {
		case _, open := <-s.wake:
			if !open {
				return
			}
		case <-beat.C:
			text = ": \n\n"
		}
		_ = s.conn.SetWriteDeadline(h.now().Add(writeLimit))
		if _, err := io.WriteString(s.conn, text); err != nil {
			return
		}
	}
}

// wake opens the device's stream. The response is written by hand on the bare
// connection: what net/http keeps for a request would cost five times as much.
func (d *Door) wake(w http.ResponseWriter, r *http.Request, v visit) {
	hijacker, ok := w.(http.Hijacker)
	if !ok || d.Hub.Count() >= streamsLimit {
		d.refuse(w, r, &agentproto.Refusal{Code: agentproto.Busy, Message: "no more streams here: poll", RetryAfter: 60})
		return
	}
	conn, _, err := hijacker.Hijack()
	if err != nil {
		d.refuse(w, r, err)
		return
	}
	s := &stream{conn: conn, wake: make(chan struct{}, 1)}
	const head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\nX-Accel-Buffering: no\r\nConnection: close\r\n\r\n"
	_ = conn.SetDeadline(time.Time{})
	if _, err := io.WriteString(conn, head+": \n\n"); err != nil || !d.Hub.add(v.device.ID, s) {
		conn.Close()
		return
	}
	if v.device.Open > 0 {
		s.hint() // what came before the stream was open
	}
	go d.Hub.serve(v.device.ID, s)
}
