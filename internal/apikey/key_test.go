package apikey_test

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/apikey"
	"github.com/musterhq/muster/internal/fault"
)

// oneKey is a store with one key, which counts how often it is asked and how often a use is noted.
type oneKey struct {
	key     apikey.Key
	lookups int
	touched int
}

func (o *oneKey) KeyByPrefix(_ context.Context, prefix string) (apikey.Key, access.Principal, error) {
	o.lookups++
	if prefix != o.key.Prefix {
		return apikey.Key{}, access.Principal{}, fault.New(fault.NotFound, "no such key")
	}
	return o.key, access.Principal{Kind: access.APIKey, ID: o.key.ID, Prefix: prefix}, nil
}

func (o *oneKey) TouchKey(context.Context, string) error { o.touched++; return nil }

func TestAuthenticate_TheKeyAlone(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	key, text := apikey.New("c", "ci", "operator", access.DevicesRead, now, time.Time{})
	if !regexp.MustCompile(`^` + apikey.Pattern + `$`).MatchString(text) {
		t.Fatalf("%q does not match the published pattern", text)
	}
	store := &oneKey{key: key}
	auth := apikey.Authenticator{Keys: store, Now: func() time.Time { return now }}
	if p, err := auth.Authenticate(t.Context(), text); err != nil || p.ID != key.ID || store.touched != 1 {
		t.Fatalf("the key is of %q, %v, and %d uses were noted, want of %q and 1", p.ID, err, store.touched, key.ID)
	}

	lookups := store.lookups
	for i := range text { // a typo anywhere is noticed without the store
		other := byte('a')
		if text[i] == other {
			other = 'b'
		}
		typo := text[:i] + string(other) + text[i+1:]
		if _, err := auth.Authenticate(t.Context(), typo); fault.CodeOf(err) != fault.Unauthorized {
			t.Fatalf("with a typo at %d: %v, want UNAUTHORIZED", i, err)
		}
	}
	if store.lookups != lookups {
		t.Errorf("typos asked the store %d times, want 0", store.lookups-lookups)
	}
	for _, bad := range []string{"", "mk_", strings.ToUpper(text), text + " ", "Bearer " + text} {
		if _, err := auth.Authenticate(t.Context(), bad); fault.CodeOf(err) != fault.Unauthorized {
			t.Errorf("with %q: %v, want UNAUTHORIZED", bad, err)
		}
	}
}

func TestKey_EndsAtExpiryAndRevocation(t *testing.T) {
	t.Parallel()
	start := time.Unix(1_000_000, 0)
	key, text := apikey.New("c", "ci", "operator", access.DevicesRead, start, start.Add(time.Hour))
	for _, test := range []struct {
		name    string
		now     time.Time
		revoked time.Time
		good    bool
	}{
		{"fresh", start, time.Time{}, true},
		{"last moment", start.Add(time.Hour - 1), time.Time{}, true},
		{"expired", start.Add(time.Hour), time.Time{}, false},
		{"revoked", start, start, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			k := key
			k.RevokedAt = test.revoked
			auth := apikey.Authenticator{Keys: &oneKey{key: k}, Now: func() time.Time { return test.now }}
			if _, err := auth.Authenticate(t.Context(), text); (err == nil) != test.good {
				t.Errorf("the key is refused with %v, want good %t", err, test.good)
			}
		})
	}
}

func TestAuthenticate_PrefixOfAnotherKey(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	stored, _ := apikey.New("c", "ci", "operator", access.DevicesRead, now, time.Time{})
	other, text := apikey.New("c", "ci", "operator", access.DevicesRead, now, time.Time{})
	stored.Prefix = other.Prefix
	auth := apikey.Authenticator{Keys: &oneKey{key: stored}, Now: func() time.Time { return now }}
	if _, err := auth.Authenticate(t.Context(), text); fault.CodeOf(err) != fault.Unauthorized {
		t.Errorf("a key whose prefix is another's: %v, want UNAUTHORIZED", err)
	}
}
