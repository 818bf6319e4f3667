package frame

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/wait"
)

// Limits of live streams.
const (
	maxStreams     = 2000             // a replica takes no more; pages then stay as they are
	maxUserStreams = 8                // of one person
	maxTopics      = 64               // of one stream
	streamLife     = 5 * time.Minute  // then the browser reconnects, and its session is checked again
	streamBeat     = 25 * time.Second // comments keep proxies from giving up
	streamPause    = 400 * time.Millisecond
	streamWrite    = 10 * time.Second
	maxRecent      = 512 // hints that are kept for streams that open a moment after their page was made
)

// Hub notifies pages that are open that something changed. It says no more than
// the topic ("asset:<id>", "assets"): the page fetches the part again, with the
// rights of its user.
type Hub struct {
	id       string // of this replica's hub
	mu       sync.Mutex
	streams  map[*stream]struct{}
	received uint64   // hints until now
	recent   []string // the last of them
	closed   bool
	running  sync.WaitGroup
}

// stream is one open page.
type stream struct {
	company, user string
	topics        []string
	mu            sync.Mutex
	pending       []string // bounded by topics
	signal        chan struct{}
	finish        context.CancelFunc // ends what serves it
}

// NewHub returns an empty hub.
func NewHub() *Hub { return &Hub{id: resource.NewID(), streams: map[*stream]struct{}{}} }

// Mark says what was heard until now. A page carries the mark of the moment
// before it was read, and its stream is informed what was heard since.
func (h *Hub) Mark() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.id + "." + strconv.FormatUint(h.received, 10)
}

// since returns to a stream what it missed after the mark: everything may have
// changed if the mark is another replica's, or older than what is kept.
func (h *Hub) since(mark string, s *stream) {
	id, text, _ := strings.Cut(mark, ".")
	received, err := strconv.ParseUint(text, 10, 64)
	h.mu.Lock()
	defer h.mu.Unlock()
	missed := h.received - received
	if err != nil || id != h.id || received > h.received || missed > uint64(len(h.recent)) {
		s.tell(s.topics...)
		return
	}
	for _, hint := range h.recent[len(h.recent)-int(missed):] {
		s.hear(hint)
	}
}

// Changed takes hints as resource.Change writes them; nil: anything may have
// changed. It does not block.
func (h *Hub) Changed(hints []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.keep(hints)
	for s := range h.streams {
		if hints == nil {
			s.tell(s.topics...)
			continue
		}
		for _, hint := range hints {
			s.hear(hint)
		}
	}
}

func (h *Hub) keep(hints []string) {
	if hints == nil {
		h.received, h.recent = h.received+1, nil // every earlier mark is now too old
		return
	}
	h.received += uint64(len(hints))
	h.recent = append(h.recent, hints...)
	if over := len(h.recent) - maxRecent; over > 0 {
		h.recent = slices.Clone(h.recent[over:])
	}
}

// hear passes to the stream a hint that concerns it.
func (s *stream) hear(hint string) {
	company, kind, id := resource.ParseChange(hint)
	if company != s.company {
		return
	}
	if kind == resource.CompanyKind {
		s.finish() // the browser connects again, and is let in as things are then
	}
	s.tell(kind + "s")
	s.tell(s.about(kind, id)...)
}

// about are the page's topics that a hint may mean; one without an id means
// some thing of the kind.
func (s *stream) about(kind, id string) []string {
	if id != "" {
		return []string{kind + ":" + id}
	}
	return slices.DeleteFunc(slices.Clone(s.topics), func(t string) bool { return !strings.HasPrefix(t, kind+":") })
}

// tell notes topics that the page listens to.
func (s *stream) tell(topics ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range topics {
		if slices.Contains(s.topics, t) && !slices.Contains(s.pending, t) {
			s.pending = append(s.pending, t)
		}
	}
	if len(s.pending) > 0 {
		wait.Wake(s.signal)
	}
}

func (s *stream) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	pending := s.pending
	s.pending = nil
	return pending
}

// Close ends every stream and waits for them.
func (h *Hub) Close() {
	h.mu.Lock()
	h.closed = true
	for s := range h.streams {
		s.finish()
	}
	h.mu.Unlock()
	h.running.Wait()
}

func (h *Hub) add(s *stream) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	own := 0
	for other := range h.streams {
		if other.user == s.user {
			own++
		}
	}
	if h.closed || len(h.streams) >= maxStreams || own >= maxUserStreams {
		return false
	}
	h.streams[s] = struct{}{}
	h.running.Add(1)
	return true
}

func (h *Hub) remove(s *stream) {
	h.mu.Lock()
	delete(h.streams, s)
	h.mu.Unlock()
	h.running.Done()
}

// live serves GET /live?on=asset:<id>&on=assets&since=<mark>.
func (f *Frame) live(v *Visit) error {
	topics := v.Query()["on"]
	if len(topics) == 0 || len(topics) > maxTopics {
		return fault.Invalid("a live page listens to 1 to 64 topics")
	}
	ctx, finish := context.WithCancel(v.Context())
	defer finish()
	s := &stream{company: v.Company.ID, user: v.User.ID, topics: topics, signal: make(chan struct{}, 1), finish: finish}
	if !f.Hub.add(s) {
		v.w.Header().Set("Retry-After", "30")
		v.w.WriteHeader(http.StatusServiceUnavailable)
		return nil
	}
	defer f.Hub.remove(s)
	if mark := v.Query().Get("since"); mark != "" {
		f.Hub.since(mark, s)
	}
	h := v.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no")
	control := http.NewResponseController(v.w)
	_ = control.SetReadDeadline(time.Time{}) // the person only listens; the request is read
	s.serve(ctx, v, control)
	return nil
}

func (s *stream) serve(ctx context.Context, v *Visit, control *http.ResponseController) {
	beat, life := time.NewTicker(streamBeat), time.NewTimer(streamLife)
	defer beat.Stop()
	defer life.Stop()
	text := "retry: 2000\n\n"
	for {
		_ = control.SetWriteDeadline(v.frame.Now().Add(streamWrite))
		if _, err := io.WriteString(v.w, text); err != nil || control.Flush() != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-life.C:
			return
		case <-beat.C:
			if v.Stands() != nil {
				return
			}
			text = ": \n\n"
		case <-s.signal:
			wait.For(ctx, streamPause) // so that a burst of changes becomes one event
			text = fmt.Sprintf("data: %s\n\n", strings.Join(s.take(), " "))
		}
	}
}
