package agent_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/protocol"
)

// forger makes what a service signs, and what one in between makes of it.
type forger struct {
	t                  *testing.T
	service, evil, own protocol.PrivateKey
	proof              string
}

func (f forger) public(key protocol.PrivateKey) protocol.PublicKey {
	f.t.Helper()
	public, err := key.Public()
	if err != nil {
		f.t.Fatal(err)
	}
	return public
}

func (f forger) seal(key protocol.PrivateKey, keyID, kind string, v any) protocol.Envelope {
	f.t.Helper()
	sealed, err := protocol.Seal(key, keyID, kind, v)
	if err != nil {
		f.t.Fatal(err)
	}
	return sealed
}

// vectorTrust are answers, true and false, with what a device makes of each. This
// agent is held to them here, the Android app in its tests.
func vectorTrust(t *testing.T) object {
	t.Helper()
	f := forger{t: t, service: vectorKey(t, "device"), evil: vectorKey(t, "evil"), own: vectorKey(t, "own"), proof: "proof"}
	return object{"now": int64(commandsNow), "own": f.public(f.own), "proof": f.proof, "enrolled": f.enrollments(),
		"tombstones":  f.tombstones(),
		"assignments": f.assignments(), "announcements": f.announcements(), "times": f.times()}
}

// judge is a device that trusts the service's key k1.
func (f forger) judge() agent.Judge {
	f.t.Helper()
	dir := f.t.TempDir()
	secret, err := f.own.Marshal()
	if err != nil {
		f.t.Fatal(err)
	}
	text, err := json.Marshal(object{"server": "https://muster.example", "deviceId": "d1", "role": "manager", "key": secret, "reserved": 1,
		"latest":      commandsNow,
		"commandKeys": []protocol.CommandKey{{ID: "k1", Key: f.public(f.service), NotBefore: commandsNow - 1000}}, "connection": object{}})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "identity.json"), text, 0o600)
	}
	if err != nil {
		f.t.Fatal(err)
	}
	j, err := agent.NewJudge(dir, func() time.Time { return time.UnixMilli(commandsNow) })
	if err != nil {
		f.t.Fatal(err)
	}
	return j
}

func (f forger) enrollments() (all []object) {
	service, evil, own := f.public(f.service), f.public(f.evil), f.public(f.own)
	digest, err := service.Name()
	if err != nil {
		f.t.Fatal(err)
	}
	enrolled := func(change func(*protocol.Enrolled)) protocol.Enrolled {
		e := protocol.Enrolled{DeviceID: "d1", Key: own, Proof: protocol.Digest([]byte(f.proof)),
			CommandKey: protocol.CommandKey{ID: "k1", Key: service, NotBefore: 1}, Time: commandsNow}
		if change != nil {
			change(&e)
		}
		return e
	}
	good := f.seal(f.service, "k1", protocol.KindEnrolled, enrolled(nil))
	evils := f.seal(f.evil, "k1", protocol.KindEnrolled, enrolled(func(e *protocol.Enrolled) { e.CommandKey.Key = evil }))
	cut := good
	cut.Payload = cut.Payload[:len(cut.Payload)-8]
	relabeled := good
	relabeled.KeyID = "k2"
	unsigned := good
	unsigned.Sig = ""
	garbage := service
	garbage.SPKI = "AAAA"
	for _, one := range []struct {
		what, named string
		answer      protocol.Envelope
		want        bool
	}{
		{"the service's answer, its key named", service.SPKI, good, true},
		{"the service's answer, its key's digest named", digest, good, true},
		{"the service's answer, no key named", "", good, true},
		{"another's answer, no key named: it cannot be told apart", "", evils, true},
		{"another's answer, the service's key named", service.SPKI, evils, false},
		{"another's answer, the service's key's digest named", digest, evils, false},
		{"the service's key, signed by another", service.SPKI, f.seal(f.evil, "k1", protocol.KindEnrolled, enrolled(nil)), false},
		{"another key id than the answer names", service.SPKI, f.seal(f.service, "k2", protocol.KindEnrolled, enrolled(nil)), false},
		{"relabeled", service.SPKI, relabeled, false},
		{"not signed", service.SPKI, unsigned, false},
		{"cut", service.SPKI, cut, false},
		{"of another kind", service.SPKI, f.seal(f.service, "k1", protocol.KindAssignment, enrolled(nil)), false},
		{"to another request", "", f.seal(f.service, "k1", protocol.KindEnrolled,
			enrolled(func(e *protocol.Enrolled) { e.Proof = protocol.Digest([]byte("other")) })), false},
		{"for another device's key", "", f.seal(f.service, "k1", protocol.KindEnrolled,
			enrolled(func(e *protocol.Enrolled) { e.Key = evil })),
			false},
		{"of another algorithm", "", f.seal(f.service, "k1", protocol.KindEnrolled,
			enrolled(func(e *protocol.Enrolled) { e.CommandKey.Key.Algorithm = "ed25519" })), false},
		{"with a key that can verify nothing", "",
			f.seal(f.service, "k1", protocol.KindEnrolled, enrolled(func(e *protocol.Enrolled) { e.CommandKey.Key = garbage })), false},
		{"without a device id", "", f.seal(f.service, "k1", protocol.KindEnrolled,
			enrolled(func(e *protocol.Enrolled) { e.DeviceID = "" })),
			false},
		{"with a line break in the device id", "",
			f.seal(f.service, "k1", protocol.KindEnrolled, enrolled(func(e *protocol.Enrolled) { e.DeviceID = "d1\nX: y" })), false},
		{"without a key id", "", f.seal(f.service, "", protocol.KindEnrolled,
			enrolled(func(e *protocol.Enrolled) { e.CommandKey.ID = "" })),
			false},
	} {
		if _, err := one.answer.OpenEnrolled(one.named, own, f.proof); (err == nil) != one.want {
			f.t.Errorf("enrolled, %s: %v, want taken %v", one.what, err, one.want)
		}
		all = append(all, object{"what": one.what, "named": one.named, "answer": one.answer, "taken": one.want})
	}
	return all
}

func (f forger) tombstones() (all []object) {
	stone := func(change func(*protocol.Tombstone)) protocol.Tombstone {
		s := protocol.Tombstone{DeviceID: "d1", Action: protocol.WipeAgain, InReplyTo: "this", Time: commandsNow}
		if change != nil {
			change(&s)
		}
		return s
	}
	former := object{"deviceId": "d1", "action": "wipe"} // as the first version had it
	for _, one := range []struct {
		what, request string
		signed        protocol.Envelope
		want          protocol.TombstoneAction
	}{
		{"the service's", "this", f.seal(f.service, "k1", protocol.KindTombstone, stone(nil)), protocol.WipeAgain},
		{"kept from another request", "other", f.seal(f.service, "k1", protocol.KindTombstone, stone(nil)), ""},
		{"bound to no request", "this", f.seal(f.service, "k1", protocol.KindTombstone, former), ""},
		{"bound to no request, in answer to none", "", f.seal(f.service, "k1", protocol.KindTombstone, former), ""},
		{"without a time", "this", f.seal(f.service, "k1", protocol.KindTombstone, stone(func(s *protocol.Tombstone) { s.Time = 0 })), ""},
		{"another device's", "this", f.seal(f.service, "k1", protocol.KindTombstone,
			stone(func(s *protocol.Tombstone) { s.DeviceID = "d2" })), ""},
		{"signed by another", "this", f.seal(f.evil, "k1", protocol.KindTombstone, stone(nil)), ""},
		{"of another kind", "this", f.seal(f.service, "k1", protocol.KindCommand, stone(nil)), ""},
	} {
		if got := f.judge().Tombstone(protocol.Refusal{Code: protocol.Ended, Signed: &one.signed}, one.request); got != one.want {
			f.t.Errorf("a tombstone %s: %q, want %q", one.what, got, one.want)
		}
		all = append(all, object{"what": one.what, "request": one.request, "signed": one.signed, "action": one.want})
	}
	return all
}

func (f forger) assignments() (all []object) {
	given := func(change func(*protocol.Assignment)) protocol.Assignment {
		a := protocol.Assignment{DeviceID: "d1", CompanyID: "c", PolicyID: "p1", Version: 1, Number: 42, Time: commandsNow}
		if change != nil {
			change(&a)
		}
		return a
	}
	for _, one := range []struct {
		what   string
		sealed protocol.Envelope
		want   string
	}{
		{"the service's", f.seal(f.service, "k1", protocol.KindAssignment, given(nil)), "p1"},
		{"of another request", f.seal(f.service, "k1", protocol.KindAssignment, given(func(a *protocol.Assignment) { a.Number = 41 })), ""},
		{"another device's", f.seal(f.service, "k1", protocol.KindAssignment, given(func(a *protocol.Assignment) { a.DeviceID = "d2" })),
			""},
		{"of no policy", f.seal(f.service, "k1", protocol.KindAssignment, given(func(a *protocol.Assignment) { a.PolicyID = "" })), ""},
		{"signed by another", f.seal(f.evil, "k1", protocol.KindAssignment, given(nil)), ""},
		{"of another kind", f.seal(f.service, "k1", protocol.KindPolicy, given(nil)), ""},
	} {
		if got := f.judge().Assigned(one.sealed, 42); got != one.want {
			f.t.Errorf("an assignment %s: %q, want %q", one.what, got, one.want)
		}
		all = append(all, object{"what": one.what, "sealed": one.sealed, "policy": one.want})
	}
	return all
}

func (f forger) announcements() (all []object) {
	next, evil := f.public(vectorKey(f.t, "next")), f.public(f.evil)
	announce := func(by protocol.PrivateKey, keyID string, k protocol.CommandKey) protocol.Envelope {
		return f.seal(by, keyID, protocol.KindKey, k)
	}
	truly := announce(f.service, "k1", protocol.CommandKey{ID: "k2", Key: next, NotBefore: commandsNow})
	forged := announce(f.evil, "k1", protocol.CommandKey{ID: "k2", Key: evil, NotBefore: commandsNow})
	third := announce(vectorKey(f.t, "next"), "k2", protocol.CommandKey{ID: "k3", Key: f.public(f.own), NotBefore: commandsNow})
	known := []string{"k1"}
	lists := []struct {
		what      string
		envelopes []protocol.Envelope
		want      []string
	}{
		{"a true one", []protocol.Envelope{truly}, []string{"k1", "k2"}},
		{"two, each by the one before", []protocol.Envelope{truly, third}, []string{"k1", "k2", "k3"}},
		{"two in the other order", []protocol.Envelope{third, truly}, []string{"k1", "k2"}},
		{"the same one twice", []protocol.Envelope{truly, truly}, []string{"k1", "k2"}},
		{"a forged one", []protocol.Envelope{forged}, known},
		{"a forged one in front of a true one", []protocol.Envelope{forged, truly}, []string{"k1", "k2"}},
		{"forged ones around true ones", []protocol.Envelope{forged, truly, forged, third, forged}, []string{"k1", "k2", "k3"}},
		{"of another algorithm",
			[]protocol.Envelope{announce(f.service, "k1", protocol.CommandKey{ID: "k2",
				Key: protocol.PublicKey{Algorithm: protocol.Ed25519, SPKI: next.SPKI}, NotBefore: commandsNow})}, known},
		{"older than the key before",
			[]protocol.Envelope{announce(f.service, "k1", protocol.CommandKey{ID: "k2", Key: next, NotBefore: commandsNow - 5000})}, known},
		{"of the future", []protocol.Envelope{announce(f.service, "k1",
			protocol.CommandKey{ID: "k2", Key: next, NotBefore: commandsNow + 48*time.Hour.Milliseconds()})}, known},
		{"without an id", []protocol.Envelope{announce(f.service, "k1", protocol.CommandKey{Key: next, NotBefore: commandsNow})}, known},
	}
	for _, bad := range vectorBadKeys(f.t) {
		useless := announce(f.service, "k1", protocol.CommandKey{ID: "k2", Key: bad["key"].(protocol.PublicKey), NotBefore: commandsNow})
		lists = append(lists, struct {
			what      string
			envelopes []protocol.Envelope
			want      []string
		}{"truly announced, but " + bad["what"].(string), []protocol.Envelope{useless}, known})
	}
	for _, one := range lists {
		if got := f.judge().Learn(one.envelopes); !slices.Equal(got, one.want) {
			f.t.Errorf("announcements, %s: it trusts %v, want %v", one.what, got, one.want)
		}
		all = append(all, object{"what": one.what, "said": one.envelopes, "trusted": one.want})
	}
	return all
}

// times are refusals for the clock of a device that was away for two years, in which the service changed its key twice.
func (f forger) times() (all []object) {
	const year = int64(365 * 24 * time.Hour / time.Millisecond)
	announce := func(by protocol.PrivateKey, keyID string, k protocol.CommandKey) protocol.Envelope {
		return f.seal(by, keyID, protocol.KindKey, k)
	}
	second, evil := vectorKey(f.t, "next"), f.public(f.evil)
	truly := announce(f.service, "k1", protocol.CommandKey{ID: "k2", Key: f.public(second), NotBefore: commandsNow + year})
	third := announce(second, "k2", protocol.CommandKey{ID: "k3", Key: f.public(f.own), NotBefore: commandsNow + 2*year})
	forged := announce(f.evil, "k1", protocol.CommandKey{ID: "k3", Key: evil, NotBefore: commandsNow + 2*year})
	signed := func(by protocol.PrivateKey, keyID, request string) protocol.Envelope {
		return f.seal(by, keyID, protocol.KindTime, protocol.Time{DeviceID: "d1", ServerTime: commandsNow + 2*year, InReplyTo: request})
	}
	known := []string{"k1"}
	for _, one := range []struct {
		what   string
		signed protocol.Envelope
		keys   []protocol.Envelope
		offset int64
		want   []string
	}{
		{"signed with the known key", signed(f.service, "k1", "this"), nil, 2 * year, known},
		{"signed with the key after the next", signed(f.own, "k3", "this"), []protocol.Envelope{truly, third}, 2 * year,
			[]string{"k2", "k3"}},
		{"a forged key in front", signed(f.own, "k3", "this"), []protocol.Envelope{forged, truly, third}, 2 * year, []string{"k2", "k3"}},
		{"the keys are not announced", signed(f.own, "k3", "this"), nil, 0, known},
		{"a key between is not announced", signed(f.own, "k3", "this"), []protocol.Envelope{third}, 0, known},
		{"a forged key", signed(f.evil, "k3", "this"), []protocol.Envelope{truly, forged}, 0, known},
		{"another's, with the keys of the service", signed(f.evil, "k3", "this"), []protocol.Envelope{truly, third}, 0, known},
		{"of another request", signed(f.own, "k3", "other"), []protocol.Envelope{truly, third}, 0, known},
	} {
		answer := protocol.Refusal{Code: protocol.ClockSkew, Signed: &one.signed, Keys: one.keys}
		if offset, ids := f.judge().Correct(answer, "this"); offset != one.offset || !slices.Equal(ids, one.want) {
			f.t.Errorf("a time, %s: the clock is set by %d, and it trusts %v, want %d and %v", one.what, offset, ids, one.offset, one.want)
		}
		all = append(all, object{"what": one.what, "answer": answer, "offset": one.offset, "trusted": one.want})
	}
	return all
}
