package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/phrase"
	"github.com/musterhq/muster/internal/resource"
)

// assetsOf are assets of a company, which are changed all or none.
type assetsOf struct {
	OfCompany
	Assets []string `arg:"" name:"asset" help:"The assets' names, ids or path names."`
}

// AssetArchive puts assets away.
type AssetArchive struct{ assetsOf }

// AssetRestore takes archived assets back.
type AssetRestore struct{ assetsOf }

type archivedView struct {
	Assets []string `json:"assets"`
}

// Run archives.
func (c *AssetArchive) Run(env *Env) error { return c.put(env, true, "Archived") }

// Run restores.
func (c *AssetRestore) Run(env *Env) error { return c.put(env, false, "Restored") }

// found are the ids of the assets.
func (c *assetsOf) found(ctx context.Context, admin *Admin, owner company.Company) (ids []string, view archivedView, err error) {
	for _, ref := range c.Assets {
		id, err := admin.asset(ctx, owner, ref)
		if err != nil {
			return nil, view, err
		}
		ids, view.Assets = append(ids, id), append(view.Assets, resource.Of(owner.Slug, resource.Assets, id))
	}
	return ids, view, nil
}

func (c *assetsOf) put(env *Env, archive bool, done string) error {
	return c.run(env, func(ctx context.Context, admin *Admin, owner company.Company) (answer, error) {
		ids, view, err := c.found(ctx, admin, owner)
		if err != nil {
			return answer{}, err
		}
		return answer{view, func(w io.Writer) {
			fmt.Fprintf(w, "%s %s.\n", done, phrase.Count(len(ids), "asset", "assets"))
		}}, admin.Archiver.ArchiveAssets(ctx, owner.ID, ids, archive)
	})
}
