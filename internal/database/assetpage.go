package database

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/asset"
)

// A list is read in two steps of one statement: the ids of the page from an
// index that holds all that filter and order need, then the rows. An order
// whose filter has no index of its own is merged from arms: one for each
// status, and for each policy, each read in order from its index. The engines
// merge them lazily, so a page costs its rows and those before it, never more.

const (
	// deepFrom is the number of rows before a page from which it pays to look
	// from the other end, if that is nearer.
	deepFrom = 5_000
	// maxArms bounds the arms of a statement. A caller who is limited to more
	// policies reads along the whole order and leaves out what he may not see.
	maxArms = 48
)

// Assets returns one page and the total, which comes from the kept counts.
func (db *DB) Assets(ctx context.Context, q asset.Query) (page []asset.Asset, total int64, err error) {
	total, err = db.CountAssets(ctx, q.Filter)
	offset, size := q.Page.Offset(), int64(q.Page.Size)
	if err != nil || offset >= total {
		return nil, total, err
	}
	if offset < db.deepFrom || offset <= total/2 {
		page, err = db.assetPage(ctx, db.read(), q, q.Descending, size, offset)
		return page, total, err
	}
	err = db.snapshot(ctx, func(ctx context.Context, c conn) error {
		if total, err = countAssets(ctx, c, q.Filter); err != nil || offset >= total {
			return err
		}
		size = min(size, total-offset)
		page, err = db.assetPage(ctx, c, q, !q.Descending, size, total-offset-size)
		return err
	})
	return page, total, err
}

// assetPage reads rows in the given direction and returns them in the query's.
func (db *DB) assetPage(ctx context.Context, c conn, q asset.Query, descending bool, limit, offset int64) ([]asset.Asset, error) {
	ids, args := pageIDs(db.dialect, q, descending)
	if ids == "" {
		return nil, nil
	}
	page, err := list(ctx, c, scanAsset, `SELECT `+assetColumns+` FROM (`+ids+` LIMIT ? OFFSET ?) AS page
		JOIN assets a ON a.id = page.id`, slices.Concat([]any{q.CompanyID}, args, []any{limit, offset})...)
	slices.SortFunc(page, compareAssets(q.Order, q.Descending))
	return page, err
}

// arm is a condition whose rows an index holds in the order asked for.
type arm struct {
	where string
	args  []any
}

// pageIDs makes the statement that finds ids in order; none if there are none.
func pageIDs(d dialect, q asset.Query, descending bool) (string, []any) {
	columns, direction := orderColumn(q.Order)+", id", ""
	if q.Order == asset.ByStatus && q.Status != "" {
		columns = "id" // the status is the same for all
	}
	if descending {
		direction = " DESC"
	}
	order := ` ORDER BY ` + strings.ReplaceAll(columns, ",", direction+",") + direction
	arms := arms(q)
	texts, args := []string{}, []any{}
	for _, a := range arms {
		text := `SELECT ` + columns + ` FROM assets WHERE company_id = ?` + a.where
		if len(arms) > 1 {
			text = d.arm(text, order)
		}
		texts = append(texts, text)
		args = append(append(args, q.CompanyID), a.args...)
	}
	if len(arms) == 0 {
		return "", nil
	}
	return strings.Join(texts, ` UNION ALL `) + order, args
}

func orderColumn(o asset.Order) string {
	switch o {
	case asset.ByIdentification:
		return "identification"
	case asset.ByStatus:
		return "status"
	case asset.ByCreatedAt:
		return "created_at"
	default:
		return "synced_at"
	}
}

// arms splits a filter into conditions that an index holds in the order.
func arms(q asset.Query) []arm {
	policies, limited := onlyPolicies(q.Filter)
	statuses := armStatuses(q, limited)
	if !limited {
		return statuses
	}
	var all []arm
	if len(policies)*len(statuses) > maxArms {
		for _, s := range armStatuses(q, false) {
			all = append(all, arm{s.where + ` AND policy_id IN (` + marks(len(policies)) + `)`, append(s.args, anys(policies)...)})
		}
		return all
	}
	for _, p := range policies {
		for _, s := range statuses {
			all = append(all, arm{` AND policy_id <> '' AND policy_id = ?` + s.where, append([]any{p}, s.args...)})
		}
	}
	return all
}

// armStatuses are the conditions on the status: one if it is asked for, or if
// an index holds the order of all, else one for each status that there may be.
func armStatuses(q asset.Query, limited bool) []arm {
	switch {
	case q.Status != "" && q.Enrolled && !q.Status.Enrolled():
		return nil
	case q.Status != "":
		return []arm{{` AND status = ?`, []any{string(q.Status)}}}
	case !q.Enrolled && (q.Order == asset.ByStatus || q.Order == asset.BySyncedAt && !limited):
		return []arm{{}}
	}
	statuses := []asset.Status{asset.Active, asset.Inactive, asset.Synchronizing}
	if !limited && !q.Enrolled {
		statuses = append(statuses, asset.Pending, asset.Deleted)
	}
	var all []arm
	for _, s := range statuses {
		all = append(all, arm{` AND status = ?`, []any{string(s)}})
	}
	return all
}

// compareAssets orders as the statements do: text byte by byte, ties by id.
func compareAssets(o asset.Order, descending bool) func(a, b asset.Asset) int {
	by := func(a, b asset.Asset) int {
		switch o {
		case asset.ByIdentification:
			return strings.Compare(a.Identification, b.Identification)
		case asset.ByStatus:
			return strings.Compare(string(a.Status), string(b.Status))
		case asset.ByCreatedAt:
			return a.CreatedAt.Compare(b.CreatedAt)
		default:
			return a.SyncedAt.Compare(b.SyncedAt)
		}
	}
	return func(a, b asset.Asset) int {
		order := cmp.Or(by(a, b), strings.Compare(a.ID, b.ID))
		if descending {
			return -order
		}
		return order
	}
}
