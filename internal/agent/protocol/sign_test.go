package protocol_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/agent/protocol"
	"pgregory.net/rapid"
)

func keys(t *testing.T) map[protocol.Algorithm]protocol.PrivateKey {
	t.Helper()
	made := map[protocol.Algorithm]protocol.PrivateKey{}
	for _, alg := range []protocol.Algorithm{protocol.Ed25519, protocol.ES256} {
		key, err := protocol.NewPrivateKey(alg)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := key.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if made[alg], err = protocol.ParsePrivateKey(raw); err != nil {
			t.Fatal(err)
		}
	}
	return made
}

// Any change of any signed part of a request breaks its signature.
func TestRequest_SignatureCoversEveryPart(t *testing.T) {
	t.Parallel()
	for alg, key := range keys(t) {
		public, err := key.Public()
		if err != nil {
			t.Fatal(err)
		}
		rapid.Check(t, func(t *rapid.T) {
			request := protocol.Request{
				Method: "POST", Path: "/agent/v1/checkin", Device: rapid.StringMatching(`[a-z0-9]{8}`).Draw(t, "device"),
				Time: rapid.Int64().Draw(t, "time"), Sequence: rapid.Int64().Draw(t, "seq"),
				Body: rapid.SliceOf(rapid.Byte()).Draw(t, "body"),
			}
			sig, err := key.Sign(request.Message())
			if err != nil {
				t.Fatal(err)
			}
			if err := public.Verify(request.Message(), sig); err != nil {
				t.Fatalf("%s: own signature refused: %v", alg, err)
			}
			other := request
			switch rapid.IntRange(0, 5).Draw(t, "part") {
			case 0:
				other.Method = "GET"
			case 1:
				other.Path += "?x"
			case 2:
				other.Device += "x"
			case 3:
				other.Time++
			case 4:
				other.Sequence++
			case 5:
				other.Body = append(append([]byte{}, request.Body...), 0)
			}
			if err := public.Verify(other.Message(), sig); !errors.Is(err, protocol.ErrSignature) {
				t.Fatalf("%s: a changed request verified", alg)
			}
		})
	}
}

func TestEnvelope_IsBoundToKindAndKey(t *testing.T) {
	t.Parallel()
	made := keys(t)
	for alg, key := range made {
		public, _ := key.Public()
		sealed, err := protocol.Seal(key, "k1", protocol.KindTombstone, protocol.Tombstone{DeviceID: "d", Action: protocol.Unenroll})
		if err != nil {
			t.Fatal(err)
		}
		var got protocol.Tombstone
		if err := sealed.Open(public, protocol.KindTombstone, &got); err != nil || got.DeviceID != "d" {
			t.Errorf("%s: open: %v, %+v", alg, err, got)
		}
		if err := sealed.Open(public, protocol.KindCommand, &got); err == nil {
			t.Errorf("%s: a tombstone opened as a command", alg)
		}
		renamed := sealed
		renamed.Kind = protocol.KindCommand
		if err := renamed.Open(public, protocol.KindCommand, &got); !errors.Is(err, protocol.ErrSignature) {
			t.Errorf("%s: a renamed envelope opened: %v", alg, err)
		}
		for otherAlg, other := range made {
			foreign, _ := other.Public()
			if otherAlg != alg && sealed.Open(foreign, protocol.KindTombstone, &got) == nil {
				t.Errorf("%s: opened with another's key", alg)
			}
		}
	}
}

// One key, and one signature, have one text.
func TestVerify_TakesOneTextOnly(t *testing.T) {
	t.Parallel()
	for alg, key := range keys(t) {
		public, err := key.Public()
		if err != nil {
			t.Fatal(err)
		}
		message := []byte("m")
		sig, err := key.Sign(message)
		if err != nil {
			t.Fatal(err)
		}
		last := func(text string) string { // another last character with the same bits that count
			const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
			if len(text)%4 == 0 {
				return text + "="
			}
			return text[:len(text)-1] + string(alphabet[strings.IndexByte(alphabet, text[len(text)-1])^1])
		}
		for _, change := range []func(string) string{
			func(text string) string { return text[:4] + "\n" + text[4:] },
			func(text string) string { return text + "\r\n" },
			func(text string) string { return text + "=" },
			last,
		} {
			other := protocol.PublicKey{Algorithm: alg, SPKI: change(public.SPKI)}
			if other.Verify(message, sig) == nil {
				t.Errorf("%s: the key has another text: %q", alg, other.SPKI)
			}
			if public.Verify(message, change(sig)) == nil {
				t.Errorf("%s: the signature has another text: %q", alg, change(sig))
			}
		}
	}
}

func FuzzOpen(f *testing.F) {
	key, err := protocol.NewPrivateKey(protocol.Ed25519)
	if err != nil {
		f.Fatal(err)
	}
	public, _ := key.Public()
	f.Add("command", "e30", "k", "AA")
	f.Fuzz(func(t *testing.T, kind, payload, keyID, sig string) {
		var v any
		e := protocol.Envelope{Kind: kind, Payload: payload, KeyID: keyID, Sig: sig}
		if e.Open(public, kind, &v) == nil {
			t.Fatal("an unsigned envelope opened")
		}
	})
}

// Whatever text is handed over as a code, it is read or refused, and never printed
// with its token.
func FuzzParseCode(f *testing.F) {
	f.Add(
		`{"android.app.extra.PROVISIONING_ADMIN_EXTRAS_BUNDLE":{"a.ENROLLMENT_TOKEN":"met_secret","a.SERVER_URL":"https://x","a.SERVER_PIN":"p,q"}}`)
	f.Add(`{"android.app.extra.PROVISIONING_ADMIN_EXTRAS_BUNDLE":{"":""}}`)
	f.Fuzz(func(t *testing.T, text string) {
		code, err := protocol.ParseCode(text)
		if (err == nil) != (code.Token != "") {
			t.Fatalf("%v, %v", code, err)
		}
		if code.Token == "met_secret" && strings.Contains(fmt.Sprintf("%v %+v %#v", code, code, code), "met_secret") {
			t.Fatal("it prints its token")
		}
	})
}
