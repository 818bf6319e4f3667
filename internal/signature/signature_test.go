package signature_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/signature"
)

var party = signature.Party{Origin: "https://muster.example.com", RPID: "muster.example.com"}

// signer is a passkey.
type signer struct {
	testing.TB
	key    crypto.Signer
	public []byte
}

func newSigner(t testing.TB, key crypto.Signer) *signer {
	t.Helper()
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return &signer{t, key, public}
}

func newES256(t testing.TB) *signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return newSigner(t, key)
}

// sign answers a document's challenge; change edits what the browser says.
func (s *signer) sign(document []byte, flags byte, rpID string, change func(map[string]any)) signature.Signed {
	s.Helper()
	client := map[string]any{"type": "webauthn.get", "origin": party.Origin, "crossOrigin": false,
		"challenge": base64.RawURLEncoding.EncodeToString(signature.Challenge(document))}
	if change != nil {
		change(client)
	}
	text, _ := json.Marshal(client)
	host := sha256.Sum256([]byte(rpID))
	a := signature.Assertion{ClientData: text, AuthenticatorData: append(host[:], flags, 0, 0, 0, 7), CredentialID: []byte("credential-1"),
		PublicKey: s.public}
	sum := sha256.Sum256(text)
	message := append(bytes.Clone(a.AuthenticatorData), sum[:]...)
	digest, hash := sha256.Sum256(message), crypto.Hash(crypto.SHA256)
	toSign := digest[:]
	if _, ok := s.key.(ed25519.PrivateKey); ok {
		toSign, hash = message, 0
	}
	value, err := s.key.Sign(rand.Reader, toSign, hash)
	if err != nil {
		s.Fatal(err)
	}
	if a.Signature, err = signature.LowS(s.public, value); err != nil {
		s.Fatal(err)
	}
	return signature.Signed{Document: document, Assertion: a}
}

func document(t testing.TB, edit func(*signature.Head)) []byte {
	t.Helper()
	h := signature.Head{Domain: signature.PolicyChange, Company: "acme", Subject: "prp_1",
		Approver: signature.Person{ID: "u1", Name: "Ada é"},
		Decision: signature.Approve, At: signature.Time(time.Unix(1e9, 0)), Expires: signature.Time(time.Unix(1e9+600, 0))}
	if edit != nil {
		edit(&h)
	}
	text, err := signature.Canonical(signature.Change{Head: h, Kind: "change", Changes: []signature.Moved{}, Warnings: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// service countersigns.
type service struct{ ed25519.PrivateKey }

func newService() service {
	_, key, _ := ed25519.GenerateKey(rand.Reader)
	return service{key}
}

func (s service) SignStatement(statement []byte) []byte { return ed25519.Sign(s.PrivateKey, statement) }

func (s service) PublicKeys() []ed25519.PublicKey {
	return []ed25519.PublicKey{s.Public().(ed25519.PublicKey)}
}

// accept countersigns a decision.
func (s service) accept(t testing.TB, signed signature.Signed) signature.Signed {
	t.Helper()
	signed, err := signed.Accept(s, []string{"POLICIES_WRITE"}, time.Unix(1e9+1, 0))
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

func trust(s *signer, by ...service) *signature.Trust {
	t := &signature.Trust{Company: "acme", Party: party, Service: []string{}}
	for _, one := range by {
		t.Service = append(t.Service, signature.ServiceKeys(one.PublicKeys())...)
	}
	t.Keys = []signature.TrustedKey{
		signature.NewTrustedKey(hex.EncodeToString([]byte("credential-1")), s.public, signature.Person{ID: "u1", Name: "Ada"},
			"ada@acme.test", []string{"POLICIES_WRITE"}, time.Unix(0, 0))}
	return t
}

// TestVerify_EveryBitCounts flips each bit of an export, and of the keys' algorithms.
func TestVerify_EveryBitCounts(t *testing.T) {
	t.Parallel()
	_, ed, _ := ed25519.GenerateKey(rand.Reader)
	rs, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]*signer{"ES256": newES256(t), "EdDSA": newSigner(t, ed), "RS256": newSigner(t, rs)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			witness := newService()
			file, err := witness.accept(t, s.sign(document(t, nil), 5, party.RPID, nil)).Export()
			if err != nil {
				t.Fatal(err)
			}
			by := trust(s, newService(), witness)
			if _, err := signature.Verify(file, by); err != nil {
				t.Fatal(err)
			}
			if _, err := signature.Verify(file, nil); err != nil {
				t.Fatal(err)
			}
			for i := range len(file) * 8 {
				flipped := bytes.Clone(file)
				flipped[i/8] ^= 1 << (i % 8)
				if _, err := signature.Verify(flipped, by); err == nil {
					t.Errorf("bit %d of %q is not missed", i, file[max(0, i/8-8):i/8+1])
				}
			}
			for i := range len(file) {
				if _, err := signature.Verify(file[:i], by); err == nil {
					t.Errorf("%d bytes of %d are enough", i, len(file))
				}
			}
		})
	}
}

// TestVerify_RefusesReencodings writes one signature, and one file, in other forms.
func TestVerify_RefusesReencodings(t *testing.T) {
	t.Parallel()
	s := newES256(t)
	signed := s.sign(document(t, nil), 5, party.RPID, nil)
	for name, other := range otherForms(t, signed.Signature) {
		changed := signed
		changed.Signature = other
		file, err := changed.Export()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := signature.Verify(file, trust(s)); err == nil {
			t.Errorf("%s passes", name)
		}
	}
	file, _ := signed.Export()
	swap := func(old, new string) []byte { return []byte(strings.Replace(string(file), old, new, 1)) }
	for name, other := range map[string][]byte{
		"padding": swap(`","clientDataJSON`, `=","clientDataJSON`), "a space": swap(`,"`, `, "`), "no newline": file[:len(file)-1],
		"two newlines": append(bytes.Clone(file), '\n'), "an escape": swap("é", `\u00e9`), "twice": append(bytes.Clone(file), file...),
		"a member more": swap(`{"assertion"`, `{"a":1,"assertion"`), "line break in base64": swap(`"signature":"`, `"signature":"\n`),
		"upper case": swap(`"format"`, `"Format"`), "member twice": swap(`"format":`, `"format":"x","format":`),
	} {
		t.Run(name, func(t *testing.T) {
			if bytes.Equal(other, file) {
				t.Fatal(name, "changes nothing")
			}
			if _, err := signature.Verify(other, trust(s)); err == nil {
				t.Errorf("%s passes", name)
			}
		})
	}
}

// TestVerify_ChecksTheCeremony has the passkey answer what it should not.
func TestVerify_ChecksTheCeremony(t *testing.T) {
	t.Parallel()
	s := newES256(t)
	set := func(name string, value any) func(map[string]any) { return func(c map[string]any) { c[name] = value } }
	other := document(t, func(h *signature.Head) { h.Subject = "prp_2" })
	for name, signed := range map[string]signature.Signed{
		"a registration": s.sign(document(t, nil), 5, party.RPID, set("type", "webauthn.create")),
		"another origin": s.sign(document(t, nil), 5, party.RPID, set("origin", "https://muster.example.com:444")),
		"a slash":        s.sign(document(t, nil), 5, party.RPID, set("origin", "https://muster.example.com/")),
		"a frame":        s.sign(document(t, nil), 5, party.RPID, set("crossOrigin", true)),
		"a top page":     s.sign(document(t, nil), 5, party.RPID, set("topOrigin", "https://evil.test")),
		"another challenge": s.sign(document(t, nil), 5, party.RPID,
			set("challenge", base64.RawURLEncoding.EncodeToString(signature.Challenge(other)))),
		"padded challenge": s.sign(document(t, nil), 5, party.RPID,
			set("challenge", base64.URLEncoding.EncodeToString(signature.Challenge(document(t, nil))))),
		"another host":     s.sign(document(t, nil), 5, "evil.test", nil),
		"no presence":      s.sign(document(t, nil), 4, party.RPID, nil),
		"no verification":  s.sign(document(t, nil), 1, party.RPID, nil),
		"another domain":   s.sign(document(t, func(h *signature.Head) { h.Domain = "muster/other/1" }), 5, party.RPID, nil),
		"another company":  s.sign(document(t, func(h *signature.Head) { h.Company = "other" }), 5, party.RPID, nil),
		"another approver": s.sign(document(t, func(h *signature.Head) { h.Approver.ID = "u2" }), 5, party.RPID, nil),
		"another key":      newES256(t).sign(document(t, nil), 5, party.RPID, nil),
		"no decision":      s.sign(document(t, func(h *signature.Head) { h.Decision = "MAYBE" }), 5, party.RPID, nil),
	} {
		t.Run(name, func(t *testing.T) {
			file, err := signed.Export()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := signature.Verify(file, trust(s)); err == nil {
				t.Errorf("%s passes", name)
			}
		})
	}
}

// otherForms are other ways to write a signature of ECDSA.
func otherForms(t *testing.T, signature []byte) map[string][]byte {
	t.Helper()
	var v struct{ R, S *big.Int }
	if _, err := asn1.Unmarshal(signature, &v); err != nil {
		t.Fatal(err)
	}
	n := elliptic.P256().Params().N
	integer := func(b []byte) []byte { return append([]byte{2, byte(len(b))}, b...) }
	sequence := func(b ...[]byte) []byte {
		all := bytes.Join(b, nil)
		return append([]byte{0x30, byte(len(all))}, all...)
	}
	der := func(r, s *big.Int) []byte { text, _ := asn1.Marshal(struct{ R, S *big.Int }{r, s}); return text }
	padded := func(i *big.Int) []byte { return append([]byte{0, 0}, i.Bytes()...) }
	again := signature
	return map[string][]byte{
		"the higher s":      der(v.R, new(big.Int).Sub(n, v.S)),
		"r past the order":  der(new(big.Int).Add(v.R, n), v.S),
		"s past the order":  der(v.R, new(big.Int).Add(v.S, n)),
		"negative r":        der(new(big.Int).Sub(v.R, n), v.S),
		"negative s":        der(v.R, new(big.Int).Neg(v.S)),
		"zeros before r":    sequence(integer(padded(v.R)), integer(v.S.Bytes())),
		"zeros before s":    sequence(integer(v.R.Bytes()), integer(padded(v.S))),
		"r || s":            append(v.R.FillBytes(make([]byte, 32)), v.S.FillBytes(make([]byte, 32))...),
		"a byte after":      append(bytes.Clone(again), 0),
		"a byte inside":     sequence(again[2:], []byte{0}),
		"long length":       append([]byte{0x30, 0x81, again[1]}, again[2:]...),
		"indefinite length": append(append([]byte{0x30, 0x80}, again[2:]...), 0, 0),
		"a set":             append([]byte{0x31}, again[1:]...),
		"nothing":           {},
		"zero":              der(big.NewInt(0), big.NewInt(0)),
	}
}

func TestCanonical(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"b":1,"a":[true,null,-3]}`:                       `{"a":[true,null,-3],"b":1}`,
		`{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"😂":5,"ö":6}`: `{"\r":2,"1":4,"ö":6,"€":1,"😂":5,"` + "\ufb33" + `":3}`, // RFC 8785, 3.2.3
		`"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/"`:  `"€$\u000f\nA'B\"\\\\\"/"`,
		"\"\\u007f\\u2028<>&\"":                            "\"\u007f\u2028<>&\"",
		`9007199254740991`:                                 `9007199254740991`,
		`[1.50,1e3,-0,1E21,1e-7]`:                          `[1.5,1000,0,1e+21,1e-7]`,
	} {
		t.Run(in, func(t *testing.T) {
			if got, err := signature.Normal([]byte(in)); err != nil || string(got) != want {
				t.Errorf("%s: got %s, %v, want %s", in, got, err, want)
			}
		})
	}
	for _, in := range []string{`{} {}`, `{`, "\"\xff\"", ``, `{"a":1,"a":2}`, `"\ud800"`, `1.`, `[1,]`} {
		if got, err := signature.Normal([]byte(in)); err == nil {
			t.Errorf("%s: got %s", in, got)
		}
	}
}

// FuzzCanonical: a canonical form is JSON of the same value, and its own form.
func FuzzCanonical(f *testing.F) {
	for _, seed := range []string{`{"b":1,"a":[true,null,-3]}`, `"\u20ac\u0000\ud83d\ude00"`, `{"":{"":[]}}`, `{"a":1,"a":2}`, `"\ud800"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		normal, err := signature.Normal(text)
		if err != nil {
			return
		}
		if !signature.IsCanonical(normal) {
			t.Fatalf("%q is not its own form", normal)
		}
		var was, is any
		if json.Unmarshal(text, &was) != nil || json.Unmarshal(normal, &is) != nil {
			t.Fatalf("%q of %q", normal, text)
		}
		one, _ := json.Marshal(was)
		two, _ := json.Marshal(is)
		if !bytes.Equal(one, two) {
			t.Fatalf("%q means %s, %q means %s", text, one, normal, two)
		}
	})
}

// FuzzParseExport: whatever is read is written as it was.
func FuzzParseExport(f *testing.F) {
	file, _ := newES256(f).sign(document(f, nil), 5, party.RPID, nil).Export()
	f.Add(file)
	f.Add([]byte("{}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if s, err := signature.ParseExport(text); err == nil {
			if again, err := s.Export(); err != nil || !bytes.Equal(again, text) {
				t.Fatalf("%q is written %q, %v", text, again, err)
			}
			_ = s.Check()
		}
	})
}

// TestVerify_Countersignature: without it nothing is proved but the signature, and one by
// another service, or of something else, does not verify.
func TestVerify_Countersignature(t *testing.T) {
	t.Parallel()
	s, witness := newES256(t), newService()
	plain := s.sign(document(t, nil), 5, party.RPID, nil)
	other := witness.accept(t, s.sign(document(t, func(h *signature.Head) { h.Subject = "prp_2" }), 5, party.RPID, nil))
	moved := plain
	moved.Countersignature = other.Countersignature
	edited := witness.accept(t, plain)
	c := *edited.Countersignature
	c.Rights = []string{"MANAGE_COMPANY"}
	edited.Countersignature = &c
	for _, one := range []struct {
		name     string
		signed   signature.Signed
		by       *signature.Trust
		verifies bool
		accepted bool
	}{
		{"accepted", witness.accept(t, plain), trust(s, witness), true, true},
		{"by a former key", witness.accept(t, plain), trust(s, newService(), witness), true, true},
		{"not accepted", plain, trust(s, witness), true, false},
		{"by another service", newService().accept(t, plain), trust(s, witness), false, true},
		{"no service is trusted", witness.accept(t, plain), trust(s), false, true},
		{"of another decision", moved, trust(s, witness), false, true},
		{"with other rights", edited, trust(s, witness), false, true},
	} {
		t.Run(one.name, func(t *testing.T) {
			file, err := one.signed.Export()
			if err != nil {
				t.Fatal(err)
			}
			got, err := signature.Verify(file, one.by)
			if (err == nil) != one.verifies || (got.Countersignature != nil) != one.accepted {
				t.Errorf("%v, countersigned %t", err, got.Countersignature != nil)
			}
		})
	}
	file, _ := witness.accept(t, plain).Export()
	cut := bytes.Index(file, []byte(`"countersignature":`))
	end := bytes.Index(file, []byte(`,"document"`))
	stripped := append(bytes.Clone(file[:cut]), file[end+1:]...)
	if got, err := signature.Verify(stripped, trust(s, witness)); err != nil || got.Countersignature != nil {
		t.Errorf("without the countersignature: %v", err)
	}
}

// hostile are documents of which readers could disagree what they say.
func hostile(t testing.TB) map[string][]byte {
	t.Helper()
	text := string(document(t, nil))
	swap := func(old, new string) []byte {
		out, err := signature.Normal([]byte(strings.Replace(text, old, new, 1)))
		if err != nil { // it has no canonical form: as it is
			out = []byte(strings.Replace(text, old, new, 1))
		}
		if string(out) == text {
			t.Fatalf("%q is not there", old)
		}
		return out
	}
	return map[string][]byte{
		"a long s":               swap(`{"approver"`, `{"deci\u017fion":"DECLINE","approver"`),
		"another case":           swap(`{"approver"`, `{"Decision":"DECLINE","approver"`),
		"a member twice":         swap(`{"approver"`, `{"decision":"DECLINE","approver"`),
		"an unknown member":      swap(`{"approver"`, `{"approvedBy":"the operator","approver"`),
		"unknown further down":   swap(`"id":"u1"`, `"id":"u1","Id":"u2"`),
		"another kind's members": swap(`{"approver"`, `{"control":"stop","approver"`),
		"a second document":      []byte(text + text),
		"another domain":         swap(`muster/approval/1`, `muster/approval/3`),
		"no integer":             swap(`"devices":0`, `"devices":0.5`),
		"a text for a number":    swap(`"devices":0`, `"devices":"0"`),
	}
}

// TestRead_Strictly: a document that two readers could read in two ways is refused, however
// well it is signed.
func TestRead_Strictly(t *testing.T) {
	t.Parallel()
	s, witness := newES256(t), newService()
	if _, what, err := signature.Read(document(t, nil)); err != nil || what.(*signature.Change).Subject != "prp_1" {
		t.Fatalf("%v, %v", what, err)
	}
	for name, text := range hostile(t) {
		t.Run(name, func(t *testing.T) {
			if _, what, err := signature.Read(text); err == nil {
				t.Errorf("it is read as %+v", what)
			}
			signed, err := s.sign(text, 5, party.RPID, nil).Accept(witness, nil, time.Unix(1e9, 0))
			if err != nil {
				return // it cannot even be written
			}
			if file, err := signed.Export(); err == nil {
				if _, err := signature.Verify(file, trust(s, witness)); err == nil {
					t.Error("it verifies")
				}
			}
		})
	}
}

// TestParseTrust_Strictly: a file of keys has exactly its members, once, and nothing follows.
func TestParseTrust_Strictly(t *testing.T) {
	t.Parallel()
	file, err := trust(newES256(t), newService()).Export()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := signature.ParseTrust(file); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string][2]string{
		"a member twice": {`"company":`, `"company":"other","company":`}, "another case": {`"company":`, `"Company":"other","company":`},
		"an unknown member": {`"company":`, `"trusted":true,"company":`}, "a former format": {`approval-keys/2`, `approval-keys/1`},
		"unknown in a key": {`"email":`, `"Email":"x","email":`},
	} {
		changed := strings.Replace(string(file), change[0], change[1], 1)
		if _, err := signature.ParseTrust([]byte(changed)); err == nil || changed == string(file) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := signature.ParseTrust(append(bytes.Clone(file), file...)); err == nil {
		t.Error("two files in one are read")
	}
}

// FuzzRead: what is read strictly says the same to every reader of JSON.
func FuzzRead(f *testing.F) {
	f.Add(document(f, nil))
	for _, text := range hostile(f) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		h, what, err := signature.Read(text)
		if err != nil {
			return
		}
		var plain map[string]any
		if err := json.Unmarshal(text, &plain); err != nil {
			t.Fatalf("%q is read, and is no JSON: %v", text, err)
		}
		again, err := json.Marshal(what)
		var mine map[string]any
		if err != nil || json.Unmarshal(again, &mine) != nil {
			t.Fatal(err)
		}
		for name, value := range plain {
			if _, known := mine[name]; !known && value != nil && value != "" {
				t.Fatalf("%q: the member %q is not read", text, name)
			}
		}
		if d, _ := plain["decision"].(string); d != string(h.Decision) {
			t.Fatalf("%q: others read the decision %q, we %q", text, d, h.Decision)
		}
	})
}
