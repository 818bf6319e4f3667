package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
)

// KeyCommands manage API keys. The command line is the operator's: the
// creation rules of contract 5.3 bind the portal, not it.
type KeyCommands struct {
	Create KeyCreate `cmd:"" help:"Create an API key and show it, once."`
	List   KeyList   `cmd:"" help:"List a company's keys."`
	Revoke KeyRevoke `cmd:"" help:"Revoke a key: it is refused from now on."`
}

// KeyCreate makes a key.
type KeyCreate struct {
	OfCompany
	Name       string         `name:"name" required:"" help:"What the key is for; at most 100 characters, need not be unique."`
	Permission []string       `name:"permission" required:"" enum:"DEVICES_READ,DEVICES_COMMAND,DEVICES_COMMAND_DESTRUCTIVE,POLICIES_READ,POLICIES_WRITE,PROVISIONING" placeholder:"NAME" help:"A permission; repeat for more: DEVICES_READ, DEVICES_COMMAND, DEVICES_COMMAND_DESTRUCTIVE, POLICIES_READ, POLICIES_WRITE, PROVISIONING."`
	ExpiresIn  *time.Duration `name:"expires-in" placeholder:"DURATION" help:"When the key stops working, such as 24h; by default never."`
}

// Validate refuses a lifetime that is none as bad usage: 0 must not come to mean
// for ever.
func (c *KeyCreate) Validate() error {
	if c.ExpiresIn != nil && *c.ExpiresIn <= 0 {
		return fault.Invalid("--expires-in must be longer than 0, such as 24h")
	}
	return nil
}

func (c *KeyCreate) lifetime() time.Duration {
	if c.ExpiresIn == nil {
		return 0 // never ends
	}
	return *c.ExpiresIn
}

// Run creates the key and shows it.
func (c *KeyCreate) Run(env *Env) error {
	permissions, err := access.ParsePermissions(c.Permission)
	if err != nil {
		return fault.Invalid(err.Error())
	}
	return c.run(env, func(ctx context.Context, admin *Admin) (answer, error) {
		owner, err := admin.company(ctx, c.Company)
		if err != nil {
			return answer{}, err
		}
		key, text, err := admin.keys(env).CreateForOperator(ctx, access.NewKeyRequest{
			CompanyID: owner.ID, Name: strings.TrimSpace(c.Name), Permissions: permissions, ExpiresIn: c.lifetime(),
		})
		view := viewKey(key)
		view.Key = text
		return answer{view, func(w io.Writer) {
			fmt.Fprintf(w, "Created key %s (%s) with %s.\nIt is shown this once:\n\n%s\n", key.ID, key.Name, key.Permissions, text)
		}}, err
	})
}

func (d *Admin) keys(env *Env) access.Keys { return access.Keys{Store: d.Keys, Now: env.Now} }

// KeyList lists keys.
type KeyList struct{ OfCompany }

// Run prints the list.
func (c *KeyList) Run(env *Env) error {
	return c.reading(env, func(ctx context.Context, admin *Admin) (answer, error) {
		owner, err := admin.company(ctx, c.Company)
		if err != nil {
			return answer{}, err
		}
		keys, err := admin.Keys.Keys(ctx, owner.ID)
		views := make([]keyView, len(keys))
		for i, key := range keys {
			views[i] = viewKey(key)
		}
		return answer{views, func(w io.Writer) {
			row(w, "ID", "PREFIX", "NAME", "STATE", "CREATED", "LAST USED", "PERMISSIONS")
			for _, key := range keys {
				row(w, key.ID, key.Prefix, key.Name, keyState(key, env.Now()), day(key.CreatedAt), day(key.LastUsedAt), key.Permissions.String())
			}
		}}, err
	})
}

func keyState(key access.Key, now time.Time) string {
	switch {
	case !key.RevokedAt.IsZero():
		return "revoked"
	case !key.Usable(now):
		return "expired"
	case key.ExpiresAt.IsZero():
		return "usable"
	default:
		return "until " + day(key.ExpiresAt)
	}
}

// KeyRevoke revokes a key.
type KeyRevoke struct {
	OfCompany
	ID string `arg:"" help:"The key's id, as key list shows it."`
}

// Run revokes the key.
func (c *KeyRevoke) Run(env *Env) error {
	return c.run(env, func(ctx context.Context, admin *Admin) (answer, error) {
		owner, err := admin.company(ctx, c.Company)
		if err != nil {
			return answer{}, err
		}
		key, err := admin.keys(env).Revoke(ctx, owner.ID, c.ID)
		if fault.CodeOf(err) == fault.NotFound {
			err = fault.New(fault.NotFound, "company %s has no key %q: `muster key list --company %s` shows those there are", owner.Slug, c.ID, owner.Slug)
		}
		return answer{viewKey(key), func(w io.Writer) {
			fmt.Fprintf(w, "Revoked key %s (%s).\n", key.ID, key.Name)
		}}, err
	})
}

type keyView struct {
	ID          string               `json:"id"`
	Prefix      string               `json:"prefix"`
	Key         string               `json:"key,omitempty"` // at creation alone
	Name        string               `json:"name"`
	Permissions []string             `json:"permissions"`
	CreatedBy   string               `json:"createdBy"`
	CreatedAt   *operation.Timestamp `json:"createdAt"`
	ExpiresAt   *operation.Timestamp `json:"expiresAt"`
	RevokedAt   *operation.Timestamp `json:"revokedAt"`
	LastUsedAt  *operation.Timestamp `json:"lastUsedAt"`
}

func viewKey(k access.Key) keyView {
	return keyView{
		ID: k.ID, Prefix: k.Prefix, Name: k.Name, Permissions: k.Permissions.Names(), CreatedBy: k.CreatedBy,
		CreatedAt: operation.TimestampOf(k.CreatedAt), ExpiresAt: operation.TimestampOf(k.ExpiresAt), RevokedAt: operation.TimestampOf(k.RevokedAt), LastUsedAt: operation.TimestampOf(k.LastUsedAt),
	}
}
