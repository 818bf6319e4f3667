package database

import (
	"context"

	"github.com/musterhq/muster/internal/asset"
)

// noteApps keeps what a device says of its apps; nil: it says nothing of them,
// and what it said before stays; none: it no longer reports them.
func noteApps(ctx context.Context, t *tx, assetID string, apps []asset.App, at int64) error {
	switch {
	case apps == nil:
		return nil
	case len(apps) == 0:
		return forgetApps(ctx, t, assetID)
	}
	return t.Exec(ctx, `INSERT INTO asset_apps (asset_id, since, apps) VALUES (?, ?, ?)
		ON CONFLICT (asset_id) DO UPDATE SET since = excluded.since, apps = excluded.apps WHERE asset_apps.apps <> excluded.apps`,
		assetID, at, storable(encode(apps)))
}

func forgetApps(ctx context.Context, t *tx, assetID string) error {
	return t.Exec(ctx, `DELETE FROM asset_apps WHERE asset_id = ?`, assetID)
}

// InstalledApps returns the apps that a device reported; none if it reports
// none, or is not the company's.
func (db *DB) InstalledApps(ctx context.Context, companyID, assetID string) (asset.Inventory, error) {
	i, _, err := maybe(one(ctx, db.read(), into(func(i *asset.Inventory) []any { return []any{at(&i.Since), encoded{&i.Apps}} }),
		`SELECT p.since, p.apps FROM asset_apps p JOIN assets a ON a.id = p.asset_id WHERE p.asset_id = ? AND a.company_id = ?`,
		assetID, companyID))
	return i, err
}
