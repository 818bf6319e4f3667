package database

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/policy"
)

// assetColumns are an asset's and its device's. The company's slug is asked
// for once a statement and the policy's name once a row that is returned, so a
// page costs one statement.
const assetColumns = `a.id, a.company_id, ` + slugColumn + `, a.status, a.identification,
	a.synced_at, a.created_at, a.custom_data, a.tags, a.specifications, a.policy_id,
	` + policyNameColumn + `, a.epoch, a.management, a.ownership, a.mode,
	a.device_name, a.applied_policy_id, a.applied_version, a.enrolled_at, ` + seenColumn + `, a.lost_mode,
	a.push_reachable, a.api_level, a.location, a.status_report, a.archived_status`

const (
	slugColumn       = `(SELECT slug FROM companies WHERE id = ?)`
	policyNameColumn = `(SELECT p.name FROM policies p WHERE p.id = a.policy_id)`
	seenColumn       = `(SELECT s.at FROM asset_contacts s WHERE s.asset_id = a.id)`
)

// assetRow collects an asset's columns.
type assetRow struct {
	asset                             asset.Asset
	device                            asset.Device
	custom, tags, specifications      string
	policyName                        *string
	appliedPolicy, location, statusOf string
	appliedVersion                    int
	archivedStatus                    asset.Status
}

func (r *assetRow) targets() []any {
	a, d := &r.asset, &r.device
	return []any{&a.ID, &a.CompanyID, &a.CompanySlug, &a.Status, &a.Identification,
		at(&a.SyncedAt), at(&a.CreatedAt), &r.custom, &r.tags, &r.specifications, &d.PolicyID,
		&r.policyName, &d.Epoch, &d.Management, &d.Ownership, &d.Mode,
		&d.Name, &r.appliedPolicy, &r.appliedVersion, at(&d.EnrolledAt), at(&d.LastSeenAt), &d.LostMode,
		&d.PushReachable, &d.APILevel, &r.location, &r.statusOf, &r.archivedStatus}
}

// result puts the columns together. The device is there while it is managed.
func (r *assetRow) result() (asset.Asset, error) {
	a, d := &r.asset, &r.device
	var errs [3]error
	a.CustomData, errs[0] = decodeMap(r.custom)
	a.Tags, errs[1] = decodeList(r.tags)
	a.Specifications, errs[2] = decodeMap(r.specifications)
	if err := errors.Join(errs[:]...); err != nil {
		return *a, fmt.Errorf("asset %s is damaged: %w", a.ID, err)
	}
	if a.Status == archived {
		a.Status, a.Archived = r.archivedStatus, true
	}
	if !a.Status.Enrolled() {
		return *a, nil
	}

	if r.policyName != nil {
		d.PolicyName = policy.ShownName(*r.policyName)
	}
	if r.appliedPolicy == d.PolicyID {
		d.PolicyApplied = r.appliedVersion
	}
	if r.statusOf != "" {
		d.StatusReport = json.RawMessage(r.statusOf)
	}
	a.Device = d
	return *a, decode(r.location, &d.Location)
}

func scanAsset(r row) (asset.Asset, error) {
	var a assetRow
	if err := r.Scan(a.targets()...); err != nil {
		return asset.Asset{}, err
	}
	return a.result()
}

// Asset returns an asset of the company.
func (db *DB) Asset(ctx context.Context, companyID, id string) (asset.Asset, error) {
	if a, ok := access.Take(ctx, func(a asset.Asset) bool { return a.CompanyID == companyID && a.ID == id }); ok {
		return a, nil
	}
	return findAsset(ctx, db.read(), companyID, id)
}

func findAsset(ctx context.Context, c conn, companyID, id string) (asset.Asset, error) {
	return find(ctx, c, "asset", scanAsset, `SELECT `+assetColumns+` FROM assets a WHERE a.id = ? AND a.company_id = ?`,
		companyID, id, companyID)
}

// importRows is how many assets one statement adds.
const importRows = 100

// ImportAssets adds assets as PENDING, all or none; their devices are not
// looked at. An identification that is given stays when the device enrolls.
func (db *DB) ImportAssets(ctx context.Context, assets []asset.Asset) error {
	err := db.write(ctx, func(ctx context.Context, t *tx) error {
		counts := counts{}
		for some := range slices.Chunk(assets, importRows) {
			t.check(insertAssets(ctx, t, some, counts))
		}
		counts.save(ctx, t)
		if len(assets) == 0 {
			return nil
		}
		return db.record(ctx, t, assets[0].CompanyID, activity.Event{Action: activity.AssetsImported,
			Changes: []activity.Change{{Field: "assets", After: strconv.Itoa(len(assets))}}})
	})
	return taken(err, "an asset with one of these ids exists already")
}

func insertAssets(ctx context.Context, t *tx, assets []asset.Asset, counts counts) error {
	const columns = 16
	args, contacts, changes := make([]any, 0, columns*len(assets)), make([]any, 0, 3*len(assets)), &termChanges{}
	for _, a := range assets {
		row := Searchable{Identification: a.Identification, Specifications: encodeSome(a.Specifications), Tags: encodeSome(a.Tags),
			Custom: encodeSome(a.CustomData), Status: asset.Pending}
		found, err := row.Findable()
		t.check(err)
		changes.change(a.CompanyID, a.ID, "", found.Terms)
		args = append(args, a.ID, a.CompanyID, string(asset.Pending), a.Identification, millis(a.SyncedAt), millis(a.CreatedAt),
			a.Identification != "", asset.IdentityKey(a.Specifications["serialNumber"]), asset.IdentityKey(a.Specifications["brand"]),
			row.Custom, row.Tags, row.Specifications, found.Terms, found.patch, found.battery, found.compliant)
		contacts = append(contacts, a.ID, a.CompanyID, string(asset.Pending))
		counts.add(a.CompanyID, asset.Pending, "", 1)
	}
	t.do(ctx, `INSERT INTO assets (id, company_id, status, identification, synced_at, created_at,
			named, serial_key, brand_key, custom_data, tags, specifications, `+keptColumns+`)
		VALUES `+strings.TrimSuffix(strings.Repeat("("+marks(columns)+"), ", len(assets)), ", "), args...)
	// None of them was in contact.
	t.do(ctx, `INSERT INTO asset_contacts (asset_id, company_id, status, policy_id, at) VALUES `+
		strings.TrimSuffix(strings.Repeat(`(?, ?, ?, '', 0), `, len(assets)), ", "), contacts...)
	changes.save(ctx, t)
	return nil
}

// encodeSome is a map or a list as JSON; an empty one is an empty text.
func encodeSome[T map[string]string | []string](some T) string {
	if len(some) == 0 {
		return ""
	}
	return encode(some)
}
