package agentserver_test

import (
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agentserver"
)

// A device with a P-256 key is given a P-256 command key and obeys that one; a
// device with an Ed25519 key keeps to Ed25519. The other's key has no power, and
// another device key changes nothing.
func TestCommandKey_OfTheDevicesAlgorithm(t *testing.T) {
	w := newWorld(t)
	for alg, other := range map[protocol.Algorithm]*agentserver.Signer{protocol.ES256: &w.link.Signer, protocol.Ed25519: &w.link.ES256} {
		p := w.enroll(alg)
		p.mustCheckIn()
		if d, err := w.db.AgentDevice(t.Context(), p.agent.DeviceID()); err != nil || d.CommandAlgorithm != alg {
			t.Fatalf("a device with a key of %s was given a command key of %s: %v", alg, d.CommandAlgorithm, err)
		}
		if !p.obeys() {
			t.Errorf("%s: the device does not obey the service", alg)
		}
		if err := p.agent.Rotate(t.Context()); err != nil {
			t.Errorf("%s: rotate: %v", alg, err)
		}
		kept := *other
		other.Key, other.ID = protocol.PrivateKey{}, "missing" // nothing is asked of it
		if !p.obeys() {
			t.Errorf("%s: with another device key it does not obey the service", alg)
		}
		*other = kept
		p.options.Now = func() time.Time { return time.Now().AddDate(1, 0, 0) }
		p.start()
		p.mustCheckIn() // the clock's repair is signed so, too
		if err := p.agent.Unenroll(t.Context()); err != nil {
			t.Errorf("%s: %v", alg, err)
		}
		if _, err := agent.LoadConnection(p.options.Dir); err == nil {
			t.Errorf("%s: the device is still enrolled", alg)
		}
	}
}

// The succession of command keys works for P-256 as it does for Ed25519.
func TestCommandKey_SuccessionES256(t *testing.T) {
	w := newWorld(t)
	p := w.enroll(protocol.ES256)
	p.mustCheckIn()
	key, err := protocol.NewPrivateKey(protocol.ES256)
	if err != nil {
		t.Fatal(err)
	}
	w.link.ES256 = agentserver.Signer{Key: key, ID: "e2", Made: time.Now(), Former: []agentserver.Signer{w.link.ES256}}
	p.mustCheckIn()
	if !p.obeys() {
		t.Error("the device does not obey the service's next key")
	}
}
