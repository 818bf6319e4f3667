package oauth

import (
	"context"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/fault"
)

// Connections changes OAuth connections on behalf of people: their own, or,
// with the right to manage keys, those of all users of their company.
type Connections struct {
	Store ConnectionStore
	Users account.UserStore
	Now   func() time.Time
}

// SetScopes adds scopes to a connection and takes others away; its other scopes stay. It
// never may more than its user, or than the person who raises it: fault.Forbidden. It acts on all policies that its user may
// see, so that a person who may not see one of them raises nothing.
func (s Connections) SetScopes(ctx context.Context, by account.User, id string, add, remove access.Permission) (Connection, error) {
	owner, err := s.owner(ctx, by, id)
	if err != nil {
		return Connection{}, err
	}
	return s.Store.UpdateConnection(ctx, by.CompanyID, id, func(o *Connection) error {
		scopes := o.Scopes&^remove | add
		if scopes == 0 || scopes&^access.All != 0 {
			return fault.Invalid("a connection keeps at least one scope: revoke it instead",
				fault.Field{Field: "scope", Message: "choose at least one"})
		}
		raised := scopes &^ o.Scopes
		if missing := raised &^ owner.Rights.Permissions(); missing != 0 {
			return fault.New(fault.Forbidden, "%s may not do this, so the connection may not either: %s", owner.Name, missing)
		}
		if missing := raised &^ by.Rights.Permissions(); missing != 0 {
			return fault.New(fault.Forbidden, "you cannot grant %s, because you may not do that yourself", missing)
		}
		if raised != 0 && owner.SeesMoreThan(by) {
			return fault.New(fault.Forbidden, "you cannot grant this: %s may see policies that you may not", owner.Name)
		}
		o.Scopes = scopes
		return live(*o)
	})
}

// Freeze sets a connection aside, or thaws it.
func (s Connections) Freeze(ctx context.Context, by account.User, id string, frozen bool) (Connection, error) {
	if !by.Rights.Has(account.ManageKeys) {
		return Connection{}, fault.New(fault.Forbidden, "freezing connections needs the right %s", account.ManageKeys.Names()[0])
	}
	return s.Store.UpdateConnection(ctx, by.CompanyID, id, func(o *Connection) error {
		o.Frozen = frozen
		return live(*o)
	})
}

// Revoke ends a connection at once and for good.
func (s Connections) Revoke(ctx context.Context, by account.User, id string) (Connection, error) {
	if _, err := s.owner(ctx, by, id); err != nil {
		return Connection{}, err
	}
	return s.Store.UpdateConnection(ctx, by.CompanyID, id, func(o *Connection) error {
		if o.RevokedAt.IsZero() {
			o.RevokedAt = s.Now().UTC().Truncate(time.Millisecond)
		}
		return nil
	})
}

// owner is the connection's user, if by may change it: one's own, else it
// takes ManageKeys. Others' connections are not found without it.
func (s Connections) owner(ctx context.Context, by account.User, id string) (account.User, error) {
	all, err := s.Store.Connections(ctx, by.CompanyID)
	if err != nil {
		return account.User{}, err
	}
	for _, o := range all {
		if o.ID == id && (o.UserID == by.ID || by.Rights.Has(account.ManageKeys)) {
			return s.Users.UserByID(ctx, by.CompanyID, o.UserID)
		}
	}
	return account.User{}, fault.New(fault.NotFound, "no such connection")
}

func live(o Connection) error {
	if !o.RevokedAt.IsZero() {
		return fault.New(fault.Refused, "the connection was revoked")
	}
	return nil
}
