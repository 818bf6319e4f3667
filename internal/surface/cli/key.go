package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/apikey"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/phrase"
	"github.com/musterhq/muster/internal/slice"
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
	Name       string         `name:"name" help:"What the key is for; at most 100 characters, need not be unique."`
	Named      string         `arg:"" optional:"" name:"key" help:"The name, instead of --name."`
	Preset     string         `name:"preset" default:"" enum:",read-only,help-desk,assistant,automation" placeholder:"NAME" help:"Permissions for a use: read-only (DEVICES_READ, POLICIES_READ), help-desk (also DEVICES_COMMAND), assistant (also POLICIES_WRITE), automation (also PROVISIONING)."`
	Permission []string       `name:"permission" enum:"DEVICES_READ,DEVICES_COMMAND,DEVICES_COMMAND_DESTRUCTIVE,POLICIES_READ,POLICIES_WRITE,PROVISIONING" placeholder:"NAME" help:"A permission, also beside a preset; repeat for more: DEVICES_READ, DEVICES_COMMAND, DEVICES_COMMAND_DESTRUCTIVE, POLICIES_READ, POLICIES_WRITE, PROVISIONING."`
	ExpiresIn  *time.Duration `name:"expires-in" placeholder:"DURATION" help:"When the key stops working, such as 90d; by default never."`
	Network    []string       `name:"network" placeholder:"CIDR" help:"A network from which the key may be used, such as 192.0.2.0/24; repeat for more. By default anywhere. Behind a proxy the service needs MUSTER_TRUSTED_PROXIES to know the address."`
	PerDay     *int           `name:"devices-per-day" placeholder:"N" help:"How many devices the key may send commands to in any 24 hours; by default any number."`
}

// Validate refuses a lifetime or a number that is none as bad usage: 0 must not come to
// mean forever, or any number.
func (c *KeyCreate) Validate() error {
	if _, err := oneOf("name", c.Name, c.Named); err != nil {
		return err
	}
	switch {
	case c.ExpiresIn != nil && *c.ExpiresIn <= 0:
		return fault.Invalid("--expires-in must be longer than 0, such as 24h")
	case c.PerDay != nil && (*c.PerDay < 1 || *c.PerDay > apikey.MaxDevicesPerDay):
		return fault.Invalid(fmt.Sprintf("--devices-per-day must be from 1 to %d", apikey.MaxDevicesPerDay))
	case c.Preset == "" && len(c.Permission) == 0:
		return fault.Invalid("give --preset or --permission")
	case len(c.Network) > apikey.MaxNetworks:
		return fault.Invalid(fmt.Sprintf("--network can be given at most %d times", apikey.MaxNetworks))
	}
	wanted, err := c.request()
	if err != nil {
		return err
	}
	return wanted.Check()
}

// request is what the flags ask for.
func (c *KeyCreate) request() (r apikey.Request, err error) {
	r = apikey.Request{Name: strings.TrimSpace(cmp.Or(c.Name, c.Named)), ExpiresIn: deref(c.ExpiresIn), DevicesPerDay: deref(c.PerDay)}
	if r.Permissions, err = c.permissions(); err == nil {
		r.Networks, err = apikey.ParseNetworks(c.Network)
	}
	return r, err
}

// permissions are those of the preset and those that are named.
func (c *KeyCreate) permissions() (access.Permission, error) {
	p, err := access.ParsePermissions(c.Permission)
	if err != nil {
		return 0, fault.Invalid(err.Error())
	}
	preset := slice.First(access.Presets(), func(preset access.Preset) bool { return preset.Name == c.Preset })
	return p | preset.Permissions, nil
}

// warn says which permissions allow nothing.
func (c *KeyCreate) warn(env *Env, p access.Permission) {
	if missing := p.WithImplied() &^ p; p.AllowsNothing() {
		env.warn("a key with %s alone allows nothing: it also needs %s", p, missing)
	} else if missing != 0 {
		env.warn("some permissions of the key allow nothing without %s", missing)
	}
}

// Run creates the key and shows it.
func (c *KeyCreate) Run(env *Env) error {
	wanted, err := c.request()
	if err != nil {
		return err
	}
	return c.run(env, func(ctx context.Context, admin *Admin, owner company.Company) (answer, error) {
		wanted.CompanyID = owner.ID
		key, text, err := admin.keys(env).CreateForOperator(ctx, wanted)
		if err == nil {
			c.warn(env, wanted.Permissions)
		}
		view := viewKey(key)
		view.Key = text
		return answerf(view, "Created key %s (%s) with %s.\nIt is shown this once:\n\n%s\n", key.ID, key.Name, key.Permissions, text), err
	})
}

func (a *Admin) keys(env *Env) apikey.Keys { return apikey.Keys{Store: a.Keys, Now: env.Now} }

// KeyList lists keys.
type KeyList struct{ OfCompany }

// Run prints the list.
func (c *KeyList) Run(env *Env) error {
	return c.reading(env, func(ctx context.Context, admin *Admin, owner company.Company) (answer, error) {
		keys, err := admin.Keys.Keys(ctx, owner.ID)
		header := []string{"ID", "PREFIX", "NAME", "STATE", "CREATED", "LAST USED", "PERMISSIONS", "LIMITS"}
		return list(keys, viewKey, header, func(key apikey.Key) []string {
			return []string{key.ID, key.Prefix, key.Name, keyState(key, env.Now()), day(key.CreatedAt), day(key.LastUsedAt),
				key.Permissions.String(), orDash(keyLimits(key))}
		}), err
	})
}

func keyState(key apikey.Key, now time.Time) string {
	switch {
	case !key.RevokedAt.IsZero():
		return "revoked"
	case !key.Usable(now):
		return "expired"
	case key.ExpiresAt.IsZero():
		return "usable, no expiry"
	default:
		return "until " + day(key.ExpiresAt)
	}
}

// keyLimits are a key's networks and its number of devices.
func keyLimits(key apikey.Key) string {
	limits := key.NetworkTexts()
	if key.DevicesPerDay > 0 {
		limits = append(limits, phrase.Count(key.DevicesPerDay, "device", "devices")+"/day")
	}
	return strings.Join(limits, ", ")
}

// KeyRevoke revokes a key.
type KeyRevoke struct {
	OfCompany
	Key string `arg:"" help:"The key's name, prefix or id, as key list shows them."`
}

// Run revokes the key.
func (c *KeyRevoke) Run(env *Env) error {
	return c.run(env, on((*Admin).key, c.Key, func(ctx context.Context, admin *Admin, owner company.Company, id string) (answer, error) {
		key, err := admin.keys(env).Revoke(ctx, owner.ID, id)
		return answerf(viewKey(key), "Revoked key %s (%s).\n", key.ID, key.Name), missing(err, owner.Slug, "key", c.Key)
	}))
}

type keyView struct {
	ID          string               `json:"id"`
	Prefix      string               `json:"prefix"`
	Key         string               `json:"key,omitempty"` // at creation alone
	Name        string               `json:"name"`
	Permissions []string             `json:"permissions"`
	Networks    []string             `json:"networks"`
	PerDay      *int                 `json:"devicesPerDay"` // null: any number
	CreatedBy   string               `json:"createdBy"`
	CreatedAt   *operation.Timestamp `json:"createdAt"`
	ExpiresAt   *operation.Timestamp `json:"expiresAt"`
	RevokedAt   *operation.Timestamp `json:"revokedAt"`
	LastUsedAt  *operation.Timestamp `json:"lastUsedAt"`
}

func viewKey(k apikey.Key) keyView {
	view := keyView{
		ID: k.ID, Prefix: k.Prefix, Name: k.Name, Permissions: k.Permissions.Names(), Networks: k.NetworkTexts(), CreatedBy: k.CreatedBy,
		CreatedAt: operation.TimestampOf(k.CreatedAt), ExpiresAt: operation.TimestampOf(k.ExpiresAt),
		RevokedAt: operation.TimestampOf(k.RevokedAt), LastUsedAt: operation.TimestampOf(k.LastUsedAt),
	}
	if k.DevicesPerDay > 0 {
		view.PerDay = &k.DevicesPerDay
	}
	return view
}
