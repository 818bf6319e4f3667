package agentserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/fault"
)

// lose damages the identity of a device whose agent has ended.
func (p *phone) lose() {
	p.world.t.Helper()
	if err := p.agent.Close(); err != nil {
		p.world.t.Fatal(err)
	}
	path := filepath.Join(p.options.Dir, "identity.json")
	text, err := os.ReadFile(path)
	if err == nil {
		text[len(text)/2] ^= 4
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		p.world.t.Fatal(err)
	}
	if _, err := agent.New(p.options); !errors.Is(err, agent.ErrLost) {
		p.world.t.Fatalf("an agent without its identity: %v", err)
	}
}

// comeBack enrolls the phone with a code that names a command key.
func (p *phone) comeBack(token, key string) (agent.Enrolled, error) {
	return agent.Enroll(p.world.t.Context(), agent.Enrollment{Server: p.world.server.URL, Token: token, Role: protocol.Manager,
		CommandKey: key, Options: p.options})
}

// keyName is what a code says of the service's command key.
func (w *world) keyName() string {
	w.t.Helper()
	public, err := w.link.Signer.Key.Public()
	if err != nil {
		w.t.Fatal(err)
	}
	name, err := public.Name()
	if err != nil {
		w.t.Fatal(err)
	}
	return name
}

func (w *world) waiting(want int) string {
	w.t.Helper()
	all, err := w.db.EnrollmentRequests(w.t.Context(), w.company.ID, "")
	if err != nil || len(all) != want {
		w.t.Fatalf("%d devices ask, %v; want %d", len(all), err, want)
	}
	if want == 0 {
		return ""
	}
	return all[0].ID
}

// A device that lost its identity comes back as its asset with a code of the service that
// it obeyed, once an administrator has confirmed that: also if the service has another
// command key by then. Nothing on it changes.
func TestLost_ComesBack(t *testing.T) {
	w := newWorld(t)
	p := w.enroll(protocol.Ed25519)
	p.mustCheckIn()
	before := maps.Clone(p.device.State().Settings)
	p.lose()
	w.follow("k2", true)
	token, key := w.token(), w.keyName()
	for name, code := range map[string][2]string{"that is unknown": {"unknown", key}} {
		if _, err := p.comeBack(code[0], code[1]); err == nil || errors.Is(err, agent.ErrWaiting) {
			t.Errorf("a code %s: %v", name, err)
		}
	}
	w.waiting(0)
	for range 2 {
		if _, err := p.comeBack(token, key); !errors.Is(err, agent.ErrWaiting) {
			t.Fatalf("before it is confirmed: %v", err)
		}
	}
	id := w.waiting(1)
	if _, _, err := w.enrolling(t, "SN-9", func(r *protocol.EnrollRequest) { w.resign(r, token) }); err == nil {
		t.Error("another device has redeemed the token of one that waits")
	}
	refused := w.db.ConfirmRequest(t.Context(), w.company.ID, id, access.Replacement{})
	if fault.CodeOf(refused) != fault.Forbidden {
		t.Errorf("the former key was in touch, and every person may replace it: %v", refused)
	}
	if err := w.db.ConfirmRequest(t.Context(), w.company.ID, id, access.Replacement{UserID: "u", MayDestroy: true, Named: true}); err !=
		nil {
		t.Fatal(err)
	}
	if _, err := p.comeBack(token, key); err != nil {
		t.Fatal(err)
	}
	w.waiting(0)
	p.start()
	if got := p.device.State().Settings; !maps.Equal(got, before) {
		t.Errorf("the device has %v, want %v", got, before)
	}
	if d := w.device(p); d.AssetID != p.assetID || d.Epoch != 2 {
		t.Errorf("it came back as %+v", d)
	}
	if !p.obeys() {
		t.Error("the device does not obey after it came back")
	}
}

// forgetful is a store that does not have a device.
type forgetful struct {
	agentdevice.Store
	device string
}

// AgentDevice implements agentserver.Store.
func (s forgetful) AgentDevice(ctx context.Context, id string) (agentdevice.Device, error) {
	if id == s.device {
		return agentdevice.Device{}, fault.New(fault.NotFound, "no such device")
	}
	return s.Store.AgentDevice(ctx, id)
}

// Contact implements agentdevice.Store.
func (s forgetful) Contact(ctx context.Context, id string, key protocol.PublicKey, sequence int64) (agentdevice.Device, bool, error) {
	if id == s.device {
		return agentdevice.Device{}, false, nil
	}
	return s.Store.Contact(ctx, id, key, sequence)
}

// A device that its service does not know, because its database is older, enrolls again as one that
// lost its identity: as its asset once an administrator has confirmed that.
func TestLost_UnknownToItsService(t *testing.T) {
	w := newWorld(t)
	p := w.enroll(protocol.Ed25519)
	p.mustCheckIn()
	w.link.Store = forgetful{w.link.Store, p.agent.DeviceID()}
	if err := p.agent.Close(); err != nil {
		t.Fatal(err)
	}
	e := agent.Enrollment{Server: w.server.URL, Token: w.token(), Role: protocol.Manager, Options: p.options}
	if _, err := agent.Enroll(t.Context(), e); !errors.Is(err, agent.ErrEnrolled) {
		t.Errorf("without being told to: %v", err)
	}
	e.Again = true
	if _, err := agent.Enroll(t.Context(), e); !errors.Is(err, agent.ErrWaiting) {
		t.Fatalf("before it is confirmed: %v", err)
	}
	if again, asks := agent.Asking(p.options.Dir); asks {
		t.Errorf("another process, which has its identity, asks: %+v", again)
	}
	if err := w.db.ConfirmRequest(t.Context(), w.company.ID, w.waiting(1), access.Replacement{UserID: "u", MayDestroy: true,
		Named: true}); err != nil {
		t.Fatal(err)
	}
	enrolled, err := agent.Enroll(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	if d, err := w.db.AgentDevice(t.Context(), enrolled.DeviceID); err != nil || d.AssetID != p.assetID {
		t.Errorf("it came back as %+v, %v", d, err)
	}
}

// resign makes a request one for another token.
func (w *world) resign(r *protocol.EnrollRequest, token string) {
	key, err := protocol.NewPrivateKey(protocol.Ed25519)
	if err == nil {
		r.Token = token
		r.Key, _ = key.Public()
		r.Proof, err = key.Sign(r.Message())
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// A device that answers to another service, which knows its serial number and has a code
// of its own, does not get the device.
func TestLost_RefusesAnotherService(t *testing.T) {
	w, evil := newWorld(t), makeWorld(t)
	p := w.enroll(protocol.Ed25519)
	p.mustCheckIn()
	p.lose()
	token, key := evil.token(), evil.keyName()
	at := *p
	at.world = evil
	if _, err := at.comeBack(token, key); err == nil {
		t.Fatal("the device obeys another service")
	}
	if _, err := agent.New(p.options); !errors.Is(err, agent.ErrLost) {
		t.Errorf("after another service answered: %v", err)
	}
}

// A device that lost its identity replaces no other: where its asset is not managed any
// more, or no asset has its serial number, it enrolls as any other.
func TestLost_EnrollsWhereNoDeviceLeaves(t *testing.T) {
	w := newWorld(t)
	lost := func(r *protocol.EnrollRequest) {
		w.resignLost(r)
	}
	if _, _, err := w.enrolling(t, "SN-1", lost); err != nil {
		t.Errorf("a serial number that no asset has: %v", err)
	}
	if _, _, err := w.enrolling(t, "SN-1", lost); err == nil {
		t.Error("the serial number of a managed device was enough")
	}
	w.waiting(1)
}

// resignLost makes a request one of a device that lost its identity.
func (w *world) resignLost(r *protocol.EnrollRequest) {
	key, err := protocol.NewPrivateKey(protocol.Ed25519)
	if err == nil {
		r.Lost = &protocol.Lost{KeyID: "k1"}
		r.Key, _ = key.Public()
		r.Proof, err = key.Sign(r.Message())
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// What a device asks is signed: one in between does not make an enrollment one of a device that
// lost its identity, or the other way round.
func TestLost_IsSigned(t *testing.T) {
	w := newWorld(t)
	for name, change := range map[string]func(*protocol.EnrollRequest){
		"added":     func(r *protocol.EnrollRequest) { r.Lost = &protocol.Lost{KeyID: "k1"} },
		"taken out": func(r *protocol.EnrollRequest) { w.resignLost(r); r.Lost = nil },
		"exchanged": func(r *protocol.EnrollRequest) { w.resignLost(r); r.Lost = &protocol.Lost{KeyID: "k2"} },
	} {
		_, _, err := w.enrolling(t, "SN-1", change)
		if refused, ok := errors.AsType[*protocol.Refusal](err); !ok || refused.Code != protocol.BadSignature {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A device asks with its code in any process, until an administrator declines.
func TestLost_AsksInAnotherProcess(t *testing.T) {
	w := newWorld(t)
	p := w.enrollAs(protocol.Ed25519, "SN-1", w.token())
	p.mustCheckIn()
	if e, asks := agent.Asking(p.options.Dir); asks {
		t.Errorf("an enrolled device asks: %+v", e)
	}
	if err := os.WriteFile(filepath.Join(p.options.Dir, "identity.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	e, asks := agent.Enrollment{Server: w.server.URL, Token: w.token(), Role: protocol.Manager, Algorithm: protocol.Ed25519}, true
	for range 2 {
		e.Options = p.options
		if _, err := agent.Enroll(t.Context(), e); !errors.Is(err, agent.ErrWaiting) {
			t.Fatalf("got %v, want %v", err, agent.ErrWaiting)
		}
		if e, asks = agent.Asking(p.options.Dir); !asks {
			t.Fatal("the device does not ask again")
		}
	}
	if err := w.db.DeclineRequest(t.Context(), w.company.ID, w.waiting(1)); err != nil {
		t.Fatal(err)
	}
	e.Options = p.options
	if _, err := agent.Enroll(t.Context(), e); err == nil || errors.Is(err, agent.ErrWaiting) {
		t.Errorf("a device that was declined got %v", err)
	}
	if e, asks := agent.Asking(p.options.Dir); asks {
		t.Errorf("a device that was declined asks: %+v", e)
	}
}

// The requests of an asset are bounded, and they expire with their codes.
func TestLost_IsBounded(t *testing.T) {
	w := newWorld(t)
	p := w.enrollAs(protocol.Ed25519, "SN-1", w.token())
	p.mustCheckIn()
	facts, err := p.device.Facts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var codes []protocol.ErrorCode
	for range 4 {
		r := protocol.EnrollRequest{Token: w.token(), Role: protocol.Manager, Time: time.Now().UnixMilli()}
		r.Facts, _ = json.Marshal(facts)
		w.resignLost(&r)
		_, err := w.link.Enroll(t.Context(), r)
		refused, _ := errors.AsType[*protocol.Refusal](err)
		if refused == nil {
			t.Fatalf("no refusal: %v", err)
		}
		codes = append(codes, refused.Code)
	}
	if want := protocol.RateLimited; codes[2] != protocol.Waiting || codes[3] != want {
		t.Errorf("got %v", codes)
	}
	id := w.waiting(3)
	if err := w.db.DeclineRequest(t.Context(), w.company.ID, id); err != nil {
		t.Fatal(err)
	}
	if err := w.db.DeclineRequest(t.Context(), w.company.ID, id); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("declined twice: %v", err)
	}
	w.waiting(2)
}
