package database

import "context"

// AssetsNamed returns the ids of a company's assets with an identification, at most limit.
func (db *DB) AssetsNamed(ctx context.Context, companyID, identification string, limit int) ([]string, error) {
	return list(ctx, db.read(), scanValue[string], `SELECT id FROM assets WHERE company_id = ? AND identification = ?
		AND status IN ('PENDING', 'SYNCHRONIZING', 'ACTIVE', 'INACTIVE', 'DELETED', 'ARCHIVED') ORDER BY id LIMIT ?`, companyID, storable(identification), limit)
}
