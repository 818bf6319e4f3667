package agentapi_test

import (
	"bufio"
	"errors"
	"io"
	"log/slog"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/surface/agentapi"
	"github.com/musterhq/muster/test/poll"
)

// post is a service with a hub that counts what became of commands.
type post struct {
	t   *testing.T
	hub *agentapi.Hub
	on  *httptest.Server
	now func() time.Time

	mu       sync.Mutex
	outcomes map[string]int
	lost     int
	close    func() // closes the connection of the stream that was opened last
}

func newPost(t *testing.T) *post {
	t.Parallel()
	p := &post{t: t, outcomes: map[string]int{}, now: time.Now}
	p.hub = agentapi.NewHub(func() time.Time { return p.now() }, 1000)
	p.hub.Counted = func(outcome string) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.outcomes[outcome]++
	}
	p.on = httptest.NewServer((&agentapi.API{Service: open{}, Hub: p.hub, Log: slog.New(slog.DiscardHandler)}).Handler())
	t.Cleanup(p.on.Close)
	t.Cleanup(p.hub.Close)
	return p
}

// listen opens a stream of the device and reads it until its first hint.
func (p *post) listen(device string, commands bool) *bufio.Reader {
	p.t.Helper()
	r := wakeRequest(p.t, p.on.URL, device, "")
	if commands {
		r.Header.Set(protocol.HeaderWake, protocol.WakeCommands)
	}
	answer, err := p.on.Client().Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	p.close = func() { _ = answer.Body.Close() }
	p.t.Cleanup(p.close)
	events := bufio.NewReader(answer.Body)
	hints(p.t, events, true)
	return events
}

func (p *post) reserve(device, payload string) agentdevice.Place {
	return p.hub.Reserve(agentdevice.StreamCommand{DeviceID: device, Until: time.Now().Add(time.Minute),
		Seal: func() (protocol.Envelope, error) {
			if payload == "" {
				return protocol.Envelope{}, errors.New("cannot be signed")
			}
			return protocol.Envelope{Kind: protocol.KindCommand, Payload: payload}, nil
		},
		Lost: func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.lost++
		}})
}

func (p *post) send(device, payload string) {
	p.t.Helper()
	place := p.reserve(device, payload)
	if place == nil {
		p.t.Fatal("no place in the queue of a device that listens")
	}
	defer place.Leave()
	place.Use()
}

func (p *post) counted(outcome string, want int) {
	p.t.Helper()
	poll.Until(p.t, outcome, func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.outcomes[outcome] != want || outcome == agentapi.Lost && p.lost != want {
			return errors.New("another count")
		}
		return nil
	})
}

// event reads the next event that is no comment.
func event(from *bufio.Reader) (kind, data string, err error) {
	for {
		line, err := from.ReadString('\n')
		if err != nil {
			return "", "", err
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch {
		case name == "event":
			kind = value
		case name == "data":
			data = value
		case line == "\n" && data != "":
			return kind, data, nil
		}
	}
}

func TestQueue_WritesCommandsInOrder(t *testing.T) {
	p := newPost(t)
	events := p.listen("a", true)
	for _, payload := range []string{"one", "two", "three"} {
		p.send("a", payload)
		kind, data, err := event(events)
		if err != nil || kind != "command" || !strings.Contains(data, `"payload":"`+payload+`"`) {
			t.Fatalf("the stream has %s %s, %v; want %s", kind, data, err, payload)
		}
	}
	p.counted(agentapi.Written, 3)
	p.hub.Wake([]string{"a"})
	if kind, data, err := event(events); err != nil || kind != "" || data != "w" {
		t.Errorf("a hint is %s %s, %v", kind, data, err)
	}
}

// Commands go only to devices that asked for them, and listen here.
func TestQueue_NoPlace(t *testing.T) {
	p := newPost(t)
	p.listen("old", false)
	for _, device := range []string{"old", "elsewhere"} {
		if p.reserve(device, "one") != nil {
			t.Errorf("%s has a place", device)
		}
	}
}

// What is reserved and not used takes its room only until it is left. A full queue has no
// place.
func TestQueue_Bounded(t *testing.T) {
	p := newPost(t)
	p.listen("a", true)
	p.listen("b", true)
	for range 2 {
		var places []agentdevice.Place
		for place := p.reserve("a", "one"); place != nil; place = p.reserve("a", "one") {
			if places = append(places, place); len(places) > 1000 {
				t.Fatal("the queue of a device has no bound")
			}
		}
		if p.reserve("b", "one") == nil {
			t.Error("a full queue leaves another device without a place")
		}
		for _, place := range places {
			place.Leave()
		}
	}
	p.counted(agentapi.NoPlace, 2)
}

// A replica has a bound for all devices together.
func TestQueue_BoundedForAll(t *testing.T) {
	p := newPost(t)
	reserved := 0
	for n := range 300 {
		device := strconv.Itoa(n)
		p.listen(device, true)
		for p.reserve(device, "one") != nil {
			reserved++
		}
	}
	if reserved != 4096 {
		t.Errorf("%d places in the queues of 300 devices", reserved)
	}
}

// What cannot be written is lost, and its sender hears of it: its lease has ended, it
// cannot be signed, the connection is broken, the device has ended.
func TestQueue_Lost(t *testing.T) {
	p := newPost(t)
	events := p.listen("a", true)
	p.send("a", "")
	p.counted(agentapi.Lost, 1)
	p.send("a", strings.Repeat("x", protocol.MaxStreamCommand))
	p.counted(agentapi.Lost, 2)
	p.now = func() time.Time { return time.Now().Add(2 * time.Minute) }
	p.send("a", "late")
	p.counted(agentapi.Lost, 3)
	p.now = time.Now
	place := p.reserve("a", "gone")
	p.hub.End([]string{"a"})
	place.Use()
	place.Leave()
	p.counted(agentapi.Lost, 4)
	hints(t, events, true)
	if line, err := io.ReadAll(events); err != nil || strings.Contains(string(line), "gone") {
		t.Errorf("after its end the stream has %q, %v", line, err)
	}
	p.counted(agentapi.Written, 0)
}

// A newer stream writes what the older one has not.
func TestQueue_MovesToTheNewerStream(t *testing.T) {
	p := newPost(t)
	p.listen("a", true)
	place := p.reserve("a", "one")
	events := p.listen("a", true)
	place.Use()
	if kind, data, err := event(events); err != nil || kind != "command" || !strings.Contains(data, "one") {
		t.Errorf("the newer stream has %s %s, %v", kind, data, err)
	}
	place = p.reserve("a", "two")
	p.listen("a", false) // an older agent has taken over
	place.Use()
	p.counted(agentapi.Lost, 1)
}

// A connection that the device has closed takes one write. The next is lost.
func TestQueue_BrokenConnection(t *testing.T) {
	p := newPost(t)
	p.listen("a", true)
	p.close()
	poll.Until(t, "the break is found", func() error {
		place := p.reserve("a", "one")
		if place == nil {
			return nil // the stream is gone
		}
		place.Use()
		return errors.New("it is still there")
	})
	poll.Until(t, "every command is counted", func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.outcomes[agentapi.Lost] != p.lost || p.hub.Count() != 0 {
			return errors.New("not yet")
		}
		return nil
	})
}

// A stream ends when its device has opened a newer one at another replica, and not for an
// older one, or for what another version says.
func TestHub_ReplacedElsewhere(t *testing.T) {
	p := newPost(t)
	events := p.listen("a", true) // its request has the number 1
	p.hub.Replace([]string{agentdevice.OpenedStream("a", 0), agentdevice.OpenedStream("a", 1), agentdevice.OpenedStream("b", 9), "a",
		"a x"})
	p.hub.Wake([]string{"a"})
	hints(t, events, true)
	p.hub.Replace([]string{agentdevice.OpenedStream("a", 2)})
	hints(t, events, false)
	if p.reserve("a", "one") != nil {
		t.Error("the stream that was left has a place for commands")
	}
}
