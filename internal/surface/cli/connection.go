package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
)

// ConnectionCommands manage OAuth connections: applications that people let
// act for them.
type ConnectionCommands struct {
	List   ConnectionList   `cmd:"" help:"List a company's OAuth connections."`
	Revoke ConnectionRevoke `cmd:"" help:"End a connection: its tokens are refused from now on."`
}

// ConnectionList lists connections.
type ConnectionList struct{ OfCompany }

// Run prints the list.
func (c *ConnectionList) Run(env *Env) error {
	return c.run(env, func(ctx context.Context, desk *Desk) (answer, error) {
		owner, err := desk.company(ctx, c.Company)
		if err != nil {
			return answer{}, err
		}
		connections, err := desk.Connections.Connections(ctx, owner.ID)
		views := make([]connectionView, len(connections))
		for i, o := range connections {
			views[i] = viewConnection(o)
		}
		return answer{views, func(w io.Writer) {
			row(w, "ID", "CLIENT", "USER", "STATE", "LAST USED", "MAY")
			for _, o := range connections {
				row(w, o.ID, o.ClientName, o.UserID, connectionState(o), day(o.LastUsedAt), o.Scopes.String())
			}
		}}, err
	})
}

func connectionState(o access.OAuthConnection) string {
	switch {
	case !o.RevokedAt.IsZero():
		return "revoked"
	case o.Frozen:
		return "frozen"
	}
	return "live"
}

// ConnectionRevoke ends a connection.
type ConnectionRevoke struct {
	OfCompany
	ID string `arg:"" help:"The connection's id, as connection list shows it."`
}

// Run revokes the connection.
func (c *ConnectionRevoke) Run(env *Env) error {
	return c.run(env, func(ctx context.Context, desk *Desk) (answer, error) {
		owner, err := desk.company(ctx, c.Company)
		if err != nil {
			return answer{}, err
		}
		o, err := desk.Connections.UpdateConnection(ctx, owner.ID, c.ID, func(o *access.OAuthConnection) error {
			if o.RevokedAt.IsZero() {
				o.RevokedAt = env.Now()
			}
			return nil
		})
		if fault.CodeOf(err) == fault.NotFound {
			err = fault.New(fault.NotFound, "company %s has no connection %q: `muster connection list --company %s` shows those there are", owner.Slug, c.ID, owner.Slug)
		}
		return answer{viewConnection(o), func(w io.Writer) { fmt.Fprintf(w, "Revoked connection %s (%s).\n", o.ID, o.ClientName) }}, err
	})
}

type connectionView struct {
	ID         string     `json:"id"`
	ClientID   string     `json:"clientId"`
	ClientName string     `json:"clientName"`
	UserID     string     `json:"userId"`
	Scopes     []string   `json:"scopes"`
	State      string     `json:"state"`
	CreatedAt  *time.Time `json:"createdAt"`
	LastUsedAt *time.Time `json:"lastUsedAt"`
	RevokedAt  *time.Time `json:"revokedAt"`
}

func viewConnection(o access.OAuthConnection) connectionView {
	return connectionView{ID: o.ID, ClientID: o.ClientID, ClientName: o.ClientName, UserID: o.UserID, Scopes: o.Scopes.Scopes(),
		State: connectionState(o), CreatedAt: stamp(o.CreatedAt), LastUsedAt: stamp(o.LastUsedAt), RevokedAt: stamp(o.RevokedAt)}
}
