package agent_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/protocol"
)

var update = flag.Bool("update", false, "write the Android app's test vectors")

// vectorsFile is what the Android app's core is tested against.
const vectorsFile = "../../android/test/vectors.json"

type object = map[string]any

// TestVectors_Golden: what this agent and the service sign and write is what
// the Android app's tests read.
func TestVectors_Golden(t *testing.T) {
	t.Parallel()
	key := vectorKey(t, "device")
	public, err := key.Public()
	if err != nil {
		t.Fatal(err)
	}
	name, err := public.Name()
	if err != nil {
		t.Fatal(err)
	}
	service, err := key.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	request := protocol.Request{Method: "POST", Path: "/agent/v2/policy/p%20q?v=3", Device: "d1", Time: 1_795_000_000_123, Sequence: 42,
		Body: []byte(`{"ü":"</>&"}`)}
	signature, err := key.Sign(request.Message())
	if err != nil {
		t.Fatal(err)
	}
	facts := []byte(`{"serialNumber":"SN <1> & ü","sdk":34}`)
	all := object{
		"key": public, "keyName": name, "service": base64.RawURLEncoding.EncodeToString(service), "badKeys": vectorBadKeys(t),
		"request": object{"method": request.Method, "path": request.Path, "device": request.Device, "time": request.Time,
			"sequence": request.Sequence,
			"body":     string(request.Body), "message": string(request.Message()), "signature": signature},
		"enroll": object{"token": "met_token", "facts": string(facts), "time": request.Time,
			"message": string(protocol.EnrollMessage("met_token", public, facts, request.Time)),
			"former":  "d0", "formerMessage": string(protocol.FormerMessage("d0", "met_token", public, facts, request.Time))},
		"rotate":    object{"device": "d1", "sequence": 43, "message": string(protocol.RotateMessage("d1", public, 43))},
		"envelopes": vectorEnvelopes(t, key, public),
		"trust":     vectorTrust(t),
		"journal":   vectorJournal(t),
		"settled":   vectorSettled(),
		"lines":     vectorLines(),
		"guarded":   agent.Connectivity(),
		"now":       int64(commandsNow),
		"commands":  vectorCommands(t, key),
		"document":  policyEnvelope(t, key),
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(all); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(vectorsFile, text.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(vectorsFile); err != nil || !bytes.Equal(got, text.Bytes()) {
		t.Errorf("the Android app's test vectors are others (%v): run the test with -update, and see that the app agrees", err)
	}
}

// vectorKey is a P-256 key that is the same in each run.
func vectorKey(t *testing.T, name string) protocol.PrivateKey {
	t.Helper()
	secret := sha256.Sum256([]byte("test vector " + name))
	ec, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), secret[:])
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(ec)
	if err != nil {
		t.Fatal(err)
	}
	key, err := protocol.ParsePrivateKey(raw)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// vectorEnvelopes are one of each kind, with its payload as text.
func vectorEnvelopes(t *testing.T, key protocol.PrivateKey, public protocol.PublicKey) (all []object) {
	t.Helper()
	for _, one := range []struct {
		kind  string
		value any
	}{
		{protocol.KindCommand, protocol.Command{DeviceID: "d1", ID: "c1", Type: "NOTIFICATION_MESSAGE",
			Args: json.RawMessage(`{"title":"ü","body":"$(reboot)\n"}`), NotBefore: 1, Deadline: 2}},
		{protocol.KindPolicy, protocol.Policy{ID: "p1", CompanyID: "c", Version: 3, Settings: map[string]string{"CAMERA": "BLOCK"},
			VROnly: true}},
		{protocol.KindAssignment, protocol.Assignment{DeviceID: "d1", CompanyID: "c", PolicyID: "p1", Version: 3, Number: 42, Time: 4}},
		{protocol.KindTombstone, protocol.Tombstone{DeviceID: "d1", Action: protocol.WipeAgain, InReplyTo: "sig", Time: 8}},
		{protocol.KindEnrolled, protocol.Enrolled{DeviceID: "d1", Key: public, Proof: protocol.Digest([]byte("proof")),
			CommandKey: protocol.CommandKey{ID: "k1", Key: public, NotBefore: 9}, Time: 10}},
		{protocol.KindTime, protocol.Time{DeviceID: "d1", ServerTime: 5, LastSequence: 6, InReplyTo: "sig"}},
		{protocol.KindKey, protocol.CommandKey{ID: "k2", Key: public, NotBefore: 7}},
	} {
		sealed, err := protocol.Seal(key, "k1", one.kind, one.value)
		if err != nil {
			t.Fatal(err)
		}
		payload, err := json.Marshal(one.value)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, object{"kind": one.kind, "envelope": sealed, "payload": string(payload)})
	}
	return all
}

// vectorBadKeys are keys of the name es256 that can verify nothing.
func vectorBadKeys(t *testing.T) (all []object) {
	t.Helper()
	add := func(what string, spki []byte) {
		key := protocol.PublicKey{Algorithm: protocol.ES256, SPKI: base64.RawURLEncoding.EncodeToString(spki)}
		if key.Check() == nil {
			t.Errorf("%s is taken for a key", what)
		}
		all = append(all, object{"what": what, "key": key})
	}
	secret := bytes.Repeat([]byte{1}, 48)
	p384, err := ecdsa.ParseRawPrivateKey(elliptic.P384(), secret)
	if err != nil {
		t.Fatal(err)
	}
	other, err := x509.MarshalPKIXPublicKey(&p384.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	ed, err := x509.MarshalPKIXPublicKey(ed25519.NewKeyFromSeed(secret[:32]).Public())
	if err != nil {
		t.Fatal(err)
	}
	public, err := vectorKey(t, "device").Public()
	if err != nil {
		t.Fatal(err)
	}
	good, err := base64.RawURLEncoding.DecodeString(public.SPKI)
	if err != nil {
		t.Fatal(err)
	}
	astray, long := bytes.Clone(good), append(bytes.Clone(good), 0)
	astray[len(astray)-1] ^= 1
	bitcoin, err := hex.DecodeString("3056301006072a8648ce3d020106052b8104000a034200" +
		"0479be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798" +
		"483ada7726a3c4655da4fbfc0e1108a8fd17b448a68554199c47d08ffb10d4b8")
	if err != nil {
		t.Fatal(err)
	}
	add("a key on P-384", other)
	add("a key on secp256k1", bitcoin)
	add("an Ed25519 key", ed)
	add("a point that is not on the curve", astray)
	add("a key with a byte behind it", long)
	add("half a key", good[:len(good)/2])
	add("text", []byte("no key"))
	add("nothing", nil)
	return all
}

// vectorCommands are the signed commands of the command matrix.
func vectorCommands(t *testing.T, key protocol.PrivateKey) object {
	t.Helper()
	all := object{}
	for _, kind := range commandTypes() {
		if kind == tooLarge { // the app's test makes it
			continue
		}
		all[kind] = object{"intime": commandEnvelope(t, key, commandOf(kind, false)),
			"late": commandEnvelope(t, key, commandOf(kind, true))}
	}
	return all
}

// vectorJournal are lines as this agent writes them, one for each stage.
func vectorJournal(t *testing.T) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal")
	journal, err := agent.OpenJournal(path, time.UnixMilli(0))
	if err != nil {
		t.Fatal(err)
	}
	defer journal.Close()
	command := protocol.Command{DeviceID: "d1", ID: "c1", Type: "REBOOT", Args: json.RawMessage(`{"a":"<ü>"}`), NotBefore: 1, Deadline: 2}
	for _, e := range []agent.Entry{
		{Command: command, Stage: agent.Received, At: 1},
		{Command: command, Stage: agent.Started, BootID: "boot-1", At: 2},
		{Command: command, Stage: agent.Done, BootID: "boot-1", Result: protocol.Failed, Outcome: "no", At: 3, Accepted: true},
		{Command: protocol.Command{ID: "c1", Type: "REBOOT"}, Stage: agent.Confirmed, At: 4},
	} {
		if err := journal.Write(e); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// vectorLines are texts with the one line that stands for each.
func vectorLines() (all []object) {
	for _, text := range []string{"", "done", "no\nway\r\n", "\ta\x00b\u0085c\u2028d\u2029e\u007ff", " kept  inside ", "ü 漢 🎉 \u00a0\ufffd",
		strings.Repeat("x", 1500),
		"x" + strings.Repeat("🎉", 700)} {
		all = append(all, object{"text": text, "line": agent.OneLine(text)})
	}
	return all
}

// vectorSettled says for pairs of what was asked for and what a device shows
// whether the one is held.
func vectorSettled() (all []object) {
	values := []string{"", "ALLOW", "BLOCK", "PROMPT", "BLACKLIST", "OPEN_NETWORK", "USER_CHOICE", "UNSPECIFIED", "ENFORCED",
		"ALLOW_INSTALL_IN_PERSONAL_PROFILE_ONLY", "DISALLOW_INSTALL"}
	for _, want := range values {
		for _, got := range values {
			all = append(all, object{"want": want, "got": got, "settled": agent.Settled(want, got)})
		}
	}
	return all
}
