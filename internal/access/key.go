package access

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"hash/crc32"
	"net/netip"
	"regexp"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/resource"
)

// Key is an API key as it is kept: the secret itself is shown once, at its
// creation, and only its SHA-256 stays.
type Key struct {
	ID          string
	Prefix      string
	CompanyID   string
	Name        string
	Hash        [sha256.Size]byte
	Permissions Permission
	// Policies limits the key as its maker was limited; nil: all policies.
	Policies []string
	// Networks are where the key may be used from; nil: anywhere.
	Networks []netip.Prefix
	// DevicesPerDay is how many devices the key may send commands to in any 24 hours; 0: any number.
	DevicesPerDay int
	CreatedBy     string // "operator", or a portal user's id
	CreatedAt     time.Time
	ExpiresAt     time.Time // zero: never
	RevokedAt     time.Time // zero: not revoked
	LastUsedAt    time.Time // zero: never used
}

const (
	prefixLength   = 8
	secretLength   = 43 // 62^43 > 2^256
	checksumLength = 6  // 62^6 > 2^32
	alphabet       = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// KeyPattern matches every API key, for secret scanners: mk_, eight characters
// of prefix, _, 43 of secret and six of checksum.
const KeyPattern = `mk_[0-9A-Za-z]{8}_[0-9A-Za-z]{49}`

var keyShape = regexp.MustCompile(`^` + KeyPattern + `$`)

// NewKey makes a key and its text. Permissions and the right to make such a
// key are the caller's to check (contract 5.3).
func NewKey(companyID, keyName, createdBy string, permissions Permission, now, expires time.Time) (Key, string) {
	prefix := randomText(prefixLength)
	body := "mk_" + prefix + "_" + randomText(secretLength)
	text := body + checksum(body)
	return Key{
		ID: resource.NewID(), Prefix: prefix, CompanyID: companyID, Name: keyName,
		Hash: sha256.Sum256([]byte(text)), Permissions: permissions,
		CreatedBy: createdBy, CreatedAt: now, ExpiresAt: expires,
	}, text
}

// keyPrefix returns the prefix of a well-formed key. A text that fails here is
// refused without asking the store.
func keyPrefix(text string) (string, bool) {
	if !keyShape.MatchString(text) {
		return "", false
	}
	body := text[:len(text)-checksumLength]
	if checksum(body) != text[len(body):] {
		return "", false
	}
	return text[3 : 3+prefixLength], true
}

// Matches reports whether text is this key's secret, in constant time.
func (k Key) Matches(text string) bool {
	sum := sha256.Sum256([]byte(text))
	return subtle.ConstantTimeCompare(sum[:], k.Hash[:]) == 1
}

// Usable reports whether the key is neither expired nor revoked at now.
func (k Key) Usable(now time.Time) bool {
	return k.RevokedAt.IsZero() && (k.ExpiresAt.IsZero() || now.Before(k.ExpiresAt))
}

// usableFrom reports whether the key may be used from an address. One that is not
// known is no place.
func (k Key) usableFrom(address string) bool {
	if len(k.Networks) == 0 {
		return true
	}
	from, err := netip.ParseAddr(address)
	return err == nil && slices.ContainsFunc(k.Networks, func(p netip.Prefix) bool { return p.Contains(from.Unmap().WithZone("")) })
}

// Authenticator turns the text of an API key into its principal.
type Authenticator struct {
	Keys KeyReader
	Now  func() time.Time
}

// Authenticate returns the key's principal, or fault.Unauthorized for a key
// that is missing, malformed, unknown, expired or revoked (contract 5.9), or is used
// from where it may not be: the caller is never told which.
func (a Authenticator) Authenticate(ctx context.Context, text string) (Principal, error) {
	refused := fault.New(fault.Unauthorized, "API key missing, invalid, expired or revoked")
	prefix, ok := keyPrefix(text)
	if !ok {
		return Principal{}, refused
	}
	key, principal, err := a.Keys.KeyByPrefix(ctx, prefix)
	if fault.CodeOf(err) == fault.NotFound {
		return Principal{}, refused
	}
	if err != nil {
		return Principal{}, err
	}
	if !key.Matches(text) || !key.Usable(a.Now()) || !key.usableFrom(OriginOf(ctx).Address) {
		return Principal{}, refused
	}
	return principal, a.Keys.TouchKey(ctx, key.ID)
}

func checksum(body string) string {
	sum := crc32.ChecksumIEEE([]byte(body))
	out := make([]byte, checksumLength)
	for i := range out {
		out[len(out)-1-i] = alphabet[sum%62]
		sum /= 62
	}
	return string(out)
}

// randomText returns n characters of the alphabet, each equally likely.
func randomText(n int) string {
	out := make([]byte, 0, n)
	var buf [64]byte
	for len(out) < n {
		_, _ = rand.Read(buf[:]) // never fails since Go 1.24
		for _, b := range buf {
			if b < 62*4 && len(out) < n { // 248 is the largest multiple of 62 in a byte
				out = append(out, alphabet[b%62])
			}
		}
	}
	return string(out)
}
