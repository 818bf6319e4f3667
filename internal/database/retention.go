package database

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/company"
)

const (
	// retainEvery is how long after a deletion of what is old the next begins.
	retainEvery = 24 * time.Hour
	// retainLease is how long a deletion that stopped half-way is left to the one who began it.
	retainLease = 15 * time.Minute
	// retainRows bounds the rows that one transaction of a deletion removes, so that no
	// request waits long for it.
	retainRows = 100
	// retainAssets is how many assets are looked at for old places at once.
	retainAssets = 500
)

// retention is what is due in one company.
type retention struct {
	companyID, name  string
	commands, places time.Duration // how long they are kept
	next             int64         // as it was read; -1: the notice is not given yet
}

func retentionFields(r *retention) []any {
	return []any{&r.companyID, &r.name, (*duration)(&r.commands), (*duration)(&r.places), &r.next}
}

// Retain deletes the commands and places that companies keep no longer, in small
// transactions. A company that was there before an upgrade has an entry in its activity log
// first, and 30 days. asOf is the time by whose age they are deleted: see AgedBy. Run it every
// few minutes; several replicas may: one does a company.
func (db *DB) Retain(ctx context.Context, asOf time.Time) error {
	due, err := list(ctx, db.read(), into(retentionFields), `SELECT c.id, c.name, c.keep_commands, c.keep_places, COALESCE(r.next_at, 0)
		FROM companies c LEFT JOIN retentions r ON r.company_id = c.id WHERE COALESCE(r.next_at, 0) <= ? ORDER BY c.id`, millis(db.now()))
	if err != nil {
		return err
	}
	for _, r := range due {
		if err := db.retain(ctx, r, asOf); err != nil {
			return fmt.Errorf("cannot delete what the company %s keeps no longer: %w", r.name, err)
		}
	}
	return nil
}

func (db *DB) retain(ctx context.Context, r retention, asOf time.Time) error {
	taken, err := db.takeRetention(ctx, r)
	if err != nil || !taken || r.next < 0 {
		return err
	}
	if err := db.retainCommands(ctx, r, millis(asOf.Add(-r.commands))); err != nil {
		return err
	}
	if err := db.retainPlaces(ctx, r, millis(asOf.Add(-r.places))); err != nil {
		return err
	}
	return db.endRetention(ctx, r)
}

// takeRetention takes a company's deletion, unless another replica did, or gives the
// notice of the first one.
func (db *DB) takeRetention(ctx context.Context, r retention) (bool, error) {
	now := db.now()
	until := now.Add(retainLease)
	if r.next < 0 {
		until = now.Add(company.RetentionNotice)
	}
	return written(ctx, db, func(ctx context.Context, t *tx) (bool, error) {
		n := t.count(ctx, `INSERT INTO retentions (company_id, next_at, commands, places) VALUES (?, ?, 0, 0)
			ON CONFLICT (company_id) DO UPDATE SET next_at = excluded.next_at WHERE retentions.next_at = ?`, r.companyID,
			millis(until), r.next)
		if n == 0 || r.next >= 0 {
			return n > 0, nil
		}
		return true, db.recordOf(ctx, t, r.of(), activity.RetentionAnnounced,
			activity.Change{Field: "keepCommands", After: span(r.commands)}, activity.Change{Field: "keepPlaces", After: span(r.places)},
			activity.Change{Field: "from", After: until.UTC().Format(time.RFC3339)})
	})
}

func (r retention) of() company.Company { return company.Company{ID: r.companyID, Name: r.name} }

// endRetention records what was deleted, and says when the next deletion begins.
func (db *DB) endRetention(ctx context.Context, r retention) error {
	return db.write(ctx, func(ctx context.Context, t *tx) error {
		commands, places, err := pair[int64, int64](ctx, t,
			`SELECT commands, places FROM retentions WHERE company_id = ?`+t.lock(), r.companyID)
		t.check(err)
		if err := t.Exec(ctx, `UPDATE retentions SET next_at = ?, commands = 0, places = 0 WHERE company_id = ?`,
			millis(db.now().Add(retainEvery)), r.companyID); err != nil || commands+places == 0 {
			return err
		}
		return db.recordOf(ctx, t, r.of(), activity.RetentionApplied,
			activity.Change{Field: "commands", Before: strconv.FormatInt(commands, 10), After: "0"},
			activity.Change{Field: "places", Before: strconv.FormatInt(places, 10), After: "0"})
	})
}

// retainAgain makes a deletion due at once, unless the notice of the first one still runs.
func retainAgain(ctx context.Context, t *tx, companyID string) error {
	now := t.db.now()
	return t.Exec(ctx, `UPDATE retentions SET next_at = ? WHERE company_id = ? AND next_at > ? AND next_at <= ?`,
		millis(now), companyID, millis(now), millis(now.Add(retainEvery)))
}

// oldCommands are commands that may go: none that is open or UNCONFIRMED, and none that a
// device's log, a delivery or a job still needs. An open authorization has no command yet,
// and the answers to repetitions live for less than company.MinKeep.
const oldCommands = `SELECT c.id, c.created_at FROM commands c WHERE c.company_id = ? AND c.created_at < ? AND (c.created_at, c.id) > (?, ?)
	AND c.state NOT IN ('PREPARED', 'SENT', 'UNCONFIRMED')
	AND NOT EXISTS (SELECT 1 FROM device_logs l WHERE l.command_id = c.id)
	AND NOT EXISTS (SELECT 1 FROM agent_deliveries v WHERE v.command_id = c.id)
	AND (c.idempotency_ref NOT LIKE 'job:%' OR NOT EXISTS (SELECT 1 FROM jobs j WHERE j.id = substr(c.idempotency_ref, 5, 26)))
	ORDER BY c.created_at, c.id LIMIT ?`

// agedRow is a row by its id and its time.
type agedRow struct {
	id string
	at int64
}

func agedFields(r *agedRow) []any { return []any{&r.id, &r.at} }

// idsOf are the ids of at most retainRows rows, repeated, so that there is one statement
// for any number of them.
func idsOf(rows []agedRow) []any {
	ids := make([]any, retainRows)
	for i, row := range filled(rows, retainRows) {
		ids[i] = row.id
	}
	return ids
}

func (db *DB) retainCommands(ctx context.Context, r retention, before int64) error {
	for last := (agedRow{at: -1 << 62}); ; {
		old, err := list(ctx, db.read(), into(agedFields), oldCommands, r.companyID, before, last.at, last.id, retainRows)
		if err != nil || len(old) == 0 {
			return err
		}
		last = old[len(old)-1]
		ids := idsOf(old)
		if err := db.deleteOld(ctx, r.companyID, "commands", func(ctx context.Context, t *tx) int64 {
			for _, table := range []string{"command_polls", "command_cancels"} {
				t.do(ctx, `DELETE FROM `+table+` WHERE command_id IN (`+marks(len(ids))+`)`, ids...)
			}
			return t.count(ctx, `DELETE FROM commands WHERE id IN (`+marks(len(ids))+
				`) AND state NOT IN ('PREPARED', 'SENT', 'UNCONFIRMED')`, ids...)
		}); err != nil {
			return err
		}
	}
}

// deleteOld removes rows in one transaction that the machine's power cut may undo, counts
// them, and keeps the deletion for this replica.
func (db *DB) deleteOld(ctx context.Context, companyID, counted string, remove func(ctx context.Context, t *tx) int64) error {
	return db.writeRelaxed(ctx, func(ctx context.Context, t *tx) error {
		n := remove(ctx, t)
		return t.Exec(ctx, `UPDATE retentions SET `+counted+` = `+counted+` + ?, next_at = ? WHERE company_id = ?`,
			n, millis(db.now().Add(retainLease)), companyID)
	})
}

// retainPlaces deletes old places, and the last known one of an asset of which none remains.
func (db *DB) retainPlaces(ctx context.Context, r retention, before int64) error {
	type listed struct{ status, id string }
	for last := (listed{}); ; {
		found, err := list(ctx, db.read(), into(func(l *listed) []any { return []any{&l.status, &l.id} }),
			`SELECT a.status, a.id FROM assets a WHERE a.company_id = ? AND (a.status, a.id) > (?, ?) ORDER BY a.status, a.id LIMIT ?`,
			r.companyID, last.status, last.id, retainAssets)
		if err != nil || len(found) == 0 {
			return err
		}
		last = found[len(found)-1]
		page := make([]any, retainAssets) // always as many, so that there is one statement
		for i, a := range filled(found, retainAssets) {
			page[i] = a.id
		}
		for more := true; more; {
			if more, err = db.retainPlacesOf(ctx, r, page, before); err != nil {
				return err
			}
		}
		if err := db.retainLocations(ctx, r, page, before); err != nil {
			return err
		}
	}
}

// retainLocations deletes old last known places of assets that have no other: before schema 48
// a companion's report left no place, and a merge left them with the asset that has no device.
func (db *DB) retainLocations(ctx context.Context, r retention, assets []any, before int64) error {
	all, err := list(ctx, db.read(), scanLocated, `SELECT id, location FROM assets
		WHERE company_id = ? AND id IN (`+marks(len(assets))+`) AND location <> ''
		AND NOT EXISTS (SELECT 1 FROM asset_places p WHERE p.asset_id = assets.id)`, append([]any{r.companyID}, assets...)...)
	if err != nil {
		return err
	}
	old := slices.DeleteFunc(all, func(l located) bool { return l.at >= before })
	for chunk := range slices.Chunk(old, retainRows) {
		if err := db.deleteOld(ctx, r.companyID, "places", func(ctx context.Context, t *tx) (deleted int64) {
			for _, l := range chunk {
				// A place that was reported since the list was read stays.
				deleted += t.count(ctx, `UPDATE assets SET location = '' WHERE id = ? AND company_id = ? AND location = ?`,
					l.id, r.companyID, l.text)
			}
			return deleted
		}); err != nil {
			return err
		}
	}
	return nil
}

// located is an asset with its last known place, as it is kept, and the time of it.
type located struct {
	id, text string
	at       int64
}

func scanLocated(r row) (l located, err error) {
	if err := r.Scan(&l.id, &l.text); err != nil {
		return l, err
	}
	var of asset.Location
	err = decode(l.text, &of)
	l.at = millis(of.ReportedAt)
	return l, err
}

// retainPlacesOf deletes a part of the old places of some assets.
func (db *DB) retainPlacesOf(ctx context.Context, r retention, assets []any, before int64) (more bool, err error) {
	const places = `SELECT p.asset_id, p.reported_at FROM asset_places p WHERE p.asset_id IN (`
	found, args := places+marks(len(assets))+`) AND p.reported_at < ? ORDER BY p.asset_id, p.reported_at LIMIT ?`,
		append(slices.Clone(assets), before, retainRows)
	old, err := list(ctx, db.read(), into(agedFields), found, args...)
	if err != nil || len(old) == 0 {
		return false, err
	}
	ids := idsOf(old)
	return len(old) == retainRows, db.deleteOld(ctx, r.companyID, "places", func(ctx context.Context, t *tx) int64 {
		n := t.count(ctx, `DELETE FROM asset_places WHERE (asset_id, reported_at) IN (`+found+`)`, args...)
		lone := ` WHERE id IN (` + marks(len(ids)) + `) AND location <> ''
			AND NOT EXISTS (SELECT 1 FROM asset_places p WHERE p.asset_id = assets.id)`
		// The second statement sees what was reported while the first one waited.
		if held := listed(ctx, t, scanValue[string], `SELECT id FROM assets`+lone+` ORDER BY id`+t.lock(), ids...); len(held) > 0 {
			t.do(ctx, `UPDATE assets SET location = ''`+lone, ids...)
		}
		return n
	})
}
