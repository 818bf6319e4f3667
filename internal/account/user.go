// Package account has the people who use the portal: their rights and roles, how they
// sign in (password, passkey, their company's identity provider), and their sessions.
package account

import (
	"context"
	"fmt"
	"net/mail"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
)

// Right is a set of what a portal user may do.
type Right uint16

// The rights. EditPolicies and ProvisionDevices are those of contract 5.3.
const (
	ViewDevices Right = 1 << iota
	CommandDevices
	DestroyDevices // the four destructive commands
	ViewPolicies
	EditPolicies
	ProvisionDevices
	ManageKeys
	ManageUsers
	ManageCompany // settings for AI agent access, the platform's binding, sign-in
	ViewActivity
)

// rightNames is in the order of the bits.
var rightNames = [...]string{"view-devices", "command-devices", "destroy-devices", "view-policies", "edit-policies", //nolint:gochecknoglobals // a table that is never written to
	"provision-devices", "manage-keys", "manage-users", "manage-company", "view-activity"}

// Has reports whether r holds every right of q.
func (r Right) Has(q Right) bool { return r&q == q }

// Names returns the names of the rights, in a fixed order.
func (r Right) Names() []string {
	names := []string{}
	for i, name := range rightNames {
		if r&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// ParseRights reads names.
func ParseRights(names []string) (Right, error) {
	var r Right
	for _, name := range names {
		i := slices.Index(rightNames[:], name)
		if i < 0 {
			return 0, fmt.Errorf("unknown right %q: use one of %s", name, strings.Join(rightNames[:], ", "))
		}
		r |= 1 << i
	}
	return r, nil
}

// Permissions are the permissions of operations that the rights amount to: who
// may change something may also look at it.
func (r Right) Permissions() access.Permission {
	var p access.Permission
	for right, permission := range map[Right]access.Permission{
		ViewDevices: access.DevicesRead, CommandDevices: access.DevicesCommand, DestroyDevices: access.DevicesCommandDestructive,
		ViewPolicies: access.PoliciesRead, EditPolicies: access.PoliciesWrite, ProvisionDevices: access.Provisioning,
	} {
		if r.Has(right) {
			p |= permission
		}
	}
	return p.WithImplied()
}

// Role is a named set of rights to start from.
type Role string

// The roles.
const (
	Admin    Role = "admin"    // everything
	Manager  Role = "manager"  // devices, policies, enrollment
	Operator Role = "operator" // devices, without the destructive commands
	Viewer   Role = "viewer"   // looks
)

// Rights are what the role grants; false for an unknown role.
func (r Role) Rights() (Right, bool) {
	look := ViewDevices | ViewPolicies
	switch r {
	case Admin:
		return 1<<len(rightNames) - 1, true
	case Manager:
		return look | CommandDevices | DestroyDevices | EditPolicies | ProvisionDevices | ViewActivity, true
	case Operator:
		return look | CommandDevices, true
	case Viewer:
		return look, true
	}
	return 0, false
}

// UserAccount is a person who signs in to the portal.
type User struct {
	ID           string
	CompanyID    string
	Email        string // lower case; unique over all companies
	Name         string
	Role         Role
	Rights       Right    // the role's, or as an administrator set them
	Policies     []string // nil: all policies; else ids of those that the user may see
	PasswordHash string   // empty: signs in through the company's identity provider only
	Disabled     bool
	CreatedAt    time.Time
	LastSignInAt time.Time // zero: never
}

// Principal is the user as a caller of operations.
func (u User) Principal(slug string, settings access.Settings) access.Principal {
	return access.Principal{Kind: access.User, ID: u.ID, UserID: u.ID, Name: u.Name, CompanyID: u.CompanyID, CompanySlug: slug,
		Permissions: u.Rights.Permissions(), Settings: settings, Policies: u.Policies, Rights: uint16(u.Rights)}
}

// MayGrant returns fault.Forbidden if the user may not create a key with the
// permissions (contract 5.3): users cannot grant more than they have, and
// PROVISIONING takes access to all policies.
func (u User) MayGrant(p access.Permission) error {
	if !u.Rights.Has(ManageKeys) {
		return fault.New(fault.Forbidden, "creating API keys needs the right %s: an administrator can grant it", ManageKeys.Names()[0])
	}
	if missing := p &^ u.Rights.Permissions(); missing != 0 {
		return fault.New(fault.Forbidden, "you cannot create a key with %s, because you may not do that yourself", missing)
	}
	if p.Has(access.Provisioning) && u.Policies != nil {
		return fault.New(fault.Forbidden, "creating a key with %s needs access to all policies", access.Provisioning)
	}
	return nil
}

// NormalEmail returns the form in which an address is kept and compared, or
// fault.InvalidArguments.
func NormalEmail(text string) (string, error) {
	address, err := mail.ParseAddress(text)
	if err != nil || address.Address != text || len(text) > 320 || strings.ContainsFunc(text, unicode.IsSpace) || strings.ContainsFunc(text, becomesASCII) {
		return "", fault.Invalid("the e-mail address is not valid",
			fault.Field{Field: "email", Message: "must be an e-mail address such as ada@example.com"})
	}
	return strings.ToLower(text), nil
}

// becomesASCII reports whether a character that is not of ASCII, such as the Kelvin sign,
// is taken for an ASCII letter where case does not count: its address would be another's.
func becomesASCII(r rune) bool {
	if r <= unicode.MaxASCII {
		return false
	}
	for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
		if other <= unicode.MaxASCII {
			return true
		}
	}
	return unicode.ToLower(r) <= unicode.MaxASCII
}

// UserStore keeps portal users. Find methods return fault.NotFound.
type UserStore interface {
	CreateUser(ctx context.Context, u User) error // fault.Refused if the address is taken
	// CreateUserAmong is CreateUser unless check refuses the company's provider, which does
	// not change before the user is saved; zero: there is none.
	CreateUserAmong(ctx context.Context, u User, check func(IdentityProvider) error) error
	UserByID(ctx context.Context, companyID, id string) (User, error)
	UserByEmail(ctx context.Context, email string) (User, error)
	Users(ctx context.Context, companyID string) ([]User, error)
	// UpdateUser changes what change changes, atomically; change may run more
	// than once and must be pure. Disabling a user ends its sessions.
	UpdateUser(ctx context.Context, companyID, id string, change func(*User) error) (User, error)
	// UpdateUserAmong is UpdateUser whose change also learns what it depends on.
	UpdateUserAmong(ctx context.Context, companyID, id string, change func(u *User, among Among) error) (User, error)
	// DeleteUser removes a user with everything that is the user's alone: sessions,
	// passkeys, connections, views. What the user did stays in the records.
	DeleteUser(ctx context.Context, companyID, id string) (User, error)
}

// MaxUserName is the limit of a user's name, in characters.
const MaxUserName = 100

// NewUserRequest asks for a portal user.
type NewUserRequest struct {
	CompanyID string
	Email     string
	Name      string // empty: the address
	Role      Role
	// Rights replaces the role's rights; nil: the role's.
	Rights   *Right
	Policies []string // nil: all policies; else ids of those that the user may see
	Password string
}

// Users makes and disables portal users, for the command line and the portal.
type Users struct {
	Store     UserStore
	Domains   DomainOwners // for Invite
	Passwords *Passwords
	Now       func() time.Time
}

// Create makes a user. Who may do that is the caller's to check.
func (s Users) Create(ctx context.Context, r NewUserRequest) (User, error) {
	u, err := s.account(r)
	if err != nil {
		return User{}, err
	}
	if err := CheckPassword(r.Password); err != nil {
		return User{}, err
	}
	if u.PasswordHash, err = s.Passwords.Hash(ctx, r.Password); err != nil {
		return User{}, err
	}
	return u, s.Store.CreateUser(ctx, u)
}

// Disable shuts a user out, ends its sessions, and stops its connections.
func (s Users) Disable(ctx context.Context, companyID, id string) (User, error) {
	return s.disabled(ctx, companyID, id, true)
}

// Enable lets a user sign in again.
func (s Users) Enable(ctx context.Context, companyID, id string) (User, error) {
	return s.disabled(ctx, companyID, id, false)
}

func (s Users) disabled(ctx context.Context, companyID, id string, disabled bool) (User, error) {
	return s.Store.UpdateUser(ctx, companyID, id, func(u *User) error {
		u.Disabled = disabled
		return nil
	})
}

// SetRole gives a user a role with its rights; fault.Refused if they exceed the provider that
// signs the user in. Who may do that is the caller's to check.
func (s Users) SetRole(ctx context.Context, companyID, id string, role Role) (User, error) {
	return s.Store.UpdateUserAmong(ctx, companyID, id, UserChange{Role: &role}.vouched)
}
