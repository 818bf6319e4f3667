package database

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"time"

	"github.com/musterhq/muster/internal/activity"
)

const headColumns = `h.company_id, h.first_seq, h.anchor, h.last_seq, h.hash, h.signature`

func scanHead(r row) (h activity.Head, err error) {
	err = r.Scan(&h.CompanyID, &h.First, &h.Anchor, &h.Last, &h.Hash, &h.Signature)
	return h, err
}

// lockHead returns a company's head, which nobody else moves until the
// transaction ends.
func lockHead(ctx context.Context, t *tx, companyID string) (activity.Head, error) {
	if _, err := t.exec(ctx, `INSERT INTO activity_heads (company_id, first_seq, anchor, last_seq, hash, signature)
		VALUES (?, 1, '', 0, '', '') ON CONFLICT (company_id) DO NOTHING`, companyID); err != nil {
		return activity.Head{}, err
	}
	return one(ctx, t, scanHead, `SELECT `+headColumns+` FROM activity_heads h WHERE h.company_id = ?`+t.lock(), companyID)
}

func saveHead(ctx context.Context, t *tx, h activity.Head, sign func([]byte) []byte) error {
	_, err := t.exec(ctx, `UPDATE activity_heads SET first_seq = ?, anchor = ?, last_seq = ?, hash = ?, signature = ? WHERE company_id = ?`,
		h.First, h.Anchor, h.Last, h.Hash, hex.EncodeToString(sign(h.Statement())), h.CompanyID)
	return err
}

// Unsealed implements activity.ChainStore.
func (db *DB) Unsealed(ctx context.Context) ([]string, error) {
	return list(ctx, db.read(), scanValue[string], `SELECT DISTINCT e.company_id FROM activity e WHERE e.seq = 0`)
}

// SealActivity implements activity.ChainStore.
func (db *DB) SealActivity(ctx context.Context, companyID string, limit int, sign func([]byte) []byte) (sealed int, err error) {
	err = db.write(ctx, func(ctx context.Context, t *tx) error {
		sealed = 0
		head, err := lockHead(ctx, t, companyID)
		if err != nil {
			return err
		}
		fresh, err := list(ctx, t, scanActivity, `SELECT `+readActivity+` FROM activity e
			WHERE e.company_id = ? AND e.seq = 0 ORDER BY e.at, e.id LIMIT ?`, companyID, limit)
		if err != nil || len(fresh) == 0 {
			return err
		}
		for _, e := range fresh {
			head.Last++
			e.Seq = head.Last
			head.Hash = e.Digest(head.Hash)
			if _, err := t.exec(ctx, `UPDATE activity SET seq = ?, hash = ? WHERE company_id = ? AND at = ? AND id = ?`,
				e.Seq, head.Hash, companyID, millis(e.At), e.ID); err != nil {
				return err
			}
		}
		sealed = len(fresh)
		return saveHead(ctx, t, head, sign)
	})
	return sealed, err
}

// WalkActivity implements activity.ChainStore.
func (db *DB) WalkActivity(ctx context.Context, companyID string, head func(activity.Head) error, entry func(activity.Entry) error) error {
	return db.snapshot(ctx, func(ctx context.Context, c conn) (err error) {
		h, err := one(ctx, c, scanHead, `SELECT `+headColumns+` FROM activity_heads h WHERE h.company_id = ?`, companyID)
		if errors.Is(err, sql.ErrNoRows) {
			h, err = activity.Head{CompanyID: companyID, First: 1}, nil
		}
		if err != nil {
			return err
		}
		if err := head(h); err != nil {
			return err
		}
		rows, err := c.query(ctx, `SELECT `+readActivity+` FROM activity e WHERE e.company_id = ? AND e.seq > 0 ORDER BY e.seq`, companyID)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, rows.Close()) }()
		for rows.Next() {
			e, err := scanActivity(rows)
			if err != nil {
				return err
			}
			if err := entry(e); err != nil {
				return err
			}
		}
		return rows.Err()
	})
}

// ForgetActivity implements activity.ChainStore.
func (db *DB) ForgetActivity(ctx context.Context, companyID string, before time.Time, limit int, sign func([]byte) []byte) (removed int, err error) {
	type link struct {
		seq, at int64
		hash    string
	}
	err = db.write(ctx, func(ctx context.Context, t *tx) error {
		removed = 0
		head, err := lockHead(ctx, t, companyID)
		if err != nil {
			return err
		}
		oldest, err := list(ctx, t, func(r row) (l link, err error) {
			err = r.Scan(&l.seq, &l.at, &l.hash)
			return l, err
		}, `SELECT e.seq, e.at, e.hash FROM activity e WHERE e.company_id = ? AND e.seq > 0 ORDER BY e.seq LIMIT ?`, companyID, limit)
		if err != nil {
			return err
		}
		for _, l := range oldest {
			if l.at >= millis(before) || l.seq != head.First {
				break // what is missing stays missing, for Verify to tell
			}
			head.First, head.Anchor = l.seq+1, l.hash
			removed++
		}
		if removed == 0 {
			return nil
		}
		if _, err := t.exec(ctx, `DELETE FROM activity WHERE company_id = ? AND seq > 0 AND seq < ?`, companyID, head.First); err != nil {
			return err
		}
		return saveHead(ctx, t, head, sign)
	})
	return removed, err
}

// ActivityLifetimes implements activity.ChainStore.
func (db *DB) ActivityLifetimes(ctx context.Context) (map[string]time.Duration, error) {
	all, err := db.Companies(ctx)
	lifetimes := make(map[string]time.Duration, len(all))
	for _, c := range all {
		lifetimes[c.ID] = c.KeepActivity
	}
	return lifetimes, err
}
