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
	a := signature.Assertion{ClientData: text, AuthenticatorData: append(host[:], flags, 0, 0, 0, 7), CredentialID: []byte("credential-1"), PublicKey: s.public}
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
	h := signature.Head{Domain: signature.PolicyChange, Company: "acme", Subject: "prp_1", Approver: signature.Person{ID: "u1", Name: "Ada é"},
		Decision: signature.Approve, At: signature.Time(time.Unix(1e9, 0)), Expires: signature.Time(time.Unix(1e9+600, 0))}
	if edit != nil {
		edit(&h)
	}
	text, err := signature.Canonical(h)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func trust(s *signer) *signature.Trust {
	return &signature.Trust{Company: "acme", Party: party, Keys: []signature.TrustedKey{
		signature.NewTrustedKey(hex.EncodeToString([]byte("credential-1")), s.public, signature.Person{ID: "u1", Name: "Ada"}, "ada@acme.test", time.Unix(0, 0))}}
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
			file, err := s.sign(document(t, nil), 5, party.RPID, nil).Export()
			if err != nil {
				t.Fatal(err)
			}
			by := trust(s)
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
		"a registration":    s.sign(document(t, nil), 5, party.RPID, set("type", "webauthn.create")),
		"another origin":    s.sign(document(t, nil), 5, party.RPID, set("origin", "https://muster.example.com:444")),
		"a slash":           s.sign(document(t, nil), 5, party.RPID, set("origin", "https://muster.example.com/")),
		"a frame":           s.sign(document(t, nil), 5, party.RPID, set("crossOrigin", true)),
		"a top page":        s.sign(document(t, nil), 5, party.RPID, set("topOrigin", "https://evil.test")),
		"another challenge": s.sign(document(t, nil), 5, party.RPID, set("challenge", base64.RawURLEncoding.EncodeToString(signature.Challenge(other)))),
		"padded challenge":  s.sign(document(t, nil), 5, party.RPID, set("challenge", base64.URLEncoding.EncodeToString(signature.Challenge(document(t, nil))))),
		"another host":      s.sign(document(t, nil), 5, "evil.test", nil),
		"no presence":       s.sign(document(t, nil), 4, party.RPID, nil),
		"no verification":   s.sign(document(t, nil), 1, party.RPID, nil),
		"another domain":    s.sign(document(t, func(h *signature.Head) { h.Domain = "muster/other/1" }), 5, party.RPID, nil),
		"another company":   s.sign(document(t, func(h *signature.Head) { h.Company = "other" }), 5, party.RPID, nil),
		"another approver":  s.sign(document(t, func(h *signature.Head) { h.Approver.ID = "u2" }), 5, party.RPID, nil),
		"another key":       newES256(t).sign(document(t, nil), 5, party.RPID, nil),
		"no decision":       s.sign(document(t, func(h *signature.Head) { h.Decision = "MAYBE" }), 5, party.RPID, nil),
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
	} {
		t.Run(in, func(t *testing.T) {
			if got, err := signature.Normal([]byte(in)); err != nil || string(got) != want {
				t.Errorf("%s: got %s, %v, want %s", in, got, err, want)
			}
		})
	}
	for _, in := range []string{`1.5`, `1e3`, `9007199254740992`, `-0`, `{} {}`, `{`, "\"\xff\"", ``} {
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
