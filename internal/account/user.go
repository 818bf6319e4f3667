// Package account has the people who use the portal: their rights and roles, how they
// sign in (password, passkey, their company's identity provider), and their sessions.
package account

import (
	"context"
	"net/mail"
	"strings"
	"time"
	"unicode"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/validate"
)

// User is a person who signs in to the portal.
type User struct {
	ID           string
	CompanyID    string
	Email        string // lower case; unique over all companies
	Name         string
	Role         Role
	Rights       Right    // those of the role, unless an administrator chose others
	Policies     []string // nil: all policies; else ids of those that the user may see
	PasswordHash string   // empty: no password: invited and not yet set, or only sign-in through the company's provider
	Disabled     bool
	CreatedAt    time.Time
	LastSignInAt time.Time // zero: never
}

// Principal returns the user as a caller of operations. slug and settings are those of the user's company.
func (u User) Principal(slug string, settings access.Settings) access.Principal {
	return access.Principal{Kind: access.User, ID: u.ID, UserID: u.ID, Name: u.Name, CompanyID: u.CompanyID, CompanySlug: slug,
		Permissions: u.Rights.Permissions(), Settings: settings, Policies: u.Policies, Rights: uint16(u.Rights)}
}

// Held are the user's rights with the rights to look at what they change, and AllPolicies unless the user is limited to policies.
func (u User) Held() Right {
	held := u.Rights | RightsFor(u.Rights.Permissions())
	if u.Policies == nil {
		held |= AllPolicies
	}
	return held
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

// NormalEmail returns the lower-case form in which an address is stored and compared. It fails with
// fault.InvalidArguments for a text that is no plain address of at most 320 bytes, or that looks like another because a
// character is not shown.
func NormalEmail(text string) (string, error) {
	address, err := mail.ParseAddress(text)
	if err != nil || address.Address != text || len(text) > 320 || strings.ContainsFunc(text, unicode.IsSpace) ||
		strings.ContainsFunc(text, becomesASCII) || strings.ContainsFunc(text, validate.Ignorable) {
		return "", fault.Invalid("the e-mail address is not valid",
			fault.Field{Field: "email", Message: "must be an e-mail address such as ada@example.com"})
	}
	return strings.ToLower(text), nil
}

// becomesASCII reports whether a character outside ASCII, such as the Kelvin sign, equals an ASCII letter when case is
// ignored. An address with such a character would become the address of another person.
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

// UserStore keeps portal users. Methods for one user return fault.NotFound without that user.
type UserStore interface {
	CreateUser(ctx context.Context, u User) error // fault.Refused if the address is taken
	// CreateUserAmong creates the user only if check accepts the company's identity provider, zero if there is none. The
	// provider cannot change before the user is saved. It fails with fault.Refused if the address is taken, and with the
	// error of check.
	CreateUserAmong(ctx context.Context, u User, check func(IdentityProvider) error) error
	// UserByID returns a user of the company, or fault.NotFound.
	UserByID(ctx context.Context, companyID, id string) (User, error)
	// UserByEmail returns the user of any company with that address, or fault.NotFound.
	UserByEmail(ctx context.Context, email string) (User, error)
	// Users returns the users of a company, by address.
	Users(ctx context.Context, companyID string) ([]User, error)
	// UpdateUser saves what change does to the user, atomically. change may run more than once and must be pure. A user
	// who is disabled, or gets another password, loses their sessions and the sign-ins that they have begun. It fails with
	// fault.Refused if the address is taken, and with the error of change.
	UpdateUser(ctx context.Context, companyID, id string, change func(*User) error) (User, error)
	// UpdateUserAmong is UpdateUser for a change that depends on other users or on the company's provider. See Among.
	UpdateUserAmong(ctx context.Context, companyID, id string, change func(u *User, among Among) error) (User, error)
	// RemovePasskeys takes all passkeys and recovery codes from a user, who loses their sessions and the sign-ins that they
	// have begun: who has a password signs in with it alone. It fails with fault.NotFound if the company has no such user.
	RemovePasskeys(ctx context.Context, companyID, id string) (User, error)
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
	// Rights are the user's rights; nil: those of the role.
	Rights   *Right
	Policies []string // nil: all policies; else ids of those that the user may see
	Password string
}

// Users makes, changes and disables portal users, for the command line and the portal.
type Users struct {
	Store     UserStore
	Domains   DomainOwners // for Invite
	Passwords *Passwords
	Now       func() time.Time
}

// Create makes a user with a password. It does not check whether its caller may do that. It fails with
// fault.InvalidArguments, or with fault.Refused if the address is taken.
func (s Users) Create(ctx context.Context, r NewUserRequest) (User, error) {
	u, err := r.account(s.Now())
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

// Disable prevents a user from signing in, ends their sessions, and revokes their OAuth connections, which do not work again
// after Enable.
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

// SetRole gives a user a role with its rights. It fails with fault.Refused if the rights are more than the provider that
// signs the user in may give. It does not check whether its caller may do that.
func (s Users) SetRole(ctx context.Context, companyID, id string, role Role) (User, error) {
	return s.Store.UpdateUserAmong(ctx, companyID, id, UserChange{Role: &role}.applyWithin)
}
