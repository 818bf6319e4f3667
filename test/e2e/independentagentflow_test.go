package e2e_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"go/parser"
	"go/token"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/enrollment"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/test/spec"
)

func TestIndependentAgent_KnowsNothingOfOurs(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "independentagent_test.go", nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range file.Imports {
		if strings.Contains(i.Path.Value, ".") {
			t.Errorf("it imports %s", i.Path.Value)
		}
	}
}

// newcomer is a stranger in a service of its own.
type newcomer struct {
	*stranger
	t       *testing.T
	env     *servertest.Env
	tenant  *servertest.Tenant
	replica *servertest.Replica
	client  servertest.Client // it reads
	assetID string
	network atomic.Pointer[func(*http.Request) (*http.Response, error)]
}

// RoundTrip implements http.RoundTripper.
func (n *newcomer) RoundTrip(r *http.Request) (*http.Response, error) {
	if network := n.network.Load(); network != nil {
		return (*network)(r)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// through puts something between the stranger and its service; nil takes it away.
func (n *newcomer) through(network func(*http.Request) (*http.Response, error)) {
	if network == nil {
		n.network.Store(nil)
		return
	}
	n.network.Store(&network)
}

func newStranger(t *testing.T, alg string) *newcomer {
	t.Helper()
	t.Parallel()
	n := &newcomer{t: t, env: servertest.New(t)}
	n.tenant = n.env.NewAgentSite("acme", "CAMERA=BLOCK")
	n.replica = n.env.Start()
	n.client = n.tenant.Client(n.replica, access.All)
	n.stranger = n.another(alg, "SN-stranger")
	n.assetID = n.known(n.stranger).AssetID
	n.mustCheckIn()
	return n
}

// another enrolls a stranger by a code.
func (n *newcomer) another(alg, serial string) *stranger {
	n.t.Helper()
	s := &stranger{dir: n.t.TempDir(), alg: alg, clock: n.env.Now, battery: 70, boots: 1, client: &http.Client{Transport: n}}
	if err := s.enroll(n.client.QRCode(n.tenant.Policy, map[string]any{}), serial); err != nil {
		n.t.Fatal(err)
	}
	return s
}

// known is the device as the service has it.
func (n *newcomer) known(s *stranger) agentdevice.Device {
	n.t.Helper()
	d, err := n.tenant.DB().AgentDevice(n.t.Context(), s.memory.Device)
	if err != nil {
		n.t.Fatal(err)
	}
	return d
}

func (n *newcomer) mustCheckIn() {
	n.t.Helper()
	if err := n.checkIn(); err != nil {
		n.t.Fatal(err)
	}
}

// post sends a command with a key of its own, so that no budget is in the way.
func (n *newcomer) post(assetID, path string, body any) {
	n.t.Helper()
	n.tenant.Client(n.replica, access.All).Post("/assets/"+assetID+"/commands/"+path, body).Want(n.t, 200)
}

func (n *newcomer) command(path string, body any, want string) {
	n.t.Helper()
	n.post(n.assetID, path, body)
	for range 3 { // a restart takes another check-in
		n.mustCheckIn()
	}
	n.tenant.Settled(n.client, n.assetID, want)
}

func TestIndependentAgent_EveryCommand(t *testing.T) {
	for _, alg := range []string{"ed25519", "es256"} {
		t.Run(alg, func(t *testing.T) {
			n := newStranger(t, alg)
			servertest.AwaitStatus(t, n.tenant, n.client, n.assetID, "ACTIVE")
			if n.settings["CAMERA"] != "BLOCK" {
				t.Errorf("settings: %v", n.settings)
			}
			n.command("message", map[string]string{"title": "T", "body": "B"}, "SUCCESS")
			n.command("launch-app", map[string]string{"packageName": "com.example.app"}, "SUCCESS")
			n.command("launch-app", map[string]string{"packageName": "com.example.absent"}, "ERROR")
			n.command("status-report", nil, "SUCCESS")
			n.command("location-update", nil, "SUCCESS")
			n.command("sync-policy", nil, "SUCCESS")
			n.command("reboot", nil, "SUCCESS")
			n.command("shutdown", nil, "SUCCESS")
			current := managed(t, n.client, servertest.Device{AssetID: n.assetID})
			if len(n.shown) != 1 || len(n.opened) != 1 || n.boots != 3 {
				t.Errorf("shown %v, opened %v, %d boots", n.shown, n.opened, n.boots)
			}
			if current.Location == nil || current.StatusReport["batteryLevel"] != 70.0 {
				t.Errorf("location %+v, report %v", current.Location, current.StatusReport)
			}
			other := n.env.AgentPolicy(n.tenant.Company, "Other", "SMS=BLOCK")
			n.command("change-policy", map[string]string{"policyId": other.PathName()}, "SUCCESS")
			if n.settings["SMS"] != "BLOCK" || n.settings["CAMERA"] != nil {
				t.Errorf("settings: %v", n.settings)
			}
			if alg == "ed25519" {
				if err := n.rotate(); err != nil {
					t.Error(err)
				}
				n.mustCheckIn()
			}
		})
	}
}

func TestIndependentAgent_Tombstones(t *testing.T) {
	n := newStranger(t, "ed25519")
	erasing, released, beaten := n.another("ed25519", "SN-a"), n.another("ed25519", "SN-b"), n.another("ed25519", "SN-c")
	for path, s := range map[string]*stranger{"wipe": erasing, "relinquish-ownership": released} {
		if err := s.checkIn(); err != nil {
			t.Fatal(err)
		}
		n.post(n.known(s).AssetID, path, nil)
		if err := s.checkIn(); !errors.Is(err, errStrangerGone) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if !erasing.erased || len(released.settings) != 0 {
		t.Errorf("erased %v, settings of the released %v", erasing.erased, released.settings)
	}
	n.tenant.FallSilent()
	erasing.erased, erasing.memory.Ended = false, "" // it is back, and asks
	if err := erasing.checkIn(); !errors.Is(err, errStrangerGone) || !erasing.erased {
		t.Errorf("a device that is back after its wipe: %v, erased %v", err, erasing.erased)
	}
	if err := beaten.checkIn(); err != nil {
		t.Fatal(err)
	}
	seat := n.known(beaten)
	hash := sha256.Sum256([]byte("for this asset alone"))
	grant := agentdevice.Token{Hash: hash, CompanyID: seat.CompanyID, PolicyID: seat.PolicyID, AssetID: seat.AssetID, Epoch: seat.Epoch,
		ExpiresAt: n.tenant.Now().Add(time.Hour)}
	if err := n.tenant.DB().CreateAgentToken(t.Context(), grant); err != nil {
		t.Fatal(err)
	}
	successor := agentdevice.Device{ID: resource.NewID(), Role: protocol.Manager, Key: seat.Key, State: agentdevice.Active}
	if _, err := n.tenant.DB().EnrollAgent(t.Context(), agentdevice.Enrollment{Hash: hash, Device: successor, Again: n.tenant.Now()},
		enrollment.Observation{Management: asset.Agent, Enrolling: true, EnrolledAt: n.tenant.Now(),
			ObservedAt: n.tenant.Now()}); err != nil {
		t.Fatal(err)
	}
	if err := beaten.checkIn(); err == nil || errors.Is(err, errStrangerGone) || !beaten.memory.Superseded ||
		beaten.settings["CAMERA"] != "BLOCK" {
		t.Errorf("a superseded device: %v, %v, settings %v", err, beaten.memory.Superseded, beaten.settings)
	}
}

// The agent is killed at each of its steps, for each kind of command, and the
// newest of its files is damaged on top. A restart happens once, all else at least
// once, and each command ends as it should.
func TestIndependentAgent_KillsAndDamage(t *testing.T) {
	n := newStranger(t, "ed25519")
	for _, at := range []string{"answered", "started", "going down", "before done"} {
		for _, damaged := range []bool{false, true} {
			boots := n.boots
			for _, path := range []string{"location-update", "message", "reboot"} {
				n.post(n.assetID, path, spec.CommandOf(path).Request())
			}
			killed := errors.New("killed")
			n.crash = func(step string) {
				if step == at {
					n.crash = nil
					panic(killed)
				}
			}
			func() {
				defer func() {
					if r := recover(); r != nil && r != any(killed) {
						panic(r)
					}
				}()
				_ = n.checkIn()
			}()
			if n.crash != nil {
				t.Fatalf("it never reached %q", at)
			}
			if damaged {
				if err := n.forget(); err != nil {
					t.Fatal(err)
				}
			}
			n.load()
			if err := n.tenant.DB().ExpireDeliveryLeases(t.Context()); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				n.mustCheckIn()
			}
			history := n.client.History(n.assetID)[:3]
			if slices.ContainsFunc(history, func(e servertest.Entry) bool { return e.Status != "SUCCESS" }) || n.boots != boots+1 {
				t.Errorf("killed at %q, damaged %v: %d restarts, history %+v", at, damaged, n.boots-boots, history)
			}
		}
	}
	if managed(t, n.client, servertest.Device{AssetID: n.assetID}).Location == nil {
		t.Error("there is no location")
	}
}

// A program that stands in the service's place, or between, has no power: whatever it
// answers, with what the service has signed for others or at other times too.
func TestIndependentAgent_FalseService(t *testing.T) {
	n := newStranger(t, "ed25519")
	free := n.env.AgentPolicy(n.tenant.Company, "Free", "REPORT_SOFTWARE_INFO=ENABLED")
	spy := n.another("ed25519", "SN-spy")
	answers := map[string][]byte{}
	n.through(func(r *http.Request) (*http.Response, error) {
		response, err := http.DefaultTransport.RoundTrip(r)
		if err == nil {
			text, _ := io.ReadAll(response.Body)
			response.Body = io.NopCloser(bytes.NewReader(text))
			answers[r.URL.Path] = text
		}
		return response, err
	})
	n.post(n.known(spy).AssetID, "change-policy", map[string]string{"policyId": free.PathName()})
	n.post(n.known(spy).AssetID, "relinquish-ownership", nil)
	_ = spy.checkIn() // released: the next answer is its tombstone
	spy.memory.Ended = ""
	foreign := bytes.Clone(answers["/agent/v2/checkin"])
	_ = spy.checkIn()
	stone := bytes.Clone(answers["/agent/v2/checkin"])
	n.through(nil)
	before := len(n.settings)
	for name, answer := range map[string]struct {
		status int
		body   []byte
	}{
		"another device's tombstone": {410, stone}, "an unsigned one": {410, []byte(`{"error":"ended"}`)},
		"another device's answer": {200, foreign},
		"nothing":                 {404, nil}, "a redirect": {302, nil}, "rubbish": {200, []byte("<html>")},
		"an empty answer": {200, []byte("{}")},
		"another policy":  {200, []byte(`{"policy":{"id":"` + free.ID + `","version":1,"etag":"x"}}`)},
	} {
		t.Run(name, func(t *testing.T) {
			n.through(func(r *http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: answer.status, Header: http.Header{"Location": {"http://127.0.0.1:1/"}}, Request: r,
					Body: io.NopCloser(bytes.NewReader(answer.body))}, nil
			})
			if err := n.checkIn(); err == nil || errors.Is(err, errStrangerGone) || n.settings["CAMERA"] != "BLOCK" ||
				len(n.settings) != before {
				t.Errorf("%s: %v, settings %v", name, err, n.settings)
			}
		})
	}
	n.through(nil)
	n.mustCheckIn()
}

// Clock and sequence may be lost; a hint wakes, and false ones cost a check-in.
func TestIndependentAgent_ClockSequenceAndHints(t *testing.T) {
	n := newStranger(t, "es256")
	n.memory.Next, n.memory.Offset = 1, -50*365*24*3600*1000
	n.mustCheckIn()
	woken := make(chan struct{}, 100)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if err := n.hints(ctx, func() { woken <- struct{}{} }); err != nil {
		t.Fatal(err)
	}
	n.post(n.assetID, "message", spec.CommandOf("message").Request())
	select {
	case <-woken:
	case <-time.After(20 * time.Second):
		t.Error("no hint came")
	}
	for range 10 { // the first is true
		n.mustCheckIn()
	}
	if len(n.shown) != 1 {
		t.Errorf("shown: %v", n.shown)
	}
}
