// Package apikey makes, limits, revokes and checks API keys. Only the hash of a key is kept.
package apikey

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net/netip"
	"regexp"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/slice"
)

// Key is an API key as it is kept: the secret itself is shown once, at its
// creation, and only its SHA-256 stays.
type Key struct {
	ID          string
	Prefix      string
	CompanyID   string
	Name        string
	Hash        [sha256.Size]byte
	Permissions access.Permission
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
	marker       = "mk_" // begins every key, so that a secret scanner finds it
	prefixLength = 8
)

// Pattern matches every API key, for secret scanners: mk_, eight characters
// of prefix, _, 43 of secret and six of checksum.
const Pattern = marker + `[0-9A-Za-z]{8}_[0-9A-Za-z]{49}`

var keyShape = regexp.MustCompile(`^` + Pattern + `$`)

// New makes a key and its text. Permissions and the right to make such a
// key are the caller's to check (contract 5.3).
func New(companyID, keyName, createdBy string, permissions access.Permission, now, expires time.Time) (Key, string) {
	prefix := access.RandomText(prefixLength)
	text := access.NewSecret(marker + prefix + "_")
	return Key{
		ID: resource.NewID(), Prefix: prefix, CompanyID: companyID, Name: keyName,
		Hash: sha256.Sum256([]byte(text)), Permissions: permissions,
		CreatedBy: createdBy, CreatedAt: now, ExpiresAt: expires,
	}, text
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

// NetworkTexts are the networks to which the key is limited; never nil.
func (k Key) NetworkTexts() []string {
	return slice.Map(k.Networks, netip.Prefix.String)
}

// usableFrom reports whether the key may be used from an address. A key that is limited to
// networks may not be used from an address that is not known.
func (k Key) usableFrom(address string) bool {
	if len(k.Networks) == 0 {
		return true
	}
	from, err := netip.ParseAddr(address)
	return err == nil && slices.ContainsFunc(k.Networks, func(p netip.Prefix) bool { return p.Contains(from.Unmap().WithZone("")) })
}

// KeyReader finds the principal of an API key. It is the store's half of
// Authenticator: one query that reads key, company and settings together. Each method fails as the
// database does, and with the faults that it names.
type KeyReader interface {
	// KeyByPrefix returns the key with its company's settings, or fault.NotFound.
	KeyByPrefix(ctx context.Context, prefix string) (Key, access.Principal, error)
	// TouchKey notes the last use; the store may coalesce (at most 10 s late).
	TouchKey(ctx context.Context, id string) error
}

var errRefused error = fault.New(fault.Unauthorized, "API key missing, invalid, expired or revoked")

// Authenticator turns the text of an API key into its principal.
type Authenticator struct {
	Keys KeyReader
	Now  func() time.Time
}

// Authenticate returns the key's principal, or fault.Unauthorized for a key
// that is missing, malformed, unknown, expired or revoked (contract 5.9), or is used
// from where it may not be: the caller is never told which.
func (a Authenticator) Authenticate(ctx context.Context, text string) (access.Principal, error) {
	if !keyShape.MatchString(text) || !access.IntactSecret(text) { // without asking the store
		return access.Principal{}, errRefused
	}
	key, principal, err := a.Keys.KeyByPrefix(ctx, text[len(marker):len(marker)+prefixLength])
	if fault.CodeOf(err) == fault.NotFound {
		return access.Principal{}, errRefused
	}
	if err != nil {
		return access.Principal{}, err
	}
	if !key.Matches(text) || !key.Usable(a.Now()) || !key.usableFrom(access.OriginOf(ctx).Address) {
		return access.Principal{}, errRefused
	}
	return principal, a.Keys.TouchKey(ctx, key.ID)
}
