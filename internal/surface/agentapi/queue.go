package agentapi

import (
	"encoding/json"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agentdevice"
)

// The commands that may wait to be written to streams: of one device, and of a replica.
const (
	maxQueued    = 16
	maxQueuedAll = 4096
)

// What becomes of a command for a device whose stream takes commands. Each command is
// counted once.
const (
	Written = "written" // to the connection: the device may have it
	NoPlace = "no_place"
	Lost    = "lost" // it had a place, and was not written, or not whole
)

// CommandOutcomes lists them.
func CommandOutcomes() []string { return []string{Written, NoPlace, Lost} }

// place is a command that has a place in the queue of its device's stream. The place
// belongs to the device, not to the stream: a newer stream writes what the older has not.
type place struct {
	agentdevice.StreamCommand
	hub  *Hub
	used atomic.Bool
}

// Reserve returns a place in the queue of the device's stream; nil: this replica has no
// stream of the device that takes commands, or the queue is full. The caller calls Leave
// in any case.
func (h *Hub) Reserve(c agentdevice.StreamCommand) agentdevice.Place {
	h.mu.Lock()
	defer h.mu.Unlock()
	s, ok := h.streams[c.DeviceID]
	if !ok || !s.commands {
		return nil
	}
	if h.queued >= maxQueuedAll || h.places[c.DeviceID] >= maxQueued {
		h.count(NoPlace)
		return nil
	}
	h.queued++
	h.places[c.DeviceID]++
	return &place{StreamCommand: c, hub: h}
}

// Use implements agentdevice.Place.
func (p *place) Use() {
	h := p.hub
	p.used.Store(true)
	h.mu.Lock()
	s, ok := h.streams[p.DeviceID]
	if ok = ok && s.commands; ok {
		s.queue = append(s.queue, p)
		s.signal()
	}
	h.mu.Unlock()
	if !ok {
		p.lost()
	}
}

// Leave implements agentdevice.Place.
func (p *place) Leave() {
	if !p.used.Load() {
		p.free()
	}
}

// free makes room for another command.
func (p *place) free() {
	h := p.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	h.queued--
	if h.places[p.DeviceID]--; h.places[p.DeviceID] == 0 {
		delete(h.places, p.DeviceID)
	}
}

func (p *place) lost() {
	p.free()
	p.hub.count(Lost)
	p.StreamCommand.Lost()
}

// take returns the commands that the stream is to write. Those of a stream that was
// replaced are the newer stream's.
func (h *Hub) take(s *stream) []*place {
	h.mu.Lock()
	defer h.mu.Unlock()
	queue := s.queue
	s.queue = nil
	return queue
}

// writeCommands writes what is queued. After an error the stream is to end; what was not
// written is lost.
func (h *Hub) writeCommands(s *stream) error {
	var failed error
	for _, p := range h.take(s) {
		if failed == nil {
			failed = h.writeCommand(s, p)
		}
		if failed != nil {
			p.lost()
		}
	}
	return failed
}

// writeCommand returns an error of the connection. A command that cannot be signed, is
// too large or is too late is lost without one.
func (h *Hub) writeCommand(s *stream, p *place) error {
	text, ok := p.event(h.now())
	if !ok {
		p.lost()
		return nil
	}
	if err := s.write(h.now(), text); err != nil {
		return err
	}
	p.free()
	h.count(Written)
	return nil
}

// event is the text of the command as an event; false: it must not be written.
func (p *place) event(now time.Time) (string, bool) {
	if !now.Before(p.Until) {
		return "", false
	}
	sealed, err := p.Seal()
	if err != nil {
		return "", false
	}
	data, err := json.Marshal(sealed)
	if err != nil || len(data) > protocol.MaxStreamCommand {
		return "", false
	}
	return "event: " + protocol.CommandEvent + "\ndata: " + string(data) + "\n\n", true
}

// lose ends what the stream has not written, when it ends.
func (h *Hub) lose(s *stream) {
	for _, p := range h.take(s) {
		p.lost()
	}
}

func (h *Hub) count(outcome string) {
	if h.Counted != nil {
		h.Counted(outcome)
	}
}
