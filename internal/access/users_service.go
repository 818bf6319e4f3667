package access

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/name"
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
	Passwords *Passwords
	Now       func() time.Time
}

// Create makes a user. Who may do that is the caller's to check.
func (s Users) Create(ctx context.Context, r NewUserRequest) (UserAccount, error) {
	email, err := NormalEmail(r.Email)
	if err != nil {
		return UserAccount{}, err
	}
	rights, known := r.Role.Rights()
	if !known {
		return UserAccount{}, fault.Invalid("the role is not known", fault.Field{Field: "role", Message: "must be admin, manager, operator or viewer"})
	}
	if r.Rights != nil {
		rights = *r.Rights
	}
	called := strings.TrimSpace(r.Name)
	if called == "" {
		called = email
	}
	if utf8.RuneCountInString(called) > MaxUserName {
		return UserAccount{}, fault.Invalid("the name is too long", fault.Field{Field: "name", Message: fmt.Sprintf("must be at most %d characters", MaxUserName)})
	}
	if err := CheckPassword(r.Password); err != nil {
		return UserAccount{}, err
	}
	hash, err := s.Passwords.Hash(ctx, r.Password)
	if err != nil {
		return UserAccount{}, err
	}
	u := UserAccount{ID: name.NewID(), CompanyID: r.CompanyID, Email: email, Name: called, Role: r.Role, Rights: rights,
		Policies: r.Policies, PasswordHash: hash, CreatedAt: s.Now()}
	return u, s.Store.CreateUser(ctx, u)
}

// Disable shuts a user out, ends its sessions, and stops its connections.
func (s Users) Disable(ctx context.Context, companyID, id string) (UserAccount, error) {
	return s.Store.UpdateUser(ctx, companyID, id, func(u *UserAccount) error {
		u.Disabled = true
		return nil
	})
}
