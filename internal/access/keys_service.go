package access

import (
	"context"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/resource"
)

// KeyStore keeps API keys. Every method is bound to one company: an id of
// another is fault.NotFound.
type KeyStore interface {
	CreateKey(ctx context.Context, k Key) error
	// Keys returns a company's keys, newest first, revoked and expired ones included.
	Keys(ctx context.Context, companyID string) ([]Key, error)
	// RevokeKey sets RevokedAt unless it is set already, and returns the key.
	RevokeKey(ctx context.Context, companyID, id string, at time.Time) (Key, error)
}

// MaxKeyName is the limit of a key's name, in characters.
const MaxKeyName = 100

// NewKeyRequest asks for an API key.
type NewKeyRequest struct {
	CompanyID   string
	Name        string // need not be unique
	Permissions Permission
	ExpiresIn   time.Duration // 0: never
}

// Keys makes and revokes API keys, for the command line and the portal alike.
type Keys struct {
	Store KeyStore
	Now   func() time.Time
}

// CreateForOperator makes a key on the command line, whose user owns the
// database: contract 5.3 does not bind there. The text is
// shown once and never again.
func (s Keys) CreateForOperator(ctx context.Context, r NewKeyRequest) (Key, string, error) {
	return s.create(ctx, "operator", nil, r)
}

// CreateForUser makes a key for a portal user within what the user may grant
// (contract 5.3): fault.Forbidden otherwise. A key of a person who is limited
// to some policies is limited to the same.
func (s Keys) CreateForUser(ctx context.Context, by UserAccount, r NewKeyRequest) (Key, string, error) {
	if err := by.MayGrant(r.Permissions); err != nil {
		return Key{}, "", err
	}
	r.CompanyID = by.CompanyID
	return s.create(ctx, by.ID, by.Policies, r)
}

// Revoke ends a key at once. Revoking it again changes nothing.
func (s Keys) Revoke(ctx context.Context, companyID, id string) (Key, error) {
	return s.Store.RevokeKey(ctx, companyID, id, s.now())
}

// LiveOf returns the keys that a user made and that still work.
func (s Keys) LiveOf(ctx context.Context, u UserAccount) ([]Key, error) {
	all, err := s.Store.Keys(ctx, u.CompanyID)
	now := s.now()
	return slices.DeleteFunc(all, func(k Key) bool {
		return k.CreatedBy != u.ID || !k.RevokedAt.IsZero() || !k.ExpiresAt.IsZero() && !now.Before(k.ExpiresAt)
	}), err
}

func (s Keys) create(ctx context.Context, createdBy string, policies []string, r NewKeyRequest) (Key, string, error) {
	if err := r.check(); err != nil {
		return Key{}, "", err
	}
	now := s.now()
	var expires time.Time
	if r.ExpiresIn > 0 {
		expires = now.Add(r.ExpiresIn)
	}
	key, text := NewKey(r.CompanyID, r.Name, createdBy, r.Permissions, now, expires)
	key.Policies = policies
	if err := s.Store.CreateKey(ctx, key); err != nil {
		return Key{}, "", err
	}
	return key, text, nil
}

// now is the present as the store keeps it: whole milliseconds, UTC.
func (s Keys) now() time.Time { return s.Now().UTC().Truncate(time.Millisecond) }

func (r NewKeyRequest) check() error {
	var faults []fault.Field
	if !resource.IsLabel(r.Name, MaxKeyName) {
		faults = append(faults, fault.Field{Field: "name", Message: "must have 1 to 100 printable characters and no spaces around them"})
	}
	if r.Permissions == 0 || r.Permissions&^All != 0 {
		faults = append(faults, fault.Field{Field: "permissions", Message: "must be one or more of " + All.String()})
	}
	if r.ExpiresIn < 0 {
		faults = append(faults, fault.Field{Field: "expiresIn", Message: "must be a positive duration, such as 24h"})
	}
	if len(faults) > 0 {
		return fault.Invalid("the key cannot be created: "+faults[0].Field+" "+faults[0].Message, faults...)
	}
	return nil
}
