package agent_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/test/expect"
)

// enroller is a service that is asked to enroll the device d1.
type enroller struct {
	*commandWorld
	refuses protocol.Refusal // with a code
	asked   []protocol.EnrollRequest
}

// RoundTrip implements http.RoundTripper.
func (s *enroller) RoundTrip(r *http.Request) (*http.Response, error) {
	var asks protocol.EnrollRequest
	if err := json.NewDecoder(r.Body).Decode(&asks); err != nil {
		return nil, err
	}
	s.asked = append(s.asked, asks)
	status, answer := http.StatusConflict, any(s.refuses)
	if s.refuses.Code == "" {
		public, err := s.key.Public()
		if err != nil {
			return nil, err
		}
		sealed, err := protocol.Seal(s.key, "k1", protocol.KindEnrolled, protocol.Enrolled{DeviceID: "d1", Key: asks.Key,
			Proof: protocol.Digest([]byte(asks.Proof)), CommandKey: protocol.CommandKey{ID: "k1", Key: public, NotBefore: 1},
			Time: commandsNow})
		if err != nil {
			return nil, err
		}
		status, answer = http.StatusOK, protocol.EnrollAnswer{Envelope: sealed}
	}
	text, err := json.Marshal(answer)
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(text)), Request: r}, err
}

// A device keeps asking with the key that it made for its token, and is enrolled by the
// service's signed answer alone.
func TestEnroll(t *testing.T) {
	t.Parallel()
	s := &enroller{commandWorld: newCommandWorld(t, vectorKey(t, "device"), "LAUNCH_APP", "NEW", "intime,answers,does")}
	public, err := s.key.Public()
	if err != nil {
		t.Fatal(err)
	}
	e := agent.Enrollment{Server: "https://muster.example", Token: "token", Role: "manager", Algorithm: public.Algorithm,
		Options: agent.Options{Dir: t.TempDir(), Device: s, Client: &http.Client{Transport: s}, Now: time.Now,
			Log: slog.New(slog.DiscardHandler)}}
	for _, refusal := range []protocol.Refusal{{Code: protocol.BadToken}, {Code: protocol.Malformed},
		{Code: "forbidden", Message: "no such code"}, {Code: protocol.Waiting}} {
		s.refuses = refusal
		_, err := agent.Enroll(t.Context(), e)
		_, made := os.Stat(filepath.Join(e.Dir, "identity.json"))
		_, dropped := os.Stat(filepath.Join(e.Dir, "enrolling.json"))
		takesAnother := refusal.Code == protocol.BadToken || refusal.Code == protocol.Malformed
		expect.Equal(t, string(refusal.Code), expect.Values{"waits": {errors.Is(err, agent.ErrWaiting), refusal.Code == protocol.Waiting},
			"says why": {err != nil && strings.Contains(err.Error(), refusal.Message), true}, "enrolled": {made == nil, false},
			"takes another code": {dropped != nil, takesAnother}})
	}
	s.refuses = protocol.Refusal{}
	got, err := agent.Enroll(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	expect.Equal(t, "enrolled", expect.Values{"device": {got.DeviceID, "d1"}, "requests": {len(s.asked), 5},
		"one key": {s.asked[2].Key == s.asked[3].Key && s.asked[3].Key == s.asked[4].Key, true}})
	if _, err := agent.Enroll(t.Context(), e); !errors.Is(err, agent.ErrEnrolled) {
		t.Errorf("a second enrollment: %v", err)
	}
}

// Nothing follows the order to leave the service: the device has ended.
func TestOnce_EndsWithItsOrder(t *testing.T) {
	t.Parallel()
	w := newCommandWorld(t, vectorKey(t, "device"), "LAUNCH_APP", "NEW", "intime,answers,does")
	if err := os.WriteFile(filepath.Join(w.dir, "order"), []byte(agent.SayGoodBye), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := agent.New(agent.Options{Dir: w.dir, Device: w, Client: &http.Client{Transport: w}, Now: func() time.Time { return w.now },
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer w.close(a)
	if _, err := a.Once(t.Context()); !errors.Is(err, agent.ErrEnded) {
		t.Errorf("it ended with %v", err)
	}
	if w.checkIns != 0 {
		t.Errorf("%d check-ins after it", w.checkIns)
	}
}
