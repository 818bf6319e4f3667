package agentserver_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/agentserver"
	"github.com/musterhq/muster/internal/command"
)

// A device changes its key, wherever the change is interrupted: it always has a
// key that the service takes, and the old one is worth nothing afterwards.
func TestRotate_DeviceKey(t *testing.T) {
	w := newWorld(t)
	for _, alg := range []protocol.Algorithm{protocol.Ed25519, protocol.ES256} {
		for _, lost := range []string{"nothing", "the request", "the answer", "the room on disk"} {
			p := w.enroll(alg)
			p.mustCheckIn()
			before := p.key()
			client := *p.options.Client
			cut := func(r *http.Request) bool { return lost == "the request" && strings.HasSuffix(r.URL.Path, "/rotate") }
			base, identity, full := client.Transport, filepath.Join(p.options.Dir, "identity.json"), lost == "the room on disk"
			aside := identity + ".aside"
			client.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
				if cut(r) {
					return nil, errors.New("no network")
				}
				if _, err := os.Lstat(aside); err != nil && full && strings.HasSuffix(r.URL.Path, "/rotate") {
					// No file can take a folder's place.
					if err := errors.Join(os.Rename(identity, aside), os.Mkdir(identity, 0o700)); err != nil {
						t.Error(err)
					}
				}
				return base.RoundTrip(r)
			})
			p.options.Client = &client
			p.start()
			w.losing(func(r *http.Request) bool { return lost == "the answer" && strings.HasSuffix(r.URL.Path, "/rotate") })
			err := p.agent.Rotate(t.Context())
			w.lose.Store(nil)
			cut = func(*http.Request) bool { return false }
			if (err == nil) != (lost == "nothing") {
				t.Fatalf("%s, %s lost: %v", alg, lost, err)
			}
			if full {
				if err := p.checkIn(); err == nil || strings.Contains(err.Error(), "bad_signature") {
					t.Errorf("%s, while the disk is full: %v", alg, err)
				}
				full = false
				if err := errors.Join(os.Remove(identity), os.Rename(aside, identity)); err != nil {
					t.Fatal(err)
				}
			}
			p.start() // the process may have died
			p.mustCheckIn()
			if now := p.key(); now == before || now.Algorithm != alg {
				t.Errorf("%s, %s lost: the key was %v and is %v", alg, lost, before, now)
			}
			p.send(command.LaunchApp, command.LaunchAppBody{PackageName: "com.example.app"})
			p.mustCheckIn()
			if c := p.latest(); c.State != command.Succeeded {
				t.Errorf("%s, %s lost: %s %q", alg, lost, c.State, c.Outcome)
			}
		}
	}
}

// A device that does not know which of two keys the service has enrolls again as itself,
// also if another one has become its asset since.
func TestRotate_EnrollsAgain(t *testing.T) {
	w := newWorld(t)
	for _, superseded := range []bool{false, true} {
		p := w.enroll(protocol.Ed25519)
		p.mustCheckIn()
		w.losing(func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/rotate") })
		if err := p.agent.Rotate(t.Context()); err == nil {
			t.Fatal("the answer was not lost")
		}
		w.lose.Store(nil)
		if err := p.agent.Close(); err != nil {
			t.Fatal(err)
		}
		token := w.token()
		if superseded {
			w.enrollAs(protocol.Ed25519, "SN-OTHER", w.assetToken(p.assetID))
			token = w.assetToken(p.assetID)
		}
		enrolled, err := agent.Enroll(t.Context(), agent.Enrollment{Server: w.server.URL, Token: token, Role: protocol.Manager,
			Again: !superseded, Options: p.options})
		if err != nil {
			t.Fatalf("superseded %v: %v", superseded, err)
		}
		device, err := w.db.AgentDevice(t.Context(), enrolled.DeviceID)
		if err != nil || device.AssetID != p.assetID {
			t.Errorf("superseded %v: it is asset %s, %v; want %s", superseded, device.AssetID, err, p.assetID)
		}
	}
}

// assetToken is a token that was made for an asset.
func (w *world) assetToken(assetID string) string {
	w.t.Helper()
	text, _, err := agentdevice.AssetTokens{Store: w.db, Now: time.Now}.Issue(w.t.Context(), w.company.ID, assetID, "", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return text
}

// key is the device's key as the service knows it.
func (p *phone) key() protocol.PublicKey {
	p.world.t.Helper()
	d, err := p.world.db.AgentDevice(p.world.t.Context(), p.agent.DeviceID())
	if err != nil {
		p.world.t.Fatal(err)
	}
	return d.Key
}

func TestRotate_OldDeviceKey(t *testing.T) {
	w := newWorld(t)
	p := w.enroll(protocol.Ed25519)
	p.mustCheckIn()
	before := p.key()
	ahead := 366 * 24 * time.Hour
	w.link.Now = func() time.Time { return time.Now().Add(ahead) }
	p.options.Now = w.link.Now
	p.start()
	p.mustCheckIn()
	if p.key() == before {
		t.Error("the key is a year old and the same")
	}
}

// follow gives the service another command key. keep says whether it still has
// those before.
func (w *world) follow(id string, keep bool) {
	w.t.Helper()
	key, err := protocol.NewPrivateKey(protocol.Ed25519)
	if err != nil {
		w.t.Fatal(err)
	}
	former := []agentserver.Signer{{Key: w.link.Signer.Key, ID: w.link.Signer.ID, Made: w.link.Signer.Made}}
	next := agentserver.Signer{Key: key, ID: id, Made: w.link.Now()}
	if keep {
		next.Former = append(former, w.link.Signer.Former...)
	}
	w.link.Signer = next
}

// The service changes its key, twice while the device is away: each key that a
// device trusts leads to the next, and only that.
func TestRotate_ServiceKey(t *testing.T) {
	w := newWorld(t)
	p, away := w.enroll(protocol.Ed25519), w.enroll(protocol.Ed25519)
	p.mustCheckIn()
	away.mustCheckIn()
	for _, id := range []string{"k2", "k3"} {
		w.follow(id, true)
		p.send(command.LaunchApp, command.LaunchAppBody{PackageName: "com.example.app"})
		p.mustCheckIn()
		if c := p.latest(); c.State != command.Succeeded {
			t.Errorf("after %s: %s %q", id, c.State, c.Outcome)
		}
	}
	away.send(command.LaunchApp, command.LaunchAppBody{PackageName: "com.example.app"})
	away.mustCheckIn()
	if c := away.latest(); c.State != command.Succeeded {
		t.Errorf("the device that was away: %s %q", c.State, c.Outcome)
	}
	w.follow("k9", false) // no key that the devices know announces it
	p.send(command.LaunchApp, command.LaunchAppBody{PackageName: "com.example.app"})
	if err := p.checkIn(); err == nil {
		t.Error("the assignment of a key that was not announced is believed")
	}
	if c := p.latest(); c.State.Final() {
		t.Errorf("a key that was not announced has power: %s", c.State)
	}
}

// A device that was away while the key changed is also freed, and its clock
// corrected, by the new key; the former key has lost its power a week later.
func TestRotate_RefusalsLeadToTheNewKey(t *testing.T) {
	w := newWorld(t)
	p := w.enroll(protocol.Ed25519)
	p.mustCheckIn()
	old := w.link.Signer
	w.follow("k2", true)
	p.options.Now = func() time.Time { return time.Now().Add(-40 * 24 * time.Hour) }
	p.start()
	p.mustCheckIn()

	w.link.Now = func() time.Time { return time.Now().Add(30 * 24 * time.Hour) }
	p.options.Now = w.link.Now
	w.follow("k3", true)
	p.start()
	p.mustCheckIn() // trusts k3; k1 was followed a month ago
	present := w.link.Signer
	w.link.Signer = agentserver.Signer{Key: old.Key, ID: old.ID}
	p.send(command.LaunchApp, command.LaunchAppBody{PackageName: "com.example.app"})
	if err := p.checkIn(); err == nil {
		t.Error("the assignment of a key that was followed long ago is believed")
	}
	if c := p.latest(); c.State.Final() {
		t.Errorf("a key that was followed long ago has power: %s", c.State)
	}
	w.link.Signer = present
	w.follow("k4", true)
	if err := w.link.Unenroll(t.Context(), w.device(p)); err != nil {
		t.Fatal(err)
	}
	if err := p.checkIn(); !errors.Is(err, agent.ErrEnded) {
		t.Errorf("the tombstone of the newest key: %v", err)
	}
}

// A device whose clock shows the wrong year stays reachable, although the service has
// changed its key while the device was away.
func TestRotate_ServiceKeyWhileTheClockIsWrong(t *testing.T) {
	w := newWorld(t)
	past, future := w.enroll(protocol.Ed25519), w.enroll(protocol.Ed25519)
	for _, years := range []int{1, 2} {
		w.link.Now = func() time.Time { return time.Now().AddDate(years, 0, 0) }
		w.follow("k"+strconv.Itoa(years+1), true)
	}
	past.options.Now = func() time.Time { return time.UnixMilli(0) }
	future.options.Now = func() time.Time { return time.Now().AddDate(40, 0, 0) }
	for _, p := range []*phone{past, future} {
		p.start()
		if err := p.checkIn(); err != nil {
			t.Errorf("the clock shows %s: %v", p.options.Now().Format(time.DateOnly), err)
		}
	}
}
