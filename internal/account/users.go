package account

import (
	"context"
	"time"
)

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

// SetRole gives a user a role with its rights.
func (s Users) SetRole(ctx context.Context, companyID, id string, role Role) (User, error) {
	return s.Store.UpdateUser(ctx, companyID, id, UserChange{Role: &role}.apply)
}
