package service

import (
	"container/list"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"sync"
)

// How the files that this process may open are shared out. A connection is an
// open file: without shares, wake streams of agents take them all, and neither
// a request nor the database gets one.
const (
	ownFiles       = 48 // the program's own: database, log, listeners, outgoing calls
	filesPerCPU    = 4  // SQLite has up to two readers per CPU, with two files each
	requestShare   = 512
	maxWakeStreams = 100_000
	unknownFiles   = 1 << 20 // where the system does not tell its limit
)

// shares are how many connections of each kind a replica holds.
type shares struct {
	OpenFiles int // the limit of the process
	Streams   int // wake streams of agents
	Requests  int // connections of everything else
}

// shareFiles divides what is left of the limit after the program's own files:
// the requests get requestShare, or half where there is less.
func shareFiles(limit, cpus int) shares {
	free := max(2, limit-ownFiles-filesPerCPU*cpus)
	streams := min(maxWakeStreams, free-min(requestShare, free/2))
	return shares{OpenFiles: limit, Streams: streams, Requests: free - streams}
}

func currentShares() shares { return shareFiles(OpenFileLimit(), runtime.GOMAXPROCS(0)) }

// LogValue implements slog.LogValuer.
func (s shares) LogValue() slog.Value {
	return slog.GroupValue(slog.Int("openFiles", s.OpenFiles), slog.Int("wakeStreams", s.Streams), slog.Int("requests", s.Requests))
}

// fewStreams is below what a fleet of some size needs.
const fewStreams = 4000

const openFilesRemedy = "raise the limit: LimitNOFILE=1048576 in the systemd unit, or `ulimit -n` in the shell that starts the service"

// openFiles says what the limit of this process would mean for the service: the
// service's own limit may be another.
func (d *doctor) openFiles() {
	s := currentShares()
	detail := fmt.Sprintf("started from this shell, a replica may open %d files: %d wake streams of agents, %d connections of requests", s.OpenFiles, s.Streams, s.Requests)
	if s.Streams < fewStreams {
		d.note("open files", Warning, detail, openFilesRemedy+"; agents without a stream poll every 15 minutes")
		return
	}
	d.note("open files", Fine, detail, "")
}

// gate is a listener that holds at most a number of connections for requests.
// At the limit it closes the connection that has been idle the longest, and
// accepts no other until there is room. A hijacked connection no longer counts.
type gate struct {
	net.Listener
	limit int

	mu     sync.Mutex
	room   sync.Cond
	open   int
	idle   list.List // of net.Conn, the longest idle first
	waits  map[net.Conn]*list.Element
	closed bool
}

func newGate(on net.Listener, limit int) *gate {
	g := &gate{Listener: on, limit: limit, waits: map[net.Conn]*list.Element{}}
	g.room.L = &g.mu
	return g
}

// Accept implements net.Listener.
func (g *gate) Accept() (net.Conn, error) {
	g.mu.Lock()
	for g.open >= g.limit && !g.closed {
		if oldest := g.idle.Front(); oldest != nil {
			c := g.idle.Remove(oldest).(net.Conn)
			delete(g.waits, c)
			g.mu.Unlock()
			_ = c.Close() // its server notices, and calls connState
			g.mu.Lock()
			continue
		}
		g.room.Wait()
	}
	g.mu.Unlock()
	return g.Listener.Accept()
}

// Close implements net.Listener.
func (g *gate) Close() error {
	g.mu.Lock()
	g.closed = true
	g.room.Broadcast()
	g.mu.Unlock()
	return g.Listener.Close()
}

// connState is called by the server for each change of a connection. The server
// calls it for a new connection before it accepts the next.
func (g *gate) connState(c net.Conn, state http.ConnState) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if place, idle := g.waits[c]; idle {
		g.idle.Remove(place)
		delete(g.waits, c)
	}
	switch state {
	case http.StateNew:
		g.open++
	case http.StateIdle:
		g.waits[c] = g.idle.PushBack(c)
		g.room.Broadcast()
	case http.StateHijacked, http.StateClosed:
		g.open--
		g.room.Broadcast()
	case http.StateActive:
	}
}
