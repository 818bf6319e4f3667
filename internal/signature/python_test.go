package signature_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os/exec"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/signature"
)

// many is what the Python verifier says about files, which it gets as JSON.
const many = `
import base64, json, sys
sys.path.insert(0, sys.argv[1])
import verify_approval as v
cases, answers = json.load(sys.stdin), []
for case in cases["files"]:
    try:
        answers.append(int(v.verify(base64.b64decode(case), cases["trust"])[1]) + 1)
    except Exception:
        answers.append(0)
json.dump(answers, sys.stdout)
`

// TestPythonVerifierAgrees gives docs/verify_approval.py what ours was given: whole
// files, every byte changed, and other encodings.
func TestPythonVerifierAgrees(t *testing.T) {
	t.Parallel()
	if err := exec.CommandContext(t.Context(), "python3", "-c", "import cryptography").Run(); err != nil {
		t.Skip("python3 with the package cryptography is not here: the verifier in docs/ was not run")
	}
	s := newES256(t)
	witness := newService()
	signed := witness.accept(t, s.sign(document(t, nil), 5, party.RPID, nil))
	file, err := signed.Export()
	if err != nil {
		t.Fatal(err)
	}
	files := [][]byte{file, bytes.TrimSpace(file), append(bytes.Clone(file), '\n'), bytes.Replace(file, []byte("é"), []byte(`\u00e9`), 1)}
	for _, change := range []func(map[string]any){func(c map[string]any) { c["type"] = "webauthn.create" }, func(c map[string]any) {
		c["origin"] = "https://evil.test"
	},
		func(c map[string]any) { c["crossOrigin"] = true }, func(c map[string]any) { c["topOrigin"] = "x" }} {
		one, _ := s.sign(document(t, nil), 5, party.RPID, change).Export()
		files = append(files, one)
	}
	for _, flags := range []byte{0, 1, 4} {
		one, _ := s.sign(document(t, nil), flags, party.RPID, nil).Export()
		files = append(files, one)
	}
	for _, edit := range []func(*signature.Head){func(h *signature.Head) { h.Company = "other" }, func(h *signature.Head) {
		h.Approver.ID = "u2"
	},
		func(h *signature.Head) { h.Domain = "x" }, func(h *signature.Head) { h.Decision = signature.Decline }} {
		one, _ := s.sign(document(t, edit), 5, party.RPID, nil).Export()
		files = append(files, one)
	}
	for _, other := range otherForms(t, signed.Signature) {
		changed := signed
		changed.Signature = other
		one, _ := changed.Export()
		files = append(files, one)
	}
	plain := signed
	plain.Countersignature = nil
	for _, other := range []signature.Signed{plain, newService().accept(t, plain)} {
		one, _ := other.Export()
		files = append(files, one)
	}
	for _, text := range hostile(t) {
		if one, err := witness.acceptAny(s.sign(text, 5, party.RPID, nil)).Export(); err == nil {
			files = append(files, one)
		}
	}
	for i := range file {
		for _, flip := range []byte{1, 0x20, 0x80} {
			one := bytes.Clone(file)
			one[i] ^= flip
			files = append(files, one)
		}
	}
	trusted := trust(s, witness)
	keys, err := trusted.Export()
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, one := range files {
		texts = append(texts, base64.StdEncoding.EncodeToString(one))
	}
	in, _ := json.Marshal(map[string]any{"files": texts, "trust": json.RawMessage(keys)})
	run := exec.CommandContext(t.Context(), "python3", "-c", many, "../../docs")
	run.Stdin = bytes.NewReader(in)
	out, err := run.Output()
	var theirs []int
	if err != nil || json.Unmarshal(out, &theirs) != nil || len(theirs) != len(files) {
		t.Fatalf("%v: %s", err, out)
	}
	passed := 0
	for i, one := range files {
		got, err := signature.Verify(one, trusted)
		ours := 0 // refused; 1: signed; 2: and accepted
		if err == nil {
			ours = 1
			if passed++; got.Countersignature != nil {
				ours = 2
			}
		}
		if ours != theirs[i] {
			t.Errorf("%q: ours says %d, %v, Python's %d", one, ours, err, theirs[i])
		}
	}
	if passed != 3 { // the file, the declined one, and the one that is not countersigned
		t.Errorf("%d files pass", passed)
	}
}

// acceptAny countersigns whatever it gets; what has no canonical form stays as it is.
func (s service) acceptAny(signed signature.Signed) signature.Signed {
	if accepted, err := signed.Accept(s, nil, time.Unix(1e9, 0)); err == nil {
		return accepted
	}
	return signed
}
