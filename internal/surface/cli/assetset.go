package cli

import (
	"context"
	"fmt"
	"io"
	"maps"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/company"
)

// AssetSet changes what people say of an asset.
type AssetSet struct {
	OfCompany
	Asset     string            `arg:"" help:"The asset's name, id or path name."`
	Name      *string           `name:"name" placeholder:"NAME" help:"Its new name."`
	Tag       []string          `name:"tag" sep:"none" placeholder:"TAG" xor:"tags" help:"Its tags from now on; may be repeated. They replace those that it has; --tag= alone removes all."`
	AddTag    []string          `name:"add-tag" sep:"none" placeholder:"TAG" xor:"tags" help:"A tag more; may be repeated."`
	RemoveTag []string          `name:"remove-tag" sep:"none" placeholder:"TAG" help:"A tag less; may be repeated."`
	User      *string           `name:"user" placeholder:"NAME" help:"The person to whom the device is assigned; --user= removes them."`
	UserEmail *string           `name:"user-email" placeholder:"ADDRESS" help:"Their e-mail address; --user-email= removes it."`
	Data      map[string]string `name:"data" placeholder:"KEY=VALUE" help:"Other custom data; an empty value removes the key."`
}

// edit is what the flags say, by the rules of the API.
func (c *AssetSet) edit() (asset.Edit, error) {
	e := asset.Edit{Identification: c.Name, AddTags: c.AddTag, DropTags: c.RemoveTag, CustomData: map[string]*string{}}
	if c.Tag != nil {
		e.Tags = []string{}
		for _, tag := range c.Tag {
			if tag != "" {
				e.Tags = append(e.Tags, tag)
			}
		}
	}
	custom := maps.Clone(c.Data)
	if custom == nil {
		custom = map[string]string{}
	}
	if c.User != nil {
		custom[asset.UserKey] = *c.User
	}
	if c.UserEmail != nil {
		custom[asset.UserEmailKey] = *c.UserEmail
	}
	for key, value := range custom {
		if e.CustomData[key] = &value; value == "" {
			e.CustomData[key] = nil
		}
	}
	if err := e.Check(); err != nil {
		return e, &ExitError{Code: usageError, Text: Message(err)}
	}
	return e, nil
}

// Run changes the asset and prints it as the API shows it.
func (c *AssetSet) Run(env *Env) error {
	e, err := c.edit()
	if err != nil {
		return err
	}
	return c.run(env, on((*Admin).asset, c.Asset, func(ctx context.Context, admin *Admin, owner company.Company, id string) (
		answer, error) {
		changed, err := admin.Editor.EditAsset(ctx, owner.ID, id, e)
		return answer{changed.Public(), func(w io.Writer) {
			fmt.Fprintf(w, "%s has the tags %v and is assigned to %s.\n", changed.Identification, changed.Tags,
				orDash(changed.CustomData[asset.UserKey]))
		}}, err
	}))
}
