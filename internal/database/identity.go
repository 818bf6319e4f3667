package database

import (
	"context"
	"database/sql"
	"errors"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/enrolment"
)

// identify finds the asset that a joining device is, and the newest
// observation that the asset's devices applied: by its previous names, by the
// channel's stable id, by brand and serial number; an asset that was imported
// by its serial number. An empty id: none.
func identify(ctx context.Context, t *tx, o enrolment.Observation) (id string, newest int64, err error) {
	for _, by := range []func(context.Context, *tx, enrolment.Observation) (string, error){byName, byStableID, bySerial} {
		id, err = by(ctx, t, o)
		if errors.Is(err, sql.ErrNoRows) {
			id, err = "", nil
		}
		if err != nil {
			return "", 0, err
		}
		if id != "" {
			newest, err = value[int64](ctx, t, `SELECT CAST(COALESCE(MAX(observed_at), 0) AS BIGINT) FROM device_names WHERE asset_id = ?`, id)
			return id, newest, err
		}
	}
	return "", 0, nil
}

// byName finds the asset that had the device's name, or one of its previous
// names, last.
func byName(ctx context.Context, t *tx, o enrolment.Observation) (string, error) {
	names := append([]string{o.Device}, o.Previous...)
	return value[string](ctx, t, `SELECT asset_id FROM device_names WHERE company_id = ? AND name IN (`+marks(len(names))+`)
		AND asset_id <> '' ORDER BY observed_at DESC, name LIMIT 1`, append([]any{o.CompanyID}, anys(names)...)...)
}

func byStableID(ctx context.Context, t *tx, o enrolment.Observation) (string, error) {
	return value[string](ctx, t, `SELECT id FROM assets WHERE company_id = ? AND stable_id = ? AND stable_id <> ''
		ORDER BY created_at, id LIMIT 1`, o.CompanyID, o.StableID)
}

// candidate is an asset with the serial number sought.
type candidate struct {
	id, brand, stableID string
	status              asset.Status
}

// bySerial finds the asset with the device's serial number. One that was
// managed before must have its brand too, and no stable id of either may say
// otherwise; one that was imported need not know the brand.
func bySerial(ctx context.Context, t *tx, o enrolment.Observation) (string, error) {
	serial, brand := identityKey(o.SerialNumber), identityKey(o.Brand)
	if serial == "" {
		return "", nil
	}
	all, err := list(ctx, t, func(r row) (c candidate, err error) {
		err = r.Scan(&c.id, &c.brand, &c.stableID, &c.status)
		return c, err
	}, `SELECT id, brand_key, stable_id, status FROM assets WHERE company_id = ? AND serial_key = ? AND serial_key <> ''
		ORDER BY created_at, id`, o.CompanyID, serial)
	if err != nil {
		return "", err
	}
	for _, c := range all {
		if c.status != asset.Pending && c.brand == brand && o.StableID == "" {
			return c.id, nil
		}
	}
	for _, c := range all {
		if c.status == asset.Pending && (c.brand == brand || c.brand == "" || brand == "") {
			return c.id, nil
		}
	}
	return "", nil
}
