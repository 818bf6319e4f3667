package cli

import (
	"context"
	"strconv"
	"strings"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/oauth"
	"github.com/musterhq/muster/internal/operation"
)

// ConnectionCommands manage OAuth connections: applications that people let
// act for them.
type ConnectionCommands struct {
	List   ConnectionList   `cmd:"" help:"List a company's OAuth connections."`
	Set    ConnectionSet    `cmd:"" help:"Change what a live connection may do; it counts from its next call on."`
	Revoke ConnectionRevoke `cmd:"" help:"End a connection: its tokens are refused from now on."`
}

// ConnectionList lists connections.
type ConnectionList struct{ OfCompany }

// Run prints the list.
func (c *ConnectionList) Run(env *Env) error {
	return c.reading(env, func(ctx context.Context, admin *Admin, owner company.Company) (answer, error) {
		connections, err := admin.Connections.Connections(ctx, owner.ID)
		if err != nil {
			return answer{}, err
		}
		users, err := admin.Users.Users(ctx, owner.ID)
		emails := map[string]string{}
		for _, u := range users {
			emails[u.ID] = u.Email
		}
		view := func(o oauth.Connection) connectionView {
			v := viewConnection(o)
			v.UserEmail = emails[o.UserID]
			return v
		}
		return list(connections, view, []string{"ID", "CLIENT", "USER", "STATE", "GRANTS", "LAST USED", "MAY"},
			func(o oauth.Connection) []string {
				return []string{o.ID, o.ClientName, emails[o.UserID], connectionState(o), strconv.Itoa(o.Grants),
					day(o.LastUsedAt), o.Scopes.String()}
			}), err
	})
}

func connectionState(o oauth.Connection) string {
	switch {
	case !o.RevokedAt.IsZero():
		return "revoked"
	case o.Frozen:
		return "frozen"
	case o.Grants == 0: // its tokens have all run out
		return "signed out"
	}
	return "live"
}

// ConnectionSet changes a connection's scopes.
type ConnectionSet struct {
	OfCompany
	Ref   string   `arg:"" name:"connection" help:"The connection's id, or the name of its client."`
	Scope []string `name:"scope" required:"" placeholder:"SCOPE" help:"A scope that the connection shall have, such as mcp:policies:write; repeat for more. Each call is still cut by the user's rights and the company's settings."`
}

// Validate wants known scopes.
func (c *ConnectionSet) Validate() error {
	_, err := c.scopes()
	return err
}

func (c *ConnectionSet) scopes() (access.Permission, error) {
	scopes, err := access.ParseScopes(c.Scope)
	if err != nil {
		err = fault.New(fault.InvalidArguments, "%s: use one of %s", err, strings.Join(access.All.Scopes(), ", "))
	}
	return scopes, err
}

// Run sets the scopes.
func (c *ConnectionSet) Run(env *Env) error {
	scopes, err := c.scopes()
	if err != nil {
		return err
	}
	return c.changeConnection(env, c.Ref, "Changed", func(o *oauth.Connection) error {
		if !o.RevokedAt.IsZero() {
			return fault.New(fault.Refused, "connection %s is revoked: its user has to connect again", o.ID)
		}
		o.Scopes = scopes
		return nil
	})
}

// changeConnection changes a connection of the company.
func (c OfCompany) changeConnection(env *Env, ref, done string, change func(*oauth.Connection) error) error {
	return c.run(env, on((*Admin).connection, ref, func(ctx context.Context, admin *Admin, owner company.Company, id string) (
		answer, error) {
		o, err := admin.Connections.UpdateConnection(ctx, owner.ID, id, change)
		return answerf(viewConnection(o), "%s connection %s (%s): %s.\n", done, o.ID, o.ClientName, o.Scopes),
			missing(err, owner.Slug, "connection", ref)
	}))
}

// ConnectionRevoke ends a connection.
type ConnectionRevoke struct {
	OfCompany
	Ref string `arg:"" name:"connection" help:"The connection's id, or the name of its client."`
}

// Run revokes the connection.
func (c *ConnectionRevoke) Run(env *Env) error {
	return c.changeConnection(env, c.Ref, "Revoked", func(o *oauth.Connection) error {
		if o.RevokedAt.IsZero() {
			o.RevokedAt = env.Now()
		}
		return nil
	})
}

type connectionView struct {
	ID         string               `json:"id"`
	ClientID   string               `json:"clientId"`
	ClientName string               `json:"clientName"`
	UserID     string               `json:"userId"`
	UserEmail  string               `json:"userEmail,omitempty"`
	Scopes     []string             `json:"scopes"`
	State      string               `json:"state"`
	Grants     int                  `json:"grants"` // one for each consent that is live
	CreatedAt  *operation.Timestamp `json:"createdAt"`
	LastUsedAt *operation.Timestamp `json:"lastUsedAt"`
	RevokedAt  *operation.Timestamp `json:"revokedAt"`
}

func viewConnection(o oauth.Connection) connectionView {
	return connectionView{ID: o.ID, ClientID: o.ClientID, ClientName: o.ClientName, UserID: o.UserID, Scopes: o.Scopes.Scopes(),
		State: connectionState(o), Grants: o.Grants, CreatedAt: operation.TimestampOf(o.CreatedAt),
		LastUsedAt: operation.TimestampOf(o.LastUsedAt), RevokedAt: operation.TimestampOf(o.RevokedAt)}
}
