package database

import (
	"context"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/fault"
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
	return t.exec(ctx, `INSERT INTO asset_apps (asset_id, since, apps) VALUES (?, ?, ?)
		ON CONFLICT (asset_id) DO UPDATE SET since = excluded.since, apps = excluded.apps WHERE asset_apps.apps <> excluded.apps`,
		assetID, at, storable(encode(apps)))
}

func forgetApps(ctx context.Context, t *tx, assetID string) error {
	return t.exec(ctx, `DELETE FROM asset_apps WHERE asset_id = ?`, assetID)
}

// InstalledApps returns the apps that a device reported; none if it reports
// none, or is not the company's.
func (db *DB) InstalledApps(ctx context.Context, companyID, assetID string) (asset.Inventory, error) {
	i, err := one(ctx, db.read(), func(r row) (i asset.Inventory, err error) {
		var since int64
		var apps string
		if err = r.Scan(&since, &apps); err == nil {
			i.Since, err = instant(since), decode(apps, &i.Apps)
		}
		return i, err
	}, `SELECT p.since, p.apps FROM asset_apps p JOIN assets a ON a.id = p.asset_id WHERE p.asset_id = ? AND a.company_id = ?`, assetID, companyID)
	if i, err = found(i, err, "app"); fault.CodeOf(err) == fault.NotFound {
		return asset.Inventory{}, nil
	}
	return i, err
}
