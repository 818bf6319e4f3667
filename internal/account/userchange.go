package account

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/resource"
)

// UserChange is what an administrator changes about a user. Nil members stay.
type UserChange struct {
	Name     *string
	Role     *Role
	Rights   *Right
	Policies *[]string // a nil slice: all policies
	Disabled *bool
	// Was is the user as the person who makes the change saw them; nil: not known. What a
	// member leaves as it was then stays as it is by now.
	Was *User
}

// Among is what the change of a user depends on. None of it changes before that is saved.
type Among struct {
	Managers int              // other users of the company who may manage users
	Provider IdentityProvider // the company's; zero: there is none
}

// Change changes a user on behalf of another. Users cannot give rights or policies
// that they do not have or shut themselves out, and the last user who
// may manage users stays one: fault.Forbidden or fault.Refused.
func (s Users) Change(ctx context.Context, by User, id string, c UserChange) (User, error) {
	if !by.Rights.Has(ManageUsers) {
		return User{}, fault.New(fault.Forbidden, "changing users needs the right %s", ManageUsers.Names()[0])
	}
	return s.Store.UpdateUserAmong(ctx, by.CompanyID, id, func(u *User, among Among) error {
		if u.MayDoMoreThan(by) {
			return fault.New(fault.Forbidden, "you cannot change %s, who may do more than you", u.Name)
		}
		managed := u.Rights.Has(ManageUsers) && !u.Disabled
		if err := c.applyWithin(u, among); err != nil {
			return err
		}
		if u.MayDoMoreThan(by) {
			return fault.New(fault.Forbidden, "you cannot give rights or policies that you do not have yourself")
		}
		if manages := u.Rights.Has(ManageUsers) && !u.Disabled; managed && !manages {
			switch {
			case u.ID == by.ID:
				return fault.New(fault.Refused, "you cannot shut yourself out: another administrator can do it")
			case among.Managers == 0:
				return fault.New(fault.Refused, "%s is the last user who may manage users: give the right to another first", u.Name)
			}
		}
		return nil
	})
}

// applyWithin makes the change within what the company's provider allows: it returns fault.Refused for rights that it adds and that exceed
// the provider which signs the user in.
func (c UserChange) applyWithin(u *User, among Among) error {
	before := u.Rights
	if err := c.since(*u).apply(u); err != nil || u.Rights&^before == 0 {
		return err
	}
	return among.Provider.checkRights(*u)
}

// apply makes the change; a role brings its rights unless others are given.
func (c UserChange) apply(u *User) error {
	if c.Name != nil {
		if u.Name = strings.TrimSpace(*c.Name); !resource.IsLabel(u.Name, MaxUserName) {
			return fault.Invalid("the name cannot be used", fault.Field{Field: "name", Message: "must have 1 to 100 printable characters"})
		}
	}
	if c.Role != nil {
		rights, known := c.Role.Rights()
		if !known {
			return fault.Invalid("the role is not known", fault.Field{Field: "role", Message: "must be admin, manager, operator or viewer"})
		}
		u.Role, u.Rights = *c.Role, rights
	}
	if c.Rights != nil {
		u.Rights = *c.Rights
	}
	if c.Policies != nil {
		u.Policies = *c.Policies
	}
	if c.Disabled != nil {
		u.Disabled = *c.Disabled
	}
	return nil
}

// MayDoMoreThan reports whether u has a right or a policy that by does not have.
func (u User) MayDoMoreThan(by User) bool { return !by.Held().Has(u.Held()) || u.SeesMoreThan(by) }

// SeesMoreThan reports whether u may see a policy that by may not see.
func (u User) SeesMoreThan(by User) bool {
	foreign := func(id string) bool { return !slices.Contains(by.Policies, id) }
	return by.Policies != nil && (u.Policies == nil || slices.ContainsFunc(u.Policies, foreign))
}

// Invite makes a user who has no password yet; the invitation lets them set it.
func (s Users) Invite(ctx context.Context, by User, r NewUserRequest) (User, error) {
	if !by.Rights.Has(ManageUsers) {
		return User{}, fault.New(fault.Forbidden, "inviting users needs the right %s", ManageUsers.Names()[0])
	}
	r.CompanyID = by.CompanyID
	u, err := r.account(s.Now())
	if err != nil {
		return User{}, err
	}
	if u.MayDoMoreThan(by) {
		return User{}, fault.New(fault.Forbidden, "you cannot give rights or policies that you do not have yourself")
	}
	// An address of another company's domain is refused whether or not that
	// company has such a user, which the inviting person may not learn.
	foreign, err := s.Domains.ForeignDomain(ctx, u.CompanyID, domainOf(u.Email))
	if err != nil {
		return User{}, err
	}
	var refused error // by the rule about providers
	taken := fault.New(fault.Refused, "cannot use the address %s: it is not available; ask the operator if it should be", u.Email)
	if foreign {
		return User{}, taken
	}
	err = s.Store.CreateUserAmong(ctx, u, func(p IdentityProvider) error {
		refused = p.checkRights(u)
		return refused
	})
	if fault.CodeOf(err) == fault.Refused && refused == nil {
		if known, lost := s.Store.UserByEmail(ctx, u.Email); lost != nil || known.CompanyID != u.CompanyID {
			err = taken.Because(err)
		}
	}
	return u, err
}

// Check returns fault.InvalidArguments for an address, a role or a name that no user can have.
func (r NewUserRequest) Check() error {
	_, err := r.account(time.Time{})
	return err
}

// account is a request's user, made now, without a password.
func (r NewUserRequest) account(now time.Time) (User, error) {
	email, err := NormalEmail(r.Email)
	if err != nil {
		return User{}, err
	}
	u := User{ID: resource.NewID(), CompanyID: r.CompanyID, Email: email, Name: email, Policies: r.Policies, CreatedAt: now}
	given := UserChange{Role: &r.Role, Rights: r.Rights}
	if called := strings.TrimSpace(r.Name); called != "" && called != email { // an address may be longer than a name
		given.Name = &called
	}
	err = given.apply(&u)
	return u, err
}

// SetPassword gives a user a password; every session of theirs ends.
func (s Users) SetPassword(ctx context.Context, companyID, id, password string) (User, error) {
	if err := CheckPassword(password); err != nil {
		return User{}, err
	}
	hash, err := s.Passwords.Hash(ctx, password)
	if err != nil {
		return User{}, err
	}
	return s.Store.UpdateUser(ctx, companyID, id, func(u *User) error {
		u.PasswordHash = hash
		return nil
	})
}

// since is the change of a user whom others may have changed since c.Was: only what differs
// from c.Was applies.
func (c UserChange) since(now User) UserChange {
	if c.Was == nil {
		return c
	}
	if c.Name != nil && strings.TrimSpace(*c.Name) == c.Was.Name {
		c.Name = nil
	}
	if c.Role != nil && *c.Role == c.Was.Role {
		c.Role = nil
	}
	if c.Rights != nil && !c.bringsRights() {
		given, taken := *c.Rights&^c.Was.Rights, c.Was.Rights&^*c.Rights
		rights := (now.Rights | given) &^ taken
		c.Rights = &rights
	}
	if c.Policies != nil {
		policies := policiesSince(now.Policies, c.Was.Policies, *c.Policies)
		c.Policies = &policies
	}
	return c
}

// bringsRights reports whether the rights are those of another role that was chosen.
func (c UserChange) bringsRights() bool {
	if c.Role == nil {
		return false
	}
	rights, _ := c.Role.Rights()
	return rights == *c.Rights
}

// policiesSince is ApplyDifference for policies, of which nil is all.
func policiesSince(now, was, wanted []string) []string {
	if (was == nil) != (wanted == nil) {
		return wanted
	}
	same := len(was) == len(wanted) && !slices.ContainsFunc(wanted, func(id string) bool { return !slices.Contains(was, id) })
	switch {
	case same:
		return now
	case now == nil:
		return wanted
	}
	return ApplyDifference(now, was, wanted)
}

// ApplyDifference returns now with what wanted has more than was, and without what it has
// less. The result is not nil.
func ApplyDifference(now, was, wanted []string) []string {
	next := []string{}
	for _, one := range now {
		if !slices.Contains(was, one) || slices.Contains(wanted, one) {
			next = append(next, one)
		}
	}
	for _, one := range wanted {
		if !slices.Contains(was, one) && !slices.Contains(next, one) {
			next = append(next, one)
		}
	}
	return next
}
