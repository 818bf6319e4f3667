package database

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// termChanges are changes of asset_terms that a transaction makes.
type termChanges struct{ added, dropped []termRow }

// termRow is a row of asset_terms.
type termRow struct{ companyID, term, assetID string }

// change follows a change of an asset's search_terms.
func (c *termChanges) change(companyID, assetID, before, after string) {
	if before == after {
		return
	}
	old, now := splitTerms(before), splitTerms(after)
	for _, term := range old {
		if !slices.Contains(now, term) {
			c.dropped = append(c.dropped, termRow{companyID, term, assetID})
		}
	}
	for _, term := range now {
		if !slices.Contains(old, term) {
			c.added = append(c.added, termRow{companyID, term, assetID})
		}
	}
}

func splitTerms(text string) []string {
	if text = strings.Trim(text, "\n"); text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// save makes the changes. Rows have an order, so that transactions do not lock
// each other out.
func (c *termChanges) save(ctx context.Context, t *tx) {
	for _, r := range c.dropped {
		t.do(ctx, `DELETE FROM asset_terms WHERE company_id = ? AND term = ? AND asset_id = ?`,
			r.companyID, r.term, r.assetID)
	}
	slices.SortFunc(c.added, func(a, b termRow) int {
		return strings.Compare(a.companyID+"\n"+a.term+"\n"+a.assetID, b.companyID+"\n"+b.term+"\n"+b.assetID)
	})
	for some := range slices.Chunk(c.added, manyTerms) {
		insertTerms(ctx, t, some)
	}
}

// fewTerms and manyTerms are how many rows one statement adds: two texts to
// prepare. What is missing is filled by repeating the last row.
const fewTerms, manyTerms = 12, 200

func insertTerms(ctx context.Context, t *tx, rows []termRow) {
	size := fewTerms
	if len(rows) > fewTerms {
		size = manyTerms
	}
	args := make([]any, 0, 3*size)
	for _, r := range filled(rows, size) {
		args = append(args, r.companyID, r.term, r.assetID)
	}
	t.do(ctx, `INSERT INTO asset_terms (company_id, term, asset_id)
		VALUES `+strings.TrimSuffix(strings.Repeat("(?, ?, ?), ", size), ", ")+` ON CONFLICT DO NOTHING`, args...)
}

// indexRows is how many assets one transaction indexes.
const indexRows = 500

// indexAssets indexes the assets that were kept before there was an index, or
// under other rules. Replicas that start together share the work.
func (db *DB) indexAssets(ctx context.Context) error {
	for {
		n := 0
		err := db.writeRelaxed(ctx, func(ctx context.Context, t *tx) (err error) {
			n, err = indexSome(ctx, t)
			return err
		})
		if err != nil {
			return fmt.Errorf("cannot index the assets for searching: %w", err)
		}
		if n == 0 {
			return nil
		}
	}
}

// keptColumns are those of Findable.
const keptColumns = `search_terms, patch, battery, compliant`

// unindexed is an asset that is not indexed.
type unindexed struct {
	id, companyID string
	Searchable
}

func indexSome(ctx context.Context, t *tx) (int, error) {
	all := listed(ctx, t, into(func(a *unindexed) []any {
		return []any{&a.id, &a.companyID, &a.Identification, &a.Specifications, &a.Tags, &a.Custom, &a.Status, &a.Management, &a.Reported}
	}), `SELECT id, company_id, identification, specifications, tags, custom_data, status, management, status_report
		FROM assets WHERE search_terms = '' ORDER BY id LIMIT ?`+t.skipLocked(), indexRows)
	changes := &termChanges{}
	for _, a := range all {
		found, err := a.Findable()
		t.check(err)
		t.do(ctx, `UPDATE assets SET (`+keptColumns+`) = (?, ?, ?, ?) WHERE id = ?`,
			found.Terms, found.patch, found.battery, found.compliant, a.id)
		changes.change(a.companyID, a.id, "", found.Terms)
	}
	changes.save(ctx, t)
	return len(all), nil
}
