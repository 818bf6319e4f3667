package agentserver_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/command"
)

// enrolling is a request of a device that claims a serial number; sign adds the
// former device's word.
func (w *world) enrolling(t testing.TB, serial string,
	sign func(r *protocol.EnrollRequest)) (protocol.Enrolled, protocol.PrivateKey, error) {
	t.Helper()
	key, err := protocol.NewPrivateKey(protocol.Ed25519)
	if err != nil {
		t.Fatal(err)
	}
	r := protocol.EnrollRequest{Token: w.token(), Role: protocol.Manager, Time: time.Now().UnixMilli()}
	r.Facts, _ = json.Marshal(protocol.Facts{SerialNumber: serial, Brand: "Acme"})
	if r.Key, err = key.Public(); err != nil {
		t.Fatal(err)
	}
	if r.Proof, err = key.Sign(protocol.EnrollMessage(r.Token, r.Key, r.Facts, r.Time)); err != nil {
		t.Fatal(err)
	}
	sign(&r)
	sealed, err := w.link.Enroll(t.Context(), r)
	if err != nil {
		return protocol.Enrolled{}, key, err
	}
	answer, err := sealed.OpenEnrolled("", r.Key, r.Proof)
	return answer, key, err
}

// A device that can still sign with its former key becomes its live asset again;
// not with another signature, and not out of an open wipe.
func TestEnroll_FormerKey(t *testing.T) {
	w := newWorld(t)
	first, key, err := w.enrolling(t, "SN-1", func(*protocol.EnrollRequest) {})
	if err != nil {
		t.Fatal(err)
	}
	former := func(signer protocol.PrivateKey, id string) func(*protocol.EnrollRequest) {
		return func(r *protocol.EnrollRequest) {
			sig, err := signer.Sign(protocol.FormerMessage(id, r.Token, r.Key, r.Facts, r.Time))
			if err != nil {
				t.Fatal(err)
			}
			r.Former = &protocol.Former{DeviceID: id, Sig: sig}
		}
	}
	other, err := protocol.NewPrivateKey(protocol.Ed25519)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.enrolling(t, "SN-1", former(other, first.DeviceID)); err == nil {
		t.Error("another key joined the live asset")
	}
	second, next, err := w.enrolling(t, "SN-1", former(key, first.DeviceID))
	if err != nil {
		t.Fatal(err)
	}
	before, err1 := w.db.AgentDevice(t.Context(), first.DeviceID)
	after, err2 := w.db.AgentDevice(t.Context(), second.DeviceID)
	if err1 != nil || err2 != nil {
		t.Fatalf("before: %v; after: %v", err1, err2)
	}
	if before.AssetID != after.AssetID || after.Epoch != 2 || !before.Superseded {
		t.Fatalf("before %+v; after %+v", before, after)
	}
	p := &phone{world: w, assetID: after.AssetID}
	p.send(command.WipeCompanyData, nil)
	if _, _, err := w.enrolling(t, "SN-1", former(next, second.DeviceID)); err == nil {
		t.Error("a device that is to be erased enrolled out of it")
	}
}

// Whatever is given as the former device's word, without its key no live asset
// is joined.
func FuzzEnroll_Former(f *testing.F) {
	w := makeWorld(f)
	first, _, err := w.enrolling(f, "SN-1", func(*protocol.EnrollRequest) {})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(first.DeviceID, "")
	f.Add("", "AAAA")
	f.Add(first.DeviceID, "\x00")
	f.Fuzz(func(t *testing.T, id, sig string) {
		w.t = t
		if _, _, err := w.enrolling(t, "SN-1", func(r *protocol.EnrollRequest) {
			r.Former = &protocol.Former{DeviceID: id, Sig: sig}
		}); err == nil {
			t.Fatalf("joined with %q, %q", id, sig)
		}
	})
}
