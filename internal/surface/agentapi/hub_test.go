package agentapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/surface/agentapi"
)

// open is a link to which every device is known; each has an open command.
type open struct{ agentapi.Service }

func (open) Authenticate(_ context.Context, r protocol.Request, signature string) (agentdevice.Device, error) {
	if signature == "ended" {
		return agentdevice.Device{}, &protocol.Refusal{Code: protocol.Ended}
	}
	return agentdevice.Device{ID: r.Device, Open: 1}, nil
}

func newHandler(limit int) (*agentapi.Hub, http.Handler) {
	hub := agentapi.NewHub(time.Now, limit)
	return hub, (&agentapi.API{Service: open{}, Hub: hub, Log: slog.New(slog.DiscardHandler)}).Handler()
}

func wakeRequest(t testing.TB, base, id, signature string) *http.Request {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+protocol.Base+"/wake", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for key, value := range map[string]string{protocol.HeaderTime: "1", protocol.HeaderSequence: "1",
		protocol.HeaderDevice: id, protocol.HeaderSignature: signature} {
		r.Header.Set(key, value)
	}
	return r
}

// pipe is the side of a connection that net/http gives away.
type pipe struct {
	*httptest.ResponseRecorder
	conn net.Conn
}

func (p pipe) Hijack() (net.Conn, *bufio.ReadWriter, error) { return p.conn, nil, nil }

// Streams of one device that open at the same moment race only for who is the
// newest. Run with -race: a hint to a stream that is being replaced is a race
// long before it is a panic.
func TestHub_StreamsOfOneDeviceAtOnce(t *testing.T) {
	t.Parallel()
	hub, handler := newHandler(10_000)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				ours, theirs := net.Pipe()
				all.Go(func() { _, _ = io.Copy(io.Discard, theirs) })
				answer := pipe{httptest.NewRecorder(), ours}
				if handler.ServeHTTP(answer, wakeRequest(t, "", "d", "")); answer.Body.Len() > 0 { // refused: the hub is closed
					_ = ours.Close()
				}
				hub.Wake([]string{"d"})
			}
		})
	}
	all.Go(func() {
		for range 200 {
			hub.Wake(nil)
			hub.End([]string{"d"})
		}
	})
	drained := make(chan struct{})
	time.AfterFunc(50*time.Millisecond, func() { hub.Close(); close(drained) })
	all.Wait()
	<-drained
	if n := hub.Count(); n != 0 {
		t.Errorf("%d streams are counted after the drain", n)
	}
}

// stream is a device's wake stream.
func stream(t *testing.T, server *httptest.Server, id string) (*http.Response, *bufio.Reader) {
	t.Helper()
	answer, err := server.Client().Do(wakeRequest(t, server.URL, id, ""))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	return answer, bufio.NewReader(answer.Body)
}

func hints(t *testing.T, from *bufio.Reader, want bool) {
	t.Helper()
	for {
		line, err := from.ReadString('\n')
		if hint := strings.HasPrefix(line, "data:"); err != nil || hint {
			if hint != want {
				t.Errorf("the stream says %q, %v; want a hint: %v", line, err, want)
			}
			return
		}
	}
}

func TestHub_Limit(t *testing.T) {
	t.Parallel()
	hub, handler := newHandler(2)
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	t.Cleanup(hub.Close)
	_, first := stream(t, server, "a")
	_, _ = stream(t, server, "b")
	hints(t, first, true)

	refused, _ := stream(t, server, "c")
	var why protocol.Refusal
	_ = json.NewDecoder(refused.Body).Decode(&why)
	if refused.StatusCode != http.StatusServiceUnavailable || refused.Header.Get("Retry-After") == "" ||
		why.Code != protocol.Busy || !refused.Close {
		t.Errorf("beyond the limit: %d %v %+v, want 503 busy with Retry-After on a connection that closes", refused.StatusCode,
			refused.Header, why)
	}
	again, newer := stream(t, server, "a") // the newer stream replaces the older
	if again.StatusCode != http.StatusOK {
		t.Errorf("a device that has a stream is answered %d", again.StatusCode)
	}
	hints(t, newer, true)
	hints(t, first, false)
}

// between is a link that reads a device without open commands, and has one
// committed right after.
type between struct {
	agentapi.Service
	hub *agentapi.Hub
}

func (b between) Authenticate(_ context.Context, r protocol.Request, _ string) (agentdevice.Device, error) {
	b.hub.Wake([]string{r.Device})
	return agentdevice.Device{ID: r.Device}, nil
}

// A command that is sent after the device's row was read and before its stream
// is open is hinted on that stream; a device that was only claimed leaves
// nothing behind.
func TestHub_CommandWhileTheStreamOpens(t *testing.T) {
	t.Parallel()
	hub := agentapi.NewHub(time.Now, 1)
	handler := (&agentapi.API{Service: between{hub: hub}, Hub: hub, Log: slog.New(slog.DiscardHandler)}).Handler()
	var handling sync.WaitGroup
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handling.Add(1)
		defer handling.Done()
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(hub.Close)
	_, events := stream(t, server, "a")
	hints(t, events, true)
	if refused, _ := stream(t, server, "b"); refused.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("beyond the limit: %d", refused.StatusCode)
	}
	handling.Wait()
	if n := hub.Opening(); n != 0 {
		t.Errorf("%d requests are counted as opening after they were answered", n)
	}
}

// A device that is no longer managed is hinted, so that it checks in and reads
// why, and its stream ends.
func TestHub_EndedDevice(t *testing.T) {
	t.Parallel()
	hub, handler := newHandler(10)
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	t.Cleanup(hub.Close)
	for name, end := range map[string]func(id string){
		"ended by a replica": func(id string) { hub.End([]string{id}) },
		"found out by itself": func(id string) {
			answer, err := server.Client().Do(wakeRequest(t, server.URL, id, "ended"))
			if err != nil || answer.StatusCode != http.StatusGone {
				t.Fatal(answer, err)
			}
			_ = answer.Body.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, events := stream(t, server, name)
			hints(t, events, true) // of the open command
			end(name)
			hints(t, events, true)
			hints(t, events, false)
		})
	}
}
