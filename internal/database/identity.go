package database

import (
	"context"
	"time"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/enrollment"
	"github.com/musterhq/muster/internal/fault"
)

// joinedBy says by what a device was recognized. The activity log shows it.
type joinedBy string

const (
	joinedAsNew    joinedBy = "a new device"
	joinedByGrant  joinedBy = "a token or a key of this asset"
	joinedByName   joinedBy = "its name at the channel"
	joinedByStable joinedBy = "its stable id"
	joinedBySerial joinedBy = "its serial number"
	joinedByMerge  joinedBy = "a merge"
)

// identify finds the asset that a joining device is, locked: the one that the
// request proved to be for, else by its previous names, by the channel's stable
// id, by serial number and brand. No id: none.
func identify(ctx context.Context, t *tx, o enrollment.Observation) (lockedAsset, joinedBy, error) {
	if o.AssetID != "" {
		h, err := granted(ctx, t, o)
		return h, joinedByGrant, err
	}
	for _, way := range []struct {
		by   joinedBy
		find func(context.Context, *tx, enrollment.Observation) ([]string, error)
		fits func(h lockedAsset, o enrollment.Observation) bool
	}{{joinedByName, byName, mayContinue}, {joinedByStable, byStableID, mayContinue}, {joinedBySerial, bySerial, fitsSerial}} {
		ids, err := way.find(ctx, t, o)
		if err != nil {
			return lockedAsset{}, "", err
		}
		for _, id := range ids {
			h, err := hold(ctx, t, id)
			if err != nil || way.fits(h, o) {
				return h, way.by, err
			}
		}
	}
	return lockedAsset{}, joinedAsNew, nil
}

// granted is the asset that a token was made for or a former key belongs to,
// unless a device has enrolled as that asset since.
func granted(ctx context.Context, t *tx, o enrollment.Observation) (lockedAsset, error) {
	h, err := hold(ctx, t, o.AssetID)
	switch {
	case err != nil:
		return h, err
	case h.companyID != o.CompanyID || h.epoch != o.AssetEpoch || !mayContinue(h, o):
		return lockedAsset{}, fault.New(fault.Refused, "the asset was enrolled again since")
	}
	return h, nil
}

// mayContinue reports whether a device of this management may go on as the
// asset: the management of a live asset never changes by an enrollment.
func mayContinue(h lockedAsset, o enrollment.Observation) bool {
	return !h.status.Enrolled() || h.management == string(o.Management)
}

// fitsSerial reports whether a serial number is enough to be the asset. It is a
// claim: printed on the box, and open to every device. It finds what is not
// managed. A live asset is joined by it only on the word of the platform, which
// read it from the device, and only if no stable id says otherwise.
func fitsSerial(h lockedAsset, o enrollment.Observation) bool {
	switch {
	case h.serialKey != asset.IdentityKey(o.SerialNumber) || h.brandKey != "" && h.brandKey != asset.IdentityKey(o.Brand):
		return false
	case h.stableID != "" && o.StableID != "" && h.stableID != o.StableID:
		return false
	case h.status.Enrolled():
		return o.Management == asset.Platform && h.management == string(asset.Platform) && o.StableID == ""
	}
	return true
}

// byName finds the asset that had the device's name, or one of its previous
// names, last.
func byName(ctx context.Context, t *tx, o enrollment.Observation) ([]string, error) {
	names := append([]string{o.Device}, o.Previous...)
	return list(ctx, t, scanValue[string], `SELECT asset_id FROM device_names WHERE company_id = ? AND name IN (`+marks(len(names))+`)
		AND asset_id <> '' ORDER BY observed_at DESC, name LIMIT 1`, append([]any{o.CompanyID}, anys(names)...)...)
}

func byStableID(ctx context.Context, t *tx, o enrollment.Observation) ([]string, error) {
	return list(ctx, t, scanValue[string], `SELECT id FROM assets WHERE company_id = ? AND stable_id = ? AND stable_id <> ''
		ORDER BY created_at, id LIMIT 1`, o.CompanyID, o.StableID)
}

// bySerial finds the assets with the device's serial number: those that were
// managed first, then those that were imported.
func bySerial(ctx context.Context, t *tx, o enrollment.Observation) ([]string, error) {
	serial := asset.IdentityKey(o.SerialNumber)
	if serial == "" {
		return nil, nil
	}
	return list(ctx, t, scanValue[string], `SELECT id FROM assets WHERE company_id = ? AND serial_key = ? AND serial_key <> ''
		ORDER BY CASE WHEN status = 'PENDING' THEN 1 ELSE 0 END, created_at, id LIMIT 20`, o.CompanyID, serial)
}

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
