package agentapi

import (
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/wait"
)

// Times of wake streams.
const (
	heartbeat  = 55 * time.Second // comments keep proxies and the agent from giving up
	writeLimit = 10 * time.Second // a device that does not read is dropped
	busyRetry  = 60               // seconds until a device without a stream asks again
)

// Hub holds the wake streams of a replica: one for each device, of which the
// newest counts. A stream is served by a small goroutine of its own on the
// bare connection, so that an idle device costs a few KiB.
type Hub struct {
	// Counted, unless nil, is called with what became of a command for a stream that takes
	// commands, one of CommandOutcomes. It must not block.
	Counted func(outcome string)
	// Opened, unless nil, is called when a device has opened a stream, with
	// agentdevice.OpenedStream. It must not block.
	Opened func(id string)

	now   func() time.Time
	limit int

	mu      sync.Mutex
	streams map[string]*stream
	// opening holds the streams of requests that are not admitted yet, by the
	// device that they claim to come from.
	opening map[string][]*stream
	open    int // admitted streams, also those that are opening or ending
	closed  bool
	running sync.WaitGroup // counts the same streams as open
	places  map[string]int // places that are reserved or used, by device
	queued  int            // the sum of places
}

// stream is the wake stream of one device.
type stream struct {
	conn net.Conn
	// signals has room for one signal: there is something to write, or phase has changed.
	// It is never closed: a sender may hold the stream longer than the hub does.
	signals  chan struct{}
	hinted   atomic.Bool // a hint is to be written
	phase    atomic.Int32
	sequence int64    // of the request
	commands bool     // the device takes commands on the stream
	queue    []*place // commands to be written; guarded by the hub's mu
}

// The phases of a stream.
const (
	live     int32 = iota
	replaced       // end without a word: the device has a newer stream, or the hub closes
	ended          // hint again, then end: the device is no longer managed
)

// NewHub returns an empty hub that holds up to limit streams. The clock sets
// the deadlines of writes.
func NewHub(now func() time.Time, limit int) *Hub {
	return &Hub{now: now, limit: limit, streams: map[string]*stream{}, opening: map[string][]*stream{}, places: map[string]int{}}
}

// Wake hints to the devices that there is something to fetch; nil: to all. It
// does not block. A device without a stream finds out when it next polls.
func (h *Hub) Wake(ids []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if ids == nil {
		for _, s := range h.streams {
			s.hint()
		}
		for id := range h.opening {
			h.hintOpening(id)
		}
		return
	}
	for _, id := range ids {
		if s, ok := h.streams[id]; ok {
			s.hint()
		}
		h.hintOpening(id)
	}
}

func (h *Hub) hintOpening(id string) {
	for _, s := range h.opening[id] {
		s.hint()
	}
}

// expect has a stream receive hints before its request is checked: what is sent
// between the moment when the device's row was read and the moment when the
// stream is its own would otherwise wait for the next poll.
func (h *Hub) expect(id string, s *stream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.opening[id] = append(h.opening[id], s)
}

// opened ends expect, whether or not the stream was admitted.
func (h *Hub) opened(id string, s *stream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.opening[id] = slices.DeleteFunc(h.opening[id], func(other *stream) bool { return other == s })
	if len(h.opening[id]) == 0 {
		delete(h.opening, id)
	}
}

// End hints to the devices again and ends their streams: the service no
// longer manages them, and their next check-in is answered with the signed
// reason. It does not block. nil, after hints between replicas were lost, only
// wakes every device: one that has ended checks in and learns it.
func (h *Hub) End(ids []string) {
	if ids == nil {
		h.Wake(nil)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, id := range ids {
		if s, ok := h.streams[id]; ok {
			delete(h.streams, id)
			s.end(ended)
		}
		h.hintOpening(id)
	}
}

// Replace ends streams whose devices have opened a newer one, at this replica or at
// another: a device that changes its network leaves a connection behind that takes what
// it never reads. It does not block.
func (h *Hub) Replace(opened []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, one := range opened {
		id, sequence, ok := agentdevice.ParseOpenedStream(one)
		if s := h.streams[id]; ok && s != nil && s.sequence < sequence {
			delete(h.streams, id)
			s.end(replaced)
		}
	}
}

func (s *stream) hint() {
	s.hinted.Store(true)
	s.signal()
}

// signal has the stream's goroutine look what there is to do.
func (s *stream) signal() { wait.Wake(s.signals) }

// end makes the stream's goroutine return. The phase is set before the signal, so
// a signal that was queued already is enough.
func (s *stream) end(phase int32) {
	s.phase.CompareAndSwap(live, phase)
	s.signal()
}

// Count returns how many streams are open.
func (h *Hub) Count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.open
}

// Close ends every stream and waits for them.
func (h *Hub) Close() {
	h.mu.Lock()
	h.closed = true
	for id, s := range h.streams {
		delete(h.streams, id)
		s.end(replaced)
	}
	h.mu.Unlock()
	h.running.Wait()
}

// admit reserves a place for a stream of the device. At the limit only a device
// that has a stream gets one: the new stream replaces the old. Each admitted
// stream calls leave once.
func (h *Hub) admit(id string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, again := h.streams[id]; h.closed || h.open >= h.limit && !again {
		return false
	}
	h.open++
	h.running.Add(1)
	return true
}

func (h *Hub) leave() {
	h.mu.Lock()
	h.open--
	h.mu.Unlock()
	h.running.Done()
}

// add makes an admitted stream the device's own; its older one ends.
func (h *Hub) add(id string, s *stream) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	if older, ok := h.streams[id]; ok {
		if s.commands {
			s.queue, older.queue = older.queue, nil
			s.signal()
		}
		older.end(replaced)
	}
	h.streams[id] = s
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

const (
	streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\nX-Accel-Buffering: no\r\nConnection: " +
		"close\r\n\r\n: \n\n"
	hintEvent = "data: w\n\n"
	beatEvent = ": \n\n"
)

// serve writes the head of the response and then commands and hints, until the device
// goes or the stream is to end.
func (h *Hub) serve(id string, s *stream) {
	defer h.leave()
	defer h.lose(s)
	defer s.conn.Close()
	defer h.remove(id, s)
	if s.write(h.now(), streamHead) != nil {
		return
	}
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		text := beatEvent
		select {
		case <-s.signals:
			text = ""
		case <-beat.C:
		}
		phase := s.phase.Load()
		if phase == replaced || phase == live && h.writeCommands(s) != nil {
			return
		}
		if s.hinted.Swap(false) || phase == ended {
			text = hintEvent
		}
		if text != "" && s.write(h.now(), text) != nil || phase == ended {
			return
		}
	}
}

func (s *stream) write(now time.Time, text string) error {
	_ = s.conn.SetWriteDeadline(now.Add(writeLimit))
	_, err := io.WriteString(s.conn, text)
	return err
}

// wake opens the device's stream. The response is written by hand on the bare
// connection: what net/http keeps for a request would cost five times as much.
func (d *API) wake(w http.ResponseWriter, r *http.Request) {
	id, s := r.Header.Get(protocol.HeaderDevice), &stream{signals: make(chan struct{}, 1)}
	d.Hub.expect(id, s)
	defer d.Hub.opened(id, s)
	d.serve(d.signed(func(w http.ResponseWriter, r *http.Request, v visit) (any, error) {
		return nil, d.open(w, r, v, s)
	}))(w, r)
}

func (d *API) open(w http.ResponseWriter, r *http.Request, v visit, s *stream) error {
	hijacker, ok := w.(http.Hijacker)
	if !ok || !d.Hub.admit(v.device.ID) {
		return &protocol.Refusal{Code: protocol.Busy, Message: "no more wake streams at this replica: poll", RetryAfter: busyRetry}
	}
	conn, _, err := hijacker.Hijack()
	if err != nil {
		d.Hub.leave()
		return err
	}
	_ = conn.SetDeadline(time.Time{})
	s.conn, s.sequence, s.commands = conn, v.sequence, r.Header.Get(protocol.HeaderWake) == protocol.WakeCommands
	if v.device.Open > 0 {
		s.hint() // for what was sent before the stream was open
	}
	if !d.Hub.add(v.device.ID, s) {
		_ = conn.Close() // nothing was written to it
		d.Hub.leave()
		return nil
	}
	go d.Hub.serve(v.device.ID, s)
	if d.Hub.Opened != nil {
		d.Hub.Opened(agentdevice.OpenedStream(v.device.ID, v.sequence))
	}
	return nil
}
