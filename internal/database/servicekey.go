package database

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/activity"
)

// MissingKeys says which of the service's keys the database needs and the key
// file does not hold.
type MissingKeys struct{ IDs []string }

func (e *MissingKeys) Error() string {
	return fmt.Sprintf("the key file lacks keys that the database names (%s)", strings.Join(e.IDs, ", "))
}

const neededKeys = `SELECT id FROM service_keys WHERE lost_at = 0 ORDER BY id`

// readKeys reads what shows whether a key file belongs to the database.
func (i *Inspection) readKeys(ctx context.Context, c conn, tables []string) (err error) {
	if slices.Contains(tables, "service_keys") {
		if i.Keys, err = list(ctx, c, scanValue[string], neededKeys); err != nil || len(i.Keys) > 0 {
			return err
		}
	}
	if slices.Contains(tables, "activity_heads") {
		i.Heads, err = list(ctx, c, into(firstHeadFields),
			`SELECT `+firstHeadColumns+` FROM activity_heads h WHERE h.signature <> '' ORDER BY h.company_id`)
	}
	return err
}

// ProveWith makes entries of the activity log proved from now on. It is for a program
// that alone uses db; AdmitKeys comes first.
func (db *DB) ProveWith(p activity.Prover) { db.prover = p }

// Lacks returns the keys that the database needs and that are not among ids.
func (i Inspection) Lacks(ids []string) error { return lacking(i.Keys, ids) }

func lacking(needed, ids []string) error {
	missing := slices.DeleteFunc(slices.Clone(needed), func(id string) bool { return slices.Contains(ids, id) })
	if len(missing) == 0 {
		return nil
	}
	return &MissingKeys{missing}
}

// Unsigned returns the heads that verify does not know.
func (i Inspection) Unsigned(verify func(activity.Head) bool) []activity.Head {
	return slices.DeleteFunc(slices.Clone(i.Heads), verify)
}

// AdmitKeys records the ids of a key file's keys, before any of them is used. A
// *MissingKeys error says that the database needs others, and nothing was
// recorded; with acceptLost these are no longer needed, and are returned.
func (db *DB) AdmitKeys(ctx context.Context, ids []string, acceptLost bool) ([]string, error) {
	return written(ctx, db, func(ctx context.Context, t *tx) (lost []string, err error) {
		// One key file at a time: which of two comes first decides.
		valueIn[int64](ctx, t, `SELECT schema_number FROM versions WHERE id = 1`+t.lock())
		needed := listed(ctx, t, scanValue[string], neededKeys)
		if missing, ok := errors.AsType[*MissingKeys](lacking(needed, ids)); ok {
			if lost = missing.IDs; !acceptLost {
				return lost, missing
			}
		}
		now := millis(db.now())
		for _, id := range lost {
			t.do(ctx, `UPDATE service_keys SET lost_at = ? WHERE id = ?`, now, id)
		}
		for _, id := range ids {
			if slices.Contains(needed, id) {
				continue
			}
			t.do(ctx, `INSERT INTO service_keys (id, first_seen_at, lost_at) VALUES (?, ?, 0)
				ON CONFLICT (id) DO UPDATE SET lost_at = 0`, id, now)
		}
		return lost, nil
	})
}
