package database

import (
	"context"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/database/engine"
)

const (
	firstHeadColumns = `h.company_id, h.first_seq, h.anchor, h.last_seq, h.hash, h.signature`
	headColumns      = firstHeadColumns + `, h.proved_from`
)

func headFields(h *activity.Head) []any { return append(firstHeadFields(h), &h.ProvedFrom) }

// firstHeadFields receives a head of the first version's tables.
func firstHeadFields(h *activity.Head) []any {
	return []any{&h.CompanyID, &h.First, &h.Anchor, &h.Last, &h.Hash, &h.Signature}
}

// beginChain gives a new company the head of its chain, number 0, signed where the
// keys are at hand. Else the service signs it.
func (db *DB) beginChain(ctx context.Context, c conn, companyID string) error {
	h := activity.Head{CompanyID: companyID, First: 1}
	if signer, ok := db.prover.(activity.Signer); ok {
		h.ProvedFrom = 1
		h.Signature = hex.EncodeToString(signer.SignStatement(h.Statement()))
	}
	return c.Exec(ctx, `INSERT INTO activity_heads (company_id, first_seq, anchor, last_seq, hash, signature, proved_from)
		VALUES (?, ?, '', 0, '', ?, ?)`, companyID, h.First, h.Signature, h.ProvedFrom)
}

// lockHead returns a company's head, which no other transaction moves until
// this one ends.
func lockHead(ctx context.Context, t *tx, companyID string) (activity.Head, error) {
	return findHead(ctx, t, companyID, t.lock())
}

// findHead returns a company's head; one that is missing is zero but for the
// company. Of one that is unsigned and has no number it also reports how old the entries are.
func findHead(ctx context.Context, c conn, companyID, lock string) (activity.Head, error) {
	h, err := one(ctx, c, into(headFields), `SELECT `+headColumns+` FROM activity_heads h WHERE h.company_id = ?`+lock, companyID)
	if errors.Is(err, engine.ErrNoRow) {
		return activity.Head{CompanyID: companyID}, nil
	}
	if err != nil || h.Signature != "" || h.Last > 0 {
		return h, err
	}
	kept, err := one(ctx, c, into(func(h *activity.Head) []any { return []any{at(&h.Oldest), &h.Sealed} }),
		`SELECT COALESCE((SELECT MIN(e.at) FROM activity e WHERE e.company_id = ?), 0),
			COALESCE((SELECT MAX(e.seq) FROM activity e WHERE e.company_id = ? AND e.seq > 0), 0)`, companyID, companyID)
	h.Oldest, h.Sealed = kept.Oldest, kept.Sealed
	return h, err
}

func saveHead(ctx context.Context, t *tx, h activity.Head, sign func([]byte) []byte) error {
	return t.Exec(ctx,
		`UPDATE activity_heads SET first_seq = ?, anchor = ?, last_seq = ?, hash = ?, proved_from = ?, signature = ? WHERE company_id = ?`,
		h.First, h.Anchor, h.Last, h.Hash, h.ProvedFrom, hex.EncodeToString(sign(h.Statement())), h.CompanyID)
}

// Unsealed implements activity.ChainStore.
func (db *DB) Unsealed(ctx context.Context) ([]string, error) {
	return list(ctx, db.read(), scanValue[string], `SELECT e.company_id FROM activity e WHERE e.seq = 0
		UNION SELECT h.company_id FROM activity_heads h WHERE h.signature = '' OR h.proved_from = 0`)
}

// Heads implements activity.ChainStore. They are read at one moment, without those that went
// with a company that is being deleted.
func (db *DB) Heads(ctx context.Context) (heads []activity.Head, err error) {
	err = db.engine.Snapshot(ctx, func(ctx context.Context, c conn) error {
		heads = nil
		all, err := listCompanies(ctx, c)
		for _, of := range all {
			head, err := findHead(ctx, c, of.ID, "")
			if err != nil {
				return err
			}
			if head.First > 0 || beingDeleted(ctx, c, of.ID) == nil {
				heads = append(heads, head)
			}
		}
		return err
	})
	return heads, err
}

// SealActivity implements activity.ChainStore.
func (db *DB) SealActivity(ctx context.Context, companyID string, limit int,
	seal activity.Seal) (head activity.Head, sealed int, err error) {
	err = db.write(ctx, func(ctx context.Context, t *tx) (err error) {
		sealed = 0
		head, err = lockHead(ctx, t, companyID)
		if err == nil {
			err = seal.Check(head)
		}
		if err != nil {
			return err
		}
		fresh, err := list(ctx, t, into(activityFields), `SELECT `+readActivity+` FROM activity e
			WHERE e.company_id = ? AND e.seq = 0 ORDER BY e.at, e.id LIMIT ?`, companyID, limit)
		if err != nil || len(fresh) == 0 && head.Signature != "" && head.ProvedFrom > 0 {
			return err
		}
		head.DemandProofs(fresh)
		links := make([]link, len(fresh))
		for i, e := range fresh {
			head.Extend(&e)
			if seal.Doubt != nil {
				seal.Doubt(head, e)
			}
			links[i] = link{millis(e.At), e.ID, e.Seq, head.Hash}
		}
		sealed = len(fresh)
		saveLinks(ctx, t, companyID, links)
		return saveHead(ctx, t, head, seal.Sign)
	})
	return head, sealed, err
}

// link is an entry's place in its company's chain.
type link struct {
	at   int64
	id   string
	seq  int64
	hash string
}

// linkBatch bounds the entries that one statement of saveLinks places.
const linkBatch = 64

// saveLinks gives unsealed entries their places. The values are compared in a way that makes no
// index of them: for many, SQLite would rather read the whole log of the company and look in that.
func saveLinks(ctx context.Context, t *tx, companyID string, links []link) {
	for batch := range slices.Chunk(links, linkBatch) {
		batch = padded(slices.Clone(batch))
		var args []any
		for _, p := range batch {
			args = append(args, p.at, p.id, p.seq, p.hash)
		}
		const values = `(CAST(? AS BIGINT), ?, CAST(? AS BIGINT), ?)`
		t.do(ctx, `UPDATE activity SET seq = p.column3, hash = p.column4
			FROM (VALUES `+values+strings.Repeat(", "+values, len(batch)-1)+`) p
			WHERE company_id = ? AND at = p.column1 + 0 AND id = p.column2 || ''`, append(args, companyID)...)
	}
}

// unsealBatch bounds the entries that one transaction of RestartActivity takes
// out of the chain.
const unsealBatch = 2000

// RestartActivity implements activity.ChainStore.
func (db *DB) RestartActivity(ctx context.Context, companyID string, after int64, e activity.Event, sign func([]byte) []byte) error {
	done, last := false, after
	for !done {
		err := db.write(ctx, func(ctx context.Context, t *tx) error {
			done = false
			head, err := lockHead(ctx, t, companyID)
			if err != nil {
				return err
			}
			highest := valueIn[int64](ctx, t,
				`SELECT COALESCE(MAX(e.seq), 0) FROM activity e WHERE e.company_id = ? AND e.seq > 0`, companyID)
			last = max(last, highest, head.Last)
			if highest > 0 {
				// A head with a number and no signature is broken: sealers add nothing to it until the end. They would
				// give places to the entries that this loop takes out, and it would never end.
				t.do(ctx, `UPDATE activity_heads SET signature = '', last_seq = ? WHERE company_id = ?`, last, companyID)
				return t.Exec(ctx, `UPDATE activity SET seq = 0, hash = '' WHERE company_id = ? AND seq > 0 AND seq > ?`, companyID,
					highest-unsealBatch)
			}
			done = true
			if head.First == 0 {
				t.check(db.beginChain(ctx, t, companyID))
			}
			there := valueIn[int64](ctx, t, `SELECT COUNT(*) FROM activity WHERE company_id = ?`, companyID)
			t.check(saveHead(ctx, t, activity.Head{CompanyID: companyID, First: last + 1, Last: last, ProvedFrom: last + there + 1},
				sign))
			return db.record(ctx, t, companyID, e)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// WalkActivity implements activity.ChainStore.
func (db *DB) WalkActivity(ctx context.Context, companyID string, head func(activity.Head) error, entry func(activity.Entry) error) error {
	return db.engine.Snapshot(ctx, func(ctx context.Context, c conn) (err error) {
		h, err := findHead(ctx, c, companyID, "")
		if err != nil {
			return err
		}
		if err := head(h); err != nil {
			return err
		}
		return engine.Each(ctx, c, into(activityFields), entry,
			`SELECT `+readActivity+` FROM activity e WHERE e.company_id = ? AND e.seq > 0 ORDER BY e.seq`, companyID)
	})
}

// ExportActivity implements activity.Store.
func (db *DB) ExportActivity(ctx context.Context, companyID string, since time.Time, entry func(activity.Entry) error,
	head func(h activity.Head, before string) error) error {
	return db.engine.Snapshot(ctx, func(ctx context.Context, c conn) error {
		h, err := findHead(ctx, c, companyID, "")
		if err != nil {
			return err
		}
		from, err := value[int64](ctx, c,
			`SELECT COALESCE(MIN(e.seq), 0) FROM activity e WHERE e.company_id = ? AND e.at >= ? AND e.seq > 0`, companyID, millis(since))
		if err != nil {
			return err
		}
		before := h.Hash // of nothing at all
		if from > 0 {
			before = h.Anchor
		} else {
			from = h.Last + 1
		}
		for _, part := range []struct {
			where string
			arg   int64
		}{{`e.seq = 0 AND e.at >= ? ORDER BY e.at DESC, e.id DESC`, millis(since)},
			{`e.seq >= ? AND e.seq > 0 ORDER BY e.seq DESC`, from}} {
			if err := engine.Each(ctx, c, into(exportedFields), entry, exportedActivity+` WHERE e.company_id = ? AND `+part.where,
				companyID, part.arg); err != nil {
				return err
			}
		}
		if from > h.First && from <= h.Last {
			if before, err = value[string](ctx, c, `SELECT hash FROM activity WHERE company_id = ? AND seq = ?`, companyID,
				from-1); errors.Is(err, engine.ErrNoRow) {
				err = nil // it is missing, which verifying reports
			}
		}
		if err != nil {
			return err
		}
		return head(h, before)
	})
}

const exportedActivity = `SELECT ` + readActivity + `, COALESCE(d.identification, '') FROM activity e
	LEFT JOIN assets d ON e.target_kind = 'ASSET' AND d.id = e.target_id AND d.company_id = e.company_id`

func exportedFields(e *activity.Entry) []any { return append(activityFields(e), &e.Device) }

// ActivityLifetimes implements activity.ChainStore.
func (db *DB) ActivityLifetimes(ctx context.Context) (map[string]time.Duration, error) {
	all, err := db.Companies(ctx)
	lifetimes := make(map[string]time.Duration, len(all))
	for _, c := range all {
		lifetimes[c.ID] = c.Settings.KeepActivity
	}
	return lifetimes, err
}
