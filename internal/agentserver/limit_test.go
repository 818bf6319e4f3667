package agentserver_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agentserver"
)

// A device may send a burst of requests and is refused beyond it, signed and
// with Retry-After. Other devices are answered all the while.
func TestLink_RequestLimit(t *testing.T) {
	w := newWorld(t)
	start := time.Now()
	now := start
	w.link.Now = func() time.Time { return now }
	greedy, other := w.enroll(protocol.Ed25519), w.enroll(protocol.Ed25519)
	sequence := int64(1000)
	send := func() (int, protocol.Refusal, string) {
		sequence++
		answer := w.forge(t, greedy, sequence, []byte(`{}`), false)
		var refused protocol.Refusal
		_ = json.Unmarshal(answer.Body.Bytes(), &refused)
		return answer.Code, refused, answer.Header().Get("Retry-After")
	}
	for n := range agentserver.RequestBurst {
		if status, why, _ := send(); status != http.StatusOK {
			t.Fatalf("request %d of a minute is answered %d %+v", n+1, status, why)
		}
	}
	status, why, after := send()
	if status != http.StatusTooManyRequests || why.Code != protocol.RateLimited || after != "1" {
		t.Fatalf("beyond the limit: %d %+v, Retry-After %q, want 429 rate_limited and 1", status, why, after)
	}
	public, err := w.link.Signer.Key.Public()
	if err != nil {
		t.Fatal(err)
	}
	var serverTime protocol.Time
	if why.Signed == nil || why.Signed.Open(public, protocol.KindTime, &serverTime) != nil ||
		serverTime.DeviceID != greedy.agent.DeviceID() ||
		serverTime.LastSequence != sequence {
		t.Errorf("the refusal is signed as %+v", why.Signed)
	}
	other.mustCheckIn()
	now = now.Add(time.Second)
	if status, why, _ := send(); status != http.StatusOK {
		t.Errorf("a second later: %d %+v", status, why)
	}
	now = start.Add(-time.Hour) // the service's clock is set back
	if status, why, after := send(); status != http.StatusOK {
		t.Errorf("the clock was set back: %d %+v, Retry-After %q", status, why, after)
	}
}

// A device that ends has its stream hinted at and closed.
func TestLink_EndClosesTheStream(t *testing.T) {
	w := newWorld(t)
	p := w.enroll(protocol.Ed25519)
	p.mustCheckIn()
	answer, err := w.server.Client().Do(w.signed(t, p, http.MethodGet, protocol.Base+"/wake", 1_000_000, nil))
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatal(answer, err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	events := bufio.NewReader(answer.Body)
	if line, err := events.ReadString('\n'); err != nil { // the stream is open
		t.Fatal(line, err)
	}
	device, err := w.db.AgentDevice(t.Context(), p.agent.DeviceID())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.link.Unenroll(t.Context(), device); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(events)
	if err != nil || !strings.Contains(string(rest), "data: w") {
		t.Errorf("at its end the stream says %q, %v; want a hint, and the end", rest, err)
	}
}
