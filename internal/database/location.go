package database

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/fault"
)

// Places are kept as whole numbers, which both engines compare alike.
const (
	perDegree = 1e6
	perMetre  = 10
)

// notePlace remembers where a device was, and forgets its oldest places that are too many: a device says
// by itself when it was where. What is long ago is deleted by Retain.
func notePlace(ctx context.Context, t *tx, assetID string, l asset.Location) {
	t.do(ctx, `INSERT INTO asset_places (asset_id, reported_at, latitude, longitude, accuracy) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (asset_id, reported_at) DO NOTHING`, assetID, millis(l.ReportedAt),
		int64(math.Round(l.Latitude*perDegree)), int64(math.Round(l.Longitude*perDegree)), int64(math.Round(l.AccuracyMeters*perMetre)))
	t.do(ctx, `DELETE FROM asset_places WHERE asset_id = ? AND reported_at IN (SELECT reported_at FROM asset_places WHERE asset_id = ?
		ORDER BY reported_at DESC LIMIT 1000 OFFSET ?)`, assetID, assetID, asset.MaxPlaces)
}

// Trail implements asset.Overview.
func (db *DB) Trail(ctx context.Context, companyID, assetID string, since time.Time, limit int) ([]asset.Location, error) {
	places, err := list(ctx, db.read(), func(r row) (l asset.Location, err error) {
		var at, latitude, longitude, accuracy int64
		err = r.Scan(&at, &latitude, &longitude, &accuracy)
		l = asset.Location{Latitude: float64(latitude) / perDegree, Longitude: float64(longitude) / perDegree,
			AccuracyMeters: float64(accuracy) / perMetre, ReportedAt: instant(at)}
		return l, err
	}, `SELECT p.reported_at, p.latitude, p.longitude, p.accuracy FROM asset_places p JOIN assets a ON a.id = p.asset_id
		WHERE p.asset_id = ? AND a.company_id = ? AND p.reported_at >= ? ORDER BY p.reported_at DESC LIMIT ?`, assetID, companyID,
		millis(since), limit)
	slices.Reverse(places)
	return places, err
}

// Located implements asset.Overview.
func (db *DB) Located(ctx context.Context, f asset.Filter, limit int) ([]asset.Place, error) {
	where, policies := ofPolicies(`policy_id`, onlyPolicies(f))
	return list(ctx, db.read(), into(func(p *asset.Place) []any { return []any{&p.ID, &p.Identification, encoded{&p.Location}} }),
		`SELECT id, identification, location FROM assets WHERE company_id = ? AND location <> ''
		AND status IN ('ACTIVE', 'INACTIVE', 'SYNCHRONIZING')`+where+` ORDER BY synced_at DESC, id LIMIT ?`,
		slices.Concat([]any{f.CompanyID}, policies, []any{limit})...)
}

const viewColumns = `id, company_id, user_id, name, query, shared, created_at`

func viewFields(v *asset.SavedView) []any {
	return []any{&v.ID, &v.CompanyID, &v.UserID, &v.Name, &v.Query, &v.Shared, at(&v.CreatedAt)}
}

// SavedViews implements asset.Views.
func (db *DB) SavedViews(ctx context.Context, companyID, userID string) ([]asset.SavedView, error) {
	return list(ctx, db.read(), into(viewFields), `SELECT `+viewColumns+` FROM saved_views
		WHERE company_id = ? AND (shared OR user_id = ?) ORDER BY name, id LIMIT ?`, companyID, userID, asset.MaxViews)
}

// SaveView implements asset.Views.
func (db *DB) SaveView(ctx context.Context, v asset.SavedView) error {
	return db.write(ctx, func(ctx context.Context, t *tx) error {
		t.check(holdCompany(ctx, t, v.CompanyID))
		there, err := one(ctx, t, into(func(n *struct{ all, own int }) []any { return []any{&n.all, &n.own} }),
			`SELECT COUNT(*), COALESCE(SUM(CASE WHEN user_id = ? THEN 1 ELSE 0 END), 0) FROM saved_views WHERE company_id = ?`,
			v.UserID, v.CompanyID)
		t.check(err)
		switch {
		case there.own >= asset.MaxUserViews:
			return fault.New(fault.Refused, "you have %d views: remove one first", there.own)
		case there.all >= asset.MaxViews:
			return fault.New(fault.Refused, "the company has %d views: remove one first, or ask an administrator to remove a shared one",
				there.all)
		}
		return t.Insert(ctx, "saved_views", viewColumns, viewFields(&v))
	})
}

// DropView implements asset.Views.
func (db *DB) DropView(ctx context.Context, companyID, userID, id string, shared bool) error {
	return db.exec(ctx, `DELETE FROM saved_views WHERE id = ? AND company_id = ? AND (user_id = ? OR shared AND ?)`, id, companyID, userID,
		shared)
}
