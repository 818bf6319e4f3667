package fleetsim

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/protocol"
)

// newTransport is the connections of the whole fleet: those of an agent, and more of them.
func newTransport(agents int) *http.Transport {
	transport := agent.NewClient().Transport.(*http.Transport)
	transport.MaxIdleConns = 0
	transport.MaxIdleConnsPerHost = min(agents, 256)
	transport.ResponseHeaderTimeout = time.Minute
	transport.ReadBufferSize, transport.WriteBufferSize = 1<<10, 1<<10
	return transport
}

// network is a device's transport to the service. It loses and duplicates requests at the rates of Options, and records
// which commands are delivered.
type network struct{ member *member }

var errLost = errors.New("the network lost it")

// RoundTrip implements http.RoundTripper.
func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	f := n.member.fleet
	share := n.member.random.share()
	if share < f.Lost/2 {
		f.faults.lost.Add(1)
		return nil, errLost
	}
	if strings.HasSuffix(r.URL.Path, "/wake") {
		answer, err := f.RoundTrip(r)
		if err == nil {
			answer.Body = &wakeBody{ReadCloser: answer.Body, member: n.member}
		}
		return answer, err
	}
	answer, body, err := n.exchange(r)
	if err != nil {
		return nil, err
	}
	switch {
	case share < f.Lost:
		f.faults.lost.Add(1)
		return nil, errLost
	case share < f.Lost+f.Duplicated:
		f.faults.duplicated.Add(1)
		second, text, err := n.exchange(r)
		if err != nil {
			return nil, err
		}
		if n.member.random.share() < 0.5 { // the second answer comes first
			answer, body = second, text
		}
	}
	if answer.StatusCode == http.StatusOK && strings.HasSuffix(r.URL.Path, "/checkin") {
		n.member.recordCheckIn(r, body)
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	return answer, nil
}

// exchange sends a request, as often as it is called, and reads the answer.
func (n *network) exchange(r *http.Request) (*http.Response, []byte, error) {
	again := r.Clone(r.Context())
	if r.GetBody != nil {
		var err error
		if again.Body, err = r.GetBody(); err != nil {
			return nil, nil, err
		}
	}
	f := n.member.fleet
	began := f.Clock()
	answer, err := f.RoundTrip(again)
	if err != nil {
		return nil, nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && strings.HasSuffix(r.URL.Path, "/checkin") {
		f.checkIns.add(f.Clock().Sub(began))
	}
	return answer, body, err
}

// RoundTrip implements http.RoundTripper for all requests to the service. It counts them, and temporary refusals.
func (f *fleet) RoundTrip(r *http.Request) (*http.Response, error) {
	f.requests.Add(1)
	answer, err := f.http.RoundTrip(r)
	why, refused := "no answer", err != nil
	if err == nil {
		why = strconv.Itoa(answer.StatusCode) + " " + http.StatusText(answer.StatusCode)
		refused = answer.StatusCode == http.StatusTooManyRequests || answer.StatusCode >= http.StatusInternalServerError
	}
	if !refused || r.Context().Err() != nil {
		return answer, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refusals[why]++
	return answer, err
}

// delivery is how far a command is on its device.
type delivery struct {
	kind      string
	createdAt int64     // Unix milliseconds
	received  time.Time // when the device had it
	confirmed time.Time // when the device knew that the service has its result; zero: not yet
}

// recordCheckIn records the commands and the confirmations of results in the answer of a check-in, and whether the
// request reported a policy.
func (m *member) recordCheckIn(r *http.Request, body []byte) {
	m.fleet.faults.checkIns.Add(1)
	var answer protocol.CheckinResponse
	if json.Unmarshal(body, &answer) != nil {
		return
	}
	m.lastError.Store("") // the service answers it
	if !m.converged.Load() {
		m.converged.Store(reportsPolicy(r))
	}
	now := m.fleet.Clock()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, sealed := range answer.Commands {
		m.recordReceived(sealed, now)
	}
	for _, id := range answer.Acked {
		if d, known := m.deliveries[id]; known && d.confirmed.IsZero() {
			d.confirmed = now
			m.deliveries[id] = d
		}
	}
}

// recordReceived records that the device has a command. The caller holds mu.
func (m *member) recordReceived(sealed protocol.Envelope, now time.Time) {
	var c protocol.Command
	text, err := base64.RawURLEncoding.DecodeString(sealed.Payload)
	if err != nil || json.Unmarshal(text, &c) != nil {
		return
	}
	if _, known := m.deliveries[c.ID]; !known {
		m.deliveries[c.ID] = delivery{kind: c.Type, createdAt: c.NotBefore, received: now}
	}
}

// wakeBody is a wake stream, on which commands may come.
type wakeBody struct {
	io.ReadCloser
	member *member
	line   []byte // what was read of a line that has not ended
}

// Read implements io.Reader.
func (b *wakeBody) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	b.line = append(b.line, into[:n]...)
	for {
		line, rest, whole := bytes.Cut(b.line, []byte("\n"))
		if !whole {
			break
		}
		var sealed protocol.Envelope
		if data, ok := bytes.CutPrefix(line, []byte("data: {")); ok && json.Unmarshal(append([]byte("{"), data...), &sealed) == nil {
			now := b.member.fleet.Clock()
			b.member.mu.Lock()
			b.member.recordReceived(sealed, now)
			b.member.mu.Unlock()
		}
		b.line = rest
	}
	if len(b.line) == 0 || len(b.line) > protocol.MaxStreamCommand+len("data: ") {
		b.line = nil // what is longer is no command
	}
	return n, err
}

// reportsPolicy reports whether a check-in says which policy is applied.
func reportsPolicy(r *http.Request) bool {
	body, err := r.GetBody()
	if err != nil {
		return false
	}
	var request protocol.CheckinRequest
	return json.NewDecoder(body).Decode(&request) == nil && request.Policy != nil
}
