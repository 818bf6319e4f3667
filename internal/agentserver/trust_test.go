package agentserver_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agentserver"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/policy"
)

// obeys sends a command without a deadline and reports whether the device carried
// it out.
func (p *phone) obeys() bool {
	p.world.t.Helper()
	p.send(command.SyncPolicy, nil)
	_ = p.checkIn() // a key that is not trusted assigns no policy either
	return p.latest().State == command.Succeeded
}

// A former command key loses its power a week after the next one began, whether
// or not there is a third, and whether or not the agent was restarted in between.
func TestFormerKey_LosesItsPower(t *testing.T) {
	w := newWorld(t)
	p := w.enroll(protocol.Ed25519)
	p.mustCheckIn()
	former := agentserver.Signer{Key: w.link.Signer.Key, ID: w.link.Signer.ID}
	w.follow("k2", true)
	p.mustCheckIn()
	present := w.link.Signer
	for _, test := range []struct {
		after   time.Duration
		restart bool
		want    bool
	}{{6 * 24 * time.Hour, false, true}, {8 * 24 * time.Hour, false, false}, {180 * 24 * time.Hour, true, false},
		{-24 * time.Hour, true, false}} {
		later := func() time.Time { return time.Now().Add(test.after) }
		w.link.Now, p.options.Now = later, later
		if p.start(); !test.restart {
			p.mustCheckIn()
		}
		w.link.Signer = former
		if got := p.obeys(); got != test.want {
			t.Errorf("after %s (restarted %v) the former key commands: %v, want %v", test.after, test.restart, got, test.want)
		}
		w.link.Signer = present
		p.mustCheckIn()
	}
}

// A former key that leaked cannot name a successor of its own, nor throw the
// present key out, and neither can a new key claim to be older than the one that
// it follows.
func TestFormerKey_AnnouncesNothing(t *testing.T) {
	w := newWorld(t)
	p := w.enroll(protocol.Ed25519)
	p.mustCheckIn()
	former := agentserver.Signer{Key: w.link.Signer.Key, ID: w.link.Signer.ID}
	w.follow("k2", true)
	p.mustCheckIn()
	present := w.link.Signer
	for name, announced := range map[string]agentserver.Signer{
		"by the former key":           {ID: "evil", Made: time.Now(), Former: []agentserver.Signer{former}},
		"by the former key, long ago": {ID: "evil", Made: time.UnixMilli(1), Former: []agentserver.Signer{former}},
		"by the present key, long ago": {ID: "evil", Made: time.UnixMilli(1),
			Former: []agentserver.Signer{{Key: present.Key, ID: "k2"}}},
		"by the present key, in the future": {ID: "evil", Made: time.Now().Add(40 * 24 * time.Hour),
			Former: []agentserver.Signer{{Key: present.Key, ID: "k2"}}},
	} {
		t.Run(name, func(t *testing.T) {
			key, err := protocol.NewPrivateKey(protocol.Ed25519)
			if err != nil {
				t.Fatal(err)
			}
			announced.Key = key
			w.link.Signer = announced
			if p.obeys() {
				t.Errorf("announced %s, a key commands", name)
			}
			w.link.Signer = present
			if !p.obeys() {
				t.Errorf("announced %s, a key threw the present one out", name)
			}
		})
	}
}

// between is a man in the middle with the service's TLS key: it may change what
// the device is answered.
func (p *phone) between(change func(path string, answer *protocol.CheckinResponse, body []byte) []byte) {
	p.world.t.Helper()
	client := *agent.NewClient()
	base := client.Transport
	client.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
		response, err := base.RoundTrip(r)
		if err != nil || strings.HasSuffix(r.URL.Path, "/wake") || response.StatusCode != http.StatusOK &&
			!strings.Contains(r.URL.Path, "/policy/") {
			return response, err
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil {
			return nil, err
		}
		var answer protocol.CheckinResponse
		if strings.HasSuffix(r.URL.Path, "/checkin") {
			if err := json.Unmarshal(body, &answer); err != nil {
				return nil, err
			}
		}
		if body = change(r.URL.Path, &answer, body); body == nil {
			if body, err = json.Marshal(answer); err != nil {
				return nil, err
			}
		}
		response.StatusCode, response.Body, response.ContentLength = http.StatusOK, io.NopCloser(bytes.NewReader(body)), int64(len(body))
		return response, nil
	})
	p.options.Client = &client
	p.start()
}

// listen is a man in the middle that changes nothing and keeps what it hears.
func (p *phone) listen() (assignment **protocol.Envelope, document *[]byte) {
	assignment, document = new(*protocol.Envelope), new([]byte)
	p.between(func(path string, answer *protocol.CheckinResponse, body []byte) []byte {
		if strings.Contains(path, "/policy/") {
			*document = body
		} else if answer.Assignment != nil {
			*assignment = answer.Assignment
		}
		return body
	})
	return assignment, document
}

// Which policy a device has is signed for that device and that request. One
// that breaks TLS can give it neither another device's policy nor one of its own
// that is over, whether the signed part is exchanged, kept for later or left out.
func TestAssignment_CannotBeSubstituted(t *testing.T) {
	w := newWorld(t)
	kiosk, free := w.policy, w.newPolicy("Free", policy.Change{Setting: "REPORT_SOFTWARE_INFO", Value: "ENABLED"})
	w.policy = free
	own := w.enroll(protocol.Ed25519)
	foreign, document := own.listen()
	own.mustCheckIn()
	w.policy = kiosk
	victim := w.enroll(protocol.Ed25519)
	kept, _ := victim.listen()
	victim.mustCheckIn()
	past := *kept
	victim.mustCheckIn()
	fresh := w.enroll(protocol.Ed25519) // its first contact is with who is in between
	for name, assignment := range map[string]*protocol.Envelope{"another device's assignment": *foreign, "an assignment of the past": past,
		"no assignment": nil} {
		t.Run(name, func(t *testing.T) {
			for _, p := range []*phone{victim, fresh} {
				before := maps.Clone(p.device.State().Settings)
				p.between(func(path string, answer *protocol.CheckinResponse, body []byte) []byte {
					if strings.Contains(path, "/policy/") {
						return *document
					}
					if !strings.HasSuffix(path, "/checkin") {
						return body
					}
					answer.Assignment = assignment
					// As a service of the first version said it, without a signature.
					text, _ := json.Marshal(answer)
					return append(text[:len(text)-1], fmt.Sprintf(`,"policy":{"id":%q,"version":%d}}`, free.ID, free.Version)...)
				})
				if err := p.checkIn(); err == nil && assignment != nil {
					t.Errorf("%s: nothing was refused", name)
				}
				if got := p.device.State().Settings; !maps.Equal(got, before) {
					t.Errorf("%s: the device has %v, want %v", name, got, before)
				}
			}
		})
	}
	for _, p := range []*phone{victim, fresh} {
		p.between(func(_ string, _ *protocol.CheckinResponse, body []byte) []byte { return body })
		p.mustCheckIn()
		if got := p.device.State().Settings["CAMERA"]; got != "BLOCK" {
			t.Errorf("the camera is %q", got)
		}
	}
}

// An older version of the device's own policy, signed as it is, does not come back.
func TestAssignment_RefusesOlderDocument(t *testing.T) {
	w := newWorld(t)
	p := w.enroll(protocol.Ed25519)
	_, document := p.listen()
	p.mustCheckIn()
	old := bytes.Clone(*document)
	if _, err := w.policies.Save(t.Context(), w.company.ID, w.policy.ID, w.policy.Version,
		policy.Edit{Changes: []policy.Change{{Setting: "SMS", Value: "BLOCK"}}},
		policy.Author{Kind: "SYSTEM", ID: "operator", Name: "operator"}); err != nil {
		t.Fatal(err)
	}
	p.between(func(path string, _ *protocol.CheckinResponse, body []byte) []byte {
		if strings.Contains(path, "/policy/") {
			return old
		}
		return body
	})
	if err := p.checkIn(); err == nil {
		t.Error("the older document was taken")
	}
	p.between(func(_ string, _ *protocol.CheckinResponse, body []byte) []byte { return body })
	p.mustCheckIn()
	if got := p.device.State().Settings["SMS"]; got != "BLOCK" {
		t.Errorf("SMS is %q", got)
	}
}

// A device whose clock is two years off remembers what it did when it starts again: a
// command that is delivered once more takes no effect.
func TestCommand_ReplayedAfterAStartWithAWrongClock(t *testing.T) {
	w := newWorld(t)
	p := w.enroll(protocol.Ed25519)
	device := &counting{p.device, map[string]int{}}
	p.options.Device = device
	p.options.Now = func() time.Time { return time.Now().AddDate(2, 0, 0) }
	var kept []protocol.Envelope
	replays := false
	p.between(func(path string, answer *protocol.CheckinResponse, body []byte) []byte {
		kept = append(kept, answer.Commands...)
		if !replays || !strings.HasSuffix(path, "/checkin") {
			return body
		}
		answer.Commands, replays = kept, false
		return nil
	})
	p.send(command.LaunchApp, command.LaunchAppBody{PackageName: "com.example.app"})
	p.mustCheckIn()
	p.start()
	replays = true
	p.mustCheckIn()
	if c := p.latest(); c.State != command.Succeeded || device.done[c.ID] != 1 {
		t.Errorf("%s %q, executed %d times", c.State, c.Outcome, device.done[c.ID])
	}
}
