package apikey

import (
	"context"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/resource"
)

// Store keeps API keys. Every method is bound to one company: an id of
// another is fault.NotFound.
type Store interface {
	// CreateKey stores a key; of its secret the hash alone.
	CreateKey(ctx context.Context, k Key) error
	// Keys returns a company's keys, newest first, revoked and expired ones included.
	Keys(ctx context.Context, companyID string) ([]Key, error)
	// RevokeKey sets RevokedAt unless it is set already, and returns the key.
	RevokeKey(ctx context.Context, companyID, id string, at time.Time) (Key, error)
}

// MaxName is the limit of a key's name, in characters.
const MaxName = 100

// Request asks for an API key.
type Request struct {
	CompanyID   string
	Name        string // need not be unique
	Permissions access.Permission
	ExpiresIn   time.Duration // 0: never
	// Networks and DevicesPerDay are those of Key.
	Networks      []netip.Prefix
	DevicesPerDay int
}

// The limits of what limits a key.
const (
	MaxNetworks      = 50
	MaxDevicesPerDay = 1_000_000
)

// ParseNetworks reads prefixes such as 192.0.2.0/24.
func ParseNetworks(texts []string) ([]netip.Prefix, error) {
	var networks []netip.Prefix
	for _, text := range texts {
		p, err := netip.ParsePrefix(text)
		if err != nil || p.Addr().Is4In6() {
			return nil, fault.Invalid("the network "+strconv.Quote(text)+" must be such as 192.0.2.0/24 or 2001:db8::/32",
				fault.Field{Field: "networks", Message: "must be networks such as 192.0.2.0/24"})
		}
		if p = p.Masked(); !slices.Contains(networks, p) {
			networks = append(networks, p)
		}
	}
	return networks, nil
}

// Keys makes and revokes API keys, for the command line and the portal alike.
type Keys struct {
	Store Store
	Now   func() time.Time
}

// CreateForOperator makes a key on the command line, whose user owns the
// database: contract 5.3 does not bind there. The text is
// shown once and never again.
func (s Keys) CreateForOperator(ctx context.Context, r Request) (Key, string, error) {
	return s.create(ctx, "operator", nil, r)
}

// CreateForUser makes a key for a portal user within what the user may grant
// (contract 5.3): fault.Forbidden otherwise. A key of a person who is limited
// to some policies is limited to the same.
func (s Keys) CreateForUser(ctx context.Context, by account.User, r Request) (Key, string, error) {
	if err := by.MayGrant(r.Permissions); err != nil {
		return Key{}, "", err
	}
	if r.Permissions != 0 && r.Permissions.AllowsNothing() {
		return Key{}, "", fault.Invalid("a key with "+r.Permissions.String()+" alone allows nothing",
			fault.Field{Field: "permissions", Message: "must have DEVICES_READ or POLICIES_READ"})
	}
	r.CompanyID = by.CompanyID
	return s.create(ctx, by.ID, by.Policies, r)
}

// Revoke ends a key at once. Revoking it again changes nothing.
func (s Keys) Revoke(ctx context.Context, companyID, id string) (Key, error) {
	return s.Store.RevokeKey(ctx, companyID, id, s.now())
}

// LiveOf returns the keys that a user made and that still work.
func (s Keys) LiveOf(ctx context.Context, u account.User) ([]Key, error) {
	all, err := s.Store.Keys(ctx, u.CompanyID)
	now := s.now()
	return slices.DeleteFunc(all, func(k Key) bool { return k.CreatedBy != u.ID || !k.Usable(now) }), err
}

func (s Keys) create(ctx context.Context, createdBy string, policies []string, r Request) (Key, string, error) {
	if err := r.Check(); err != nil {
		return Key{}, "", err
	}
	now := s.now()
	var expires time.Time
	if r.ExpiresIn > 0 {
		expires = now.Add(r.ExpiresIn)
	}
	key, text := New(r.CompanyID, r.Name, createdBy, r.Permissions, now, expires)
	key.Policies, key.Networks, key.DevicesPerDay = policies, r.Networks, r.DevicesPerDay
	if err := s.Store.CreateKey(ctx, key); err != nil {
		return Key{}, "", err
	}
	return key, text, nil
}

// now is the present as the store keeps it: whole milliseconds, UTC.
func (s Keys) now() time.Time { return s.Now().UTC().Truncate(time.Millisecond) }

// Check returns fault.InvalidArguments, naming every field at fault, for a key that no one can make.
func (r Request) Check() error {
	var wrong fault.Wrong
	wrong.Must(resource.IsLabel(r.Name, MaxName), "name", "must have 1 to 100 printable characters and no spaces around them")
	wrong.Must(r.Permissions != 0 && r.Permissions&^access.All == 0, "permissions", "must be one or more of "+access.All.String())
	wrong.Must(len(r.Networks) <= MaxNetworks, "networks", "must be at most 50")
	wrong.Must(r.DevicesPerDay >= 0 && r.DevicesPerDay <= MaxDevicesPerDay, "devicesPerDay", "must be from 1 to 1000000, or none")
	wrong.Must(r.ExpiresIn >= 0, "expiresIn", "must be a positive duration, such as 24h")
	return wrong.Err("the key cannot be created: ")
}
