package account_test

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/json"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/resource"
)

// sealer seals with a fixed key.
type sealer struct{ cipher.AEAD }

func newSealer(tb testing.TB, key byte) sealer {
	tb.Helper()
	block, err := aes.NewCipher(bytes.Repeat([]byte{key}, 32))
	if err != nil {
		tb.Fatal(err)
	}
	gcm, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		tb.Fatal(err)
	}
	return sealer{gcm}
}

func (s sealer) Seal(purpose string, data []byte) []byte {
	return s.AEAD.Seal(nil, nil, data, []byte(purpose))
}

func (s sealer) Open(purpose string, sealed []byte) ([]byte, error) {
	return s.AEAD.Open(nil, nil, sealed, []byte(purpose))
}

// ceremonies is a passkey implementation to which no answer proves anything.
type ceremonies struct{ account.Ceremonies }

func (ceremonies) FinishSignIn(json.RawMessage, json.RawMessage,
	func(string) (account.User, []account.Passkey, error)) (account.Passkey, string, error) {
	return account.Passkey{}, "", fault.New(fault.Unauthorized, "the answer proves nothing")
}

// Whatever a browser sends as a cookie or token of a sign-in, only what was sealed
// for that purpose opens: a cookie that was made up, changed, or sealed for another
// purpose is as good as none. What did open is read without trust in its form.
func FuzzSealedCookies(f *testing.F) {
	seals := newSealer(f, 1)
	browsers, strangers := account.Browsers{Sealer: seals}, account.Browsers{Sealer: newSealer(f, 2)}
	ours := browsers.Seal(account.Browser{}.With("ada@acme.test"))
	f.Add(ours, []byte(`{"id":"b","emails":["ada@acme.test"]}`))
	f.Add("", []byte(`{"s":"state","e":"2020-01-01T00:00:00Z"}`))
	f.Add(ours[:len(ours)-2], []byte(`{"s":"state","e":"9999-99-99"}`))
	f.Add(ours+"=", []byte("null"))
	f.Add("AAAA", []byte(`{"s":{},"e":null}`))
	now := func() time.Time { return time.Unix(1_800_000_000, 0) }
	federation := account.Federation{Sealer: seals, Now: now}
	passkeys := account.Passkeys{Ceremonies: ceremonies{}, Sealer: seals, Now: now}
	f.Fuzz(func(t *testing.T, cookie string, text []byte) {
		state := resource.NewID()
		if b := strangers.Open(cookie); b.ID != "" || b.Emails != nil {
			t.Errorf("%q, sealed with another key, is the browser %+v", cookie, b)
		}
		foreign := base64.RawURLEncoding.EncodeToString(seals.Seal("another purpose", text))
		for _, given := range []string{cookie, foreign} {
			if _, err := federation.Finish(t.Context(), given, account.Return{State: state}); fault.CodeOf(err) != fault.Refused {
				t.Errorf("%q is a sign-in at a provider: %v", given, err)
			}
			if _, err := passkeys.FinishSignIn(t.Context(), given, nil); fault.CodeOf(err) != fault.Refused {
				t.Errorf("%q is a challenge: %v", given, err)
			}
		}
		if b := browsers.Open(foreign); b.ID != "" || b.Emails != nil {
			t.Errorf("%q, sealed for another purpose, is the browser %+v", text, b)
		}
		sealedAs := func(purpose string) string { return base64.RawURLEncoding.EncodeToString(seals.Seal(purpose, text)) }
		b := browsers.Open(sealedAs(account.PurposeBrowser)).With("eve@acme.test")
		if len(b.Emails) > 5 || !b.Knows("eve@acme.test") {
			t.Errorf("%q becomes the browser %+v", text, b)
		}
		if _, err := federation.Finish(t.Context(), sealedAs(account.PurposeProviderSignIn),
			account.Return{State: state}); fault.CodeOf(err) != fault.Refused {
			t.Errorf("a sign-in at a provider in %q fits another state: %v", text, err)
		}
		if _, err := passkeys.FinishSignIn(t.Context(), sealedAs(account.PurposeChallenge), nil); err == nil {
			t.Errorf("a challenge in %q signs a user in", text)
		}
	})
}
