package agentserver_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agent/simulated"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/policy"
)

// answering is a client between a device and its service that changes the answers.
func answering(change func(path string, status int, body []byte) (int, []byte)) *http.Client {
	client := *agent.NewClient()
	base := client.Transport
	client.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
		response, err := base.RoundTrip(r)
		if err != nil || strings.HasSuffix(r.URL.Path, "/wake") {
			return response, err
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil {
			return nil, err
		}
		response.StatusCode, body = change(r.URL.Path, response.StatusCode, body)
		response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		return response, nil
	})
	return &client
}

// enrolledBy is an answer to the request of an enrollment that the key signed for
// itself.
func enrolledBy(t *testing.T, key protocol.PrivateKey, service []byte) []byte {
	t.Helper()
	public, err1 := key.Public()
	var sealed protocol.Envelope
	var answer protocol.Enrolled
	err2 := json.Unmarshal(service, &sealed)
	payload, err3 := base64.RawURLEncoding.DecodeString(sealed.Payload)
	err4 := json.Unmarshal(payload, &answer)
	answer.CommandKey = protocol.CommandKey{ID: "evil", Key: public, NotBefore: 1}
	forged, err5 := protocol.Seal(key, "evil", protocol.KindEnrolled, answer)
	text, err6 := json.Marshal(forged)
	if err := errors.Join(err1, err2, err3, err4, err5, err6); err != nil {
		t.Fatal(err)
	}
	return text
}

// A proxy that terminates TLS at the enrollment of a device whose code names the command key adds no key, gives the device
// no other identity, and does not spend its code: with the true answer it enrolls.
func TestEnrollment_TLSInterception(t *testing.T) {
	w := newWorld(t)
	evil, err := protocol.NewPrivateKey(protocol.Ed25519)
	if err != nil {
		t.Fatal(err)
	}
	public, err1 := evil.Public()
	named, err2 := w.link.Signer.Key.Public()
	digest, err3 := named.Name()
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	var foreign []byte // the answer to another device's enrollment
	first := agent.Enrollment{Server: w.server.URL, Token: w.token(), Role: protocol.Manager,
		Options: agent.Options{Dir: t.TempDir(), Now: time.Now,
			Device: simulated.New(simulated.Default("SN-0"), time.Now), Log: slog.New(slog.DiscardHandler),
			Client: answering(func(_ string, status int, body []byte) (int, []byte) { foreign = body; return status, body })}}
	if _, err := agent.Enroll(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	withMember := func(body []byte, member string, value any) []byte {
		var all map[string]any
		_ = json.Unmarshal(body, &all)
		all[member] = value
		text, _ := json.Marshal(all)
		return text
	}
	for name, test := range map[string]struct {
		change  func(body []byte) []byte // nil: the answer to an earlier, lost request
		enrolls bool
	}{
		"signed by another":           {change: func(body []byte) []byte { return enrolledBy(t, evil, body) }},
		"another device's":            {change: func([]byte) []byte { return foreign }},
		"cut":                         {change: func(body []byte) []byte { return body[:len(body)/2] }},
		"without its signature":       {change: func(body []byte) []byte { return withMember(body, "sig", "") }},
		"under another key's id":      {change: func(body []byte) []byte { return withMember(body, "keyId", "evil") }},
		"of another kind":             {change: func(body []byte) []byte { return withMember(body, "kind", protocol.KindAssignment) }},
		"empty":                       {change: func([]byte) []byte { return []byte("{}") }},
		"as the first version had it": {change: func([]byte) []byte { return []byte(`{"deviceId":"d","serverTime":1,"commandKeys":[]}`) }},
		"to an earlier, lost request": {},
		"with members that are not signed": {enrolls: true, change: func(body []byte) []byte {
			return withMember(withMember(body, "commandKeys", []any{protocol.CommandKey{ID: "evil", Key: public, NotBefore: 1}}),
				"serverTime", 4102444800000)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var lost []byte
			e := first
			e.Token, e.CommandKey, e.Dir = w.token(), digest, t.TempDir()
			e.Client = answering(func(_ string, status int, body []byte) (int, []byte) {
				if test.change != nil {
					return status, test.change(body)
				}
				if lost == nil {
					lost = body
					return http.StatusBadGateway, nil
				}
				return status, lost
			})
			if test.change == nil {
				if _, err := agent.Enroll(t.Context(), e); err == nil {
					t.Fatal("the lost answer arrived")
				}
				now := e.Now
				e.Now = func() time.Time { return now().Add(time.Second) }
			}
			_, err := agent.Enroll(t.Context(), e)
			if (err == nil) != test.enrolls {
				t.Errorf("an answer %s: %v; it enrolls: want %v", name, err, test.enrolls)
			}
			e.Client = agent.NewClient()
			if err != nil {
				if _, err := agent.LoadConnection(e.Dir); !errors.Is(err, agent.ErrNotEnrolled) {
					t.Errorf("an answer %s: the device has an identity: %v", name, err)
				}
				if _, err := agent.Enroll(t.Context(), e); err != nil {
					t.Errorf("with the true answer: %v", err)
				}
			}
			text, err := os.ReadFile(filepath.Join(e.Dir, "identity.json"))
			var kept struct {
				CommandKeys []protocol.CommandKey
				Latest      int64
			}
			if err == nil {
				err = json.Unmarshal(text, &kept)
			}
			if err != nil || len(kept.CommandKeys) != 1 || kept.CommandKeys[0].Key != named ||
				kept.Latest > time.Now().Add(time.Minute).UnixMilli() {
				t.Errorf("the device trusts %+v since %d, %v", kept.CommandKeys, kept.Latest, err)
			}
		})
	}
}

// A tombstone that was kept, of a wipe that has been taken back since, does nothing in
// answer to another request.
func TestTombstone_KeptForLater(t *testing.T) {
	w := newWorld(t)
	p := w.enroll(protocol.Ed25519)
	p.mustCheckIn()
	p.send(command.WipeCompanyData, nil)
	var kept []byte
	p.options.Client = answering(func(path string, status int, body []byte) (int, []byte) {
		if kept == nil && strings.HasSuffix(path, "/unenroll") {
			kept = body
			return http.StatusBadGateway, nil // and the device has not heard it
		}
		return status, body
	})
	p.start()
	if err := p.agent.Unenroll(t.Context()); err == nil || !bytes.Contains(kept, []byte(`"ended"`)) {
		t.Fatalf("%v, the answer %q", err, kept)
	}
	if err := w.db.EndDelivery(t.Context(), p.agent.DeviceID(), p.latest().ID, agentdevice.Active); err != nil {
		t.Fatal(err)
	}
	p.mustCheckIn()
	p.options.Client = &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusGone, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(kept)), Request: r},
			nil
	})}
	p.start()
	if err := p.checkIn(); err == nil || errors.Is(err, agent.ErrEnded) || p.device.State().Wiped {
		t.Errorf("the tombstone of another request: %v, the device is %+v", err, p.device.State())
	}
	if err := p.agent.Unenroll(t.Context()); err == nil || p.device.State().Wiped {
		t.Errorf("the tombstone of another request to unenroll: %v, the device is %+v", err, p.device.State())
	}
	p.options.Client = agent.NewClient()
	p.start()
	p.mustCheckIn()
}

// Agents of the protocol's first version were never released. Every request to its address is answered without a signature,
// also one of a device that has ended: the answer ends no device.
func TestFormerVersion_IsToldToUpgrade(t *testing.T) {
	w := newWorld(t)
	p := w.enroll(protocol.Ed25519)
	if _, err := w.db.EndAgent(t.Context(), w.device(p), agentdevice.Ending{How: agentdevice.Unenrolled, At: time.Now()}); err != nil {
		t.Fatal(err)
	}
	sequence := int64(1_000_000)
	ask := func(method, path string) (status int, answer map[string]any) {
		t.Helper()
		sequence++
		response, err := w.server.Client().Do(w.signed(t, p, method, path, sequence, []byte(`{"token":"met_x"}`)))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
			t.Errorf("%s %s: %v", method, path, err)
		}
		return response.StatusCode, answer
	}
	if status, answer := ask(http.MethodPost, protocol.Base+"/checkin"); status != http.StatusGone || answer["signed"] == nil {
		t.Fatalf("the present version: %d %v, want a tombstone", status, answer)
	}
	for _, path := range []string{"", "?x=1", "/", "/enroll", "/checkin", "/policy/x?v=1", "/wake", "/push-token", "/rotate",
		"/unenroll", "/other"} {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete} {
			status, answer := ask(method, protocol.FormerBase+path)
			if status != http.StatusUpgradeRequired || answer["error"] != "upgrade_required" || answer["signed"] != nil {
				t.Errorf("%s %s: %d %v", method, path, status, answer)
			}
		}
	}
}

// Command results reach the service although a policy cannot be fetched.
func TestCommands_DoNotWaitForThePolicy(t *testing.T) {
	w := newWorld(t)
	p := w.enroll(protocol.Ed25519)
	p.mustCheckIn()
	other := w.newPolicy("Other", policy.Change{Setting: "SMS", Value: "BLOCK"})
	p.send(command.ChangePolicy, command.PolicyRef(other.ID))
	p.send(command.SyncPolicy, nil)
	p.send(command.LaunchApp, command.LaunchAppBody{PackageName: "com.example.app"})
	launched := p.latest().ID
	var fetched atomic.Bool
	w.losing(func(r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/policy/") {
			return false
		}
		if c, err := w.db.Command(t.Context(), launched); !fetched.Load() && (err != nil || c.State != command.Succeeded) {
			t.Errorf("when the policy is fetched, the command is %s, %v", c.State, err)
		}
		fetched.Store(true)
		return true
	})
	if err := p.checkIn(); err == nil || !fetched.Load() {
		t.Errorf("check-in succeeded without the policy: %v, fetched: %v", err, fetched.Load())
	}
	w.lose.Store(nil)
	p.mustCheckIn()
	if got := p.device.State().Settings["SMS"]; got != "BLOCK" {
		t.Errorf("SMS is %q", got)
	}
}
