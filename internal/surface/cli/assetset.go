package cli

import (
	"context"
	"maps"
	"slices"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/phrase"
	"github.com/musterhq/muster/internal/resource"
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
	Data      map[string]string `name:"data" mapsep:"none" placeholder:"KEY=VALUE" help:"Other custom data; an empty value removes the key."`
}

// edit is what the flags say, by the rules of the API.
func (c *AssetSet) edit() (asset.Edit, error) {
	e := asset.Edit{Identification: c.Name, AddTags: c.AddTag, DropTags: c.RemoveTag, CustomData: map[string]*string{}}
	if c.Tag != nil {
		e.Tags = slices.DeleteFunc(append([]string{}, c.Tag...), func(tag string) bool { return tag == "" })
	}
	custom := map[string]string{}
	maps.Copy(custom, c.Data)
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
		return e, &ExitError{Code: ExitUsage, Text: Message(err)}
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
		return answerf(changed.Public(), "%s has the tags %v and is assigned to %s.\n", changed.Identification, changed.Tags,
			orDash(changed.CustomData[asset.UserKey])), err
	}))
}

// assetsOf are assets of a company, which are changed all or none.
type assetsOf struct {
	OfCompany
	Assets []string `arg:"" name:"asset" help:"The assets' names, ids or path names."`
}

// AssetArchive puts assets away.
type AssetArchive struct{ assetsOf }

// AssetRestore takes archived assets back.
type AssetRestore struct{ assetsOf }

// Run archives.
func (c *AssetArchive) Run(env *Env) error { return c.put(env, true, "Archived") }

// Run restores.
func (c *AssetRestore) Run(env *Env) error { return c.put(env, false, "Restored") }

// found are the ids of the assets, and the JSON that names them.
func (c *assetsOf) found(ctx context.Context, admin *Admin, owner company.Company) (ids []string, view map[string][]string, err error) {
	var names []string
	for _, ref := range c.Assets {
		id, err := admin.asset(ctx, owner, ref)
		if err != nil {
			return nil, nil, err
		}
		ids, names = append(ids, id), append(names, resource.Of(owner.Slug, resource.Assets, id))
	}
	return ids, map[string][]string{"assets": names}, nil
}

func (c *assetsOf) put(env *Env, archive bool, done string) error {
	return c.run(env, func(ctx context.Context, admin *Admin, owner company.Company) (answer, error) {
		ids, view, err := c.found(ctx, admin, owner)
		if err != nil {
			return answer{}, err
		}
		err = admin.Editor.ArchiveAssets(ctx, owner.ID, ids, archive)
		return answerf(view, "%s %s.\n", done, phrase.Count(len(ids), "asset", "assets")), err
	})
}
