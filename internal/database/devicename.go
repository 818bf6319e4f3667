package database

import (
	"context"
	"time"
)

// bury marks a device's name as ended, so that late reports of the device do not enroll it again.
func bury(ctx context.Context, t *tx, companyID, name, assetID string, at time.Time) error {
	return t.Exec(ctx, `INSERT INTO device_names (company_id, name, asset_id, observed_at, ended) VALUES (?, ?, ?, ?, TRUE)
		ON CONFLICT (company_id, name) DO UPDATE SET ended = TRUE, asset_id = excluded.asset_id,
			observed_at = CASE WHEN device_names.observed_at > excluded.observed_at
				THEN device_names.observed_at ELSE excluded.observed_at END`,
		companyID, name, assetID, millis(at))
}

// nameRow is a row of device_names.
type nameRow struct {
	assetID  string
	observed int64 // the time of the device's latest observation, in Unix milliseconds; 0: none
	ended    bool  // see bury
}

// lockName reads and locks the row of a device's name; false: there is none. It reads a time after latest,
// which a wrong clock wrote, as 0.
func lockName(ctx context.Context, t *tx, companyID, name string, latest int64) (nameRow, bool, error) {
	return maybe(one(ctx, t, into(func(n *nameRow) []any { return []any{&n.assetID, &n.observed, &n.ended} }),
		`SELECT asset_id, CASE WHEN observed_at <= ? THEN observed_at ELSE 0 END, ended FROM device_names
		WHERE company_id = ? AND name = ?`+t.lock(), latest, companyID, name))
}

// setName makes name the name of the asset's managed device.
func setName(ctx context.Context, t *tx, companyID, name, assetID string, observed int64) error {
	return t.Exec(ctx, `INSERT INTO device_names (company_id, name, asset_id, observed_at, ended) VALUES (?, ?, ?, ?, FALSE)
		ON CONFLICT (company_id, name) DO UPDATE SET asset_id = excluded.asset_id, observed_at = excluded.observed_at, ended = FALSE`,
		companyID, name, assetID, observed)
}
