package database

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/database/engine"
	"github.com/musterhq/muster/internal/slice"
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

// Assets returns one page and the total. What filters by status and policy alone is
// counted by the kept counts.
func (db *DB) Assets(ctx context.Context, q asset.Query) (page []asset.Asset, total int64, err error) {
	if f := newAssetQuery(q.Filter); !f.where.none() {
		return db.filtered(ctx, q, f)
	}
	if q.Page.Offset() < db.deepFrom {
		page, total, err = db.countedPage(ctx, q)
		whole := q.Order != asset.ByLastSeenAt || q.Enrolled
		if err != nil || len(page) == q.Page.Size || whole && (len(page) > 0 || q.Page.Offset() == 0) {
			return page, total, err
		}
	}
	if total, err = db.CountAssets(ctx, q.Filter); err != nil {
		return nil, 0, err
	}
	page, err = db.plainPage(ctx, q, total)
	return page, total, err
}

// countedPage reads a page, in the order of last contact one of managed devices alone, and
// in the same statement what is filtered in all. Without a row there is no total.
func (db *DB) countedPage(ctx context.Context, q asset.Query) (page []asset.Asset, total int64, err error) {
	ids, args := pageIDs(db.engine.Dialect(), q, conditions{}, q.Descending)
	count := keptCount(q.Filter)
	if ids == "" {
		return nil, 0, nil
	}
	page, err = list(ctx, db.read(), func(r row) (asset.Asset, error) {
		var a assetRow
		if err := r.Scan(append([]any{&total}, a.targets()...)...); err != nil {
			return asset.Asset{}, err
		}
		return a.result()
	}, `SELECT (`+count.text+`), `+assetColumns+` FROM (`+ids+` LIMIT ? OFFSET ?) AS page JOIN assets a ON a.id = page.id`,
		slices.Concat(count.args, []any{q.CompanyID}, args, []any{q.Page.Size, q.Page.Offset()})...)
	slices.SortFunc(page, compareAssets(q.Order, q.Descending))
	return page, total, err
}

// plainPage reads a page of what is filtered by status and policy alone.
func (db *DB) plainPage(ctx context.Context, q asset.Query, total int64) (page []asset.Asset, err error) {
	offset, size := q.Page.Offset(), int64(q.Page.Size)
	switch {
	case offset >= total:
		return nil, nil
	case q.Order == asset.ByLastSeenAt:
		managed := q.Filter
		managed.Enrolled = true
		n, err := db.CountAssets(ctx, managed)
		if err != nil {
			return nil, err
		}
		return db.seenPage(ctx, q, conditions{}, n)
	case offset < db.deepFrom || offset <= total/2:
		return db.assetPage(ctx, db.read(), q, conditions{}, q.Descending, size, offset)
	}
	err = db.engine.Snapshot(ctx, func(ctx context.Context, c conn) error {
		if total, err = countAssets(ctx, c, q.Filter); err != nil || offset >= total {
			return err
		}
		size = min(size, total-offset)
		page, err = db.assetPage(ctx, c, q, conditions{}, !q.Descending, size, total-offset-size)
		return err
	})
	return page, err
}

// seenPage reads a page in the order of last contact: managed devices, of which there
// are so many, then the other assets, which have none.
func (db *DB) seenPage(ctx context.Context, q asset.Query, where conditions, managed int64) (page []asset.Asset, err error) {
	offset, size := q.Page.Offset(), int64(q.Page.Size)
	if offset < managed {
		if page, err = db.assetPage(ctx, db.read(), q, where, q.Descending, size, offset); err != nil {
			return nil, err
		}
	}
	rest := size - int64(len(page))
	if rest == 0 || q.Enrolled {
		return page, nil
	}
	q.Order = byID
	others, err := db.assetPage(ctx, db.read(), q, where, q.Descending, rest, max(0, offset-managed))
	return append(page, others...), err
}

// filtered reads a page of what has more conditions, and counts it.
func (db *DB) filtered(ctx context.Context, q asset.Query, f assetQuery) (page []asset.Asset, total int64, err error) {
	places, whole, err := db.whole(ctx, f, q.Order)
	if err != nil {
		return nil, 0, err
	}
	offset, size := q.Page.Offset(), int64(q.Page.Size)
	if whole {
		slices.SortFunc(places, comparePlaces(q.Descending))
		total = int64(len(places))
		from := min(offset, total)
		page, err = db.AssetsByID(ctx, q.CompanyID, placeIDs(places[from:min(from+size, total)]))
		return page, total, err
	}
	if !q.Uncounted {
		if total, err = db.countMany(ctx, f); err != nil || offset >= total {
			return nil, total, err
		}
	}
	q.Filter = f.Filter
	if q.Order == asset.ByLastSeenAt && !q.Enrolled {
		managed := f
		managed.Enrolled = true
		n, err := db.countMany(ctx, managed)
		if err == nil {
			page, err = db.seenPage(ctx, q, f.where, n)
		}
		return page, total, err
	}
	page, err = db.assetPage(ctx, db.read(), q, f.where, q.Descending, size, offset)
	return page, total, err
}

func placeIDs(places []place) []string {
	return slice.Map(places, func(p place) string { return p.id })
}

// AssetIDs returns the ids of all assets that meet a filter, in order.
func (db *DB) AssetIDs(ctx context.Context, f asset.Filter, o asset.Order, descending bool) ([]string, error) {
	q := newAssetQuery(f)
	places, whole, err := db.whole(ctx, q, o)
	if err == nil && !whole {
		filter, args := q.filter()
		places, err = db.placesOf(ctx, o, `SELECT `+placeColumn(o)+`, id FROM assets WHERE company_id = ?`+filter,
			append([]any{q.CompanyID}, args...))
	}
	slices.SortFunc(places, comparePlaces(descending))
	return placeIDs(places), err
}

// assetPage reads rows in the given direction and returns them in the query's.
func (db *DB) assetPage(ctx context.Context, c conn, q asset.Query, where conditions, descending bool,
	limit, offset int64) ([]asset.Asset, error) {
	ids, args := pageIDs(db.engine.Dialect(), q, where, descending)
	if ids == "" {
		return nil, nil
	}
	page, err := list(ctx, c, scanAsset, `SELECT `+assetColumns+` FROM (`+ids+` LIMIT ? OFFSET ?) AS page
		JOIN assets a ON a.id = page.id`, slices.Concat([]any{q.CompanyID}, args, []any{limit, offset})...)
	slices.SortFunc(page, compareAssets(q.Order, q.Descending))
	return page, err
}

// byID is the order of what has no time of last contact.
const byID asset.Order = "id"

// pageIDs makes the statement that finds ids in order; none if there are none.
func pageIDs(d engine.Dialect, q asset.Query, where conditions, descending bool) (string, []any) {
	from, more := ` FROM assets`, where.onAssets()
	columns, direction := orderColumn(q.Order)+", id", ""
	if q.Order == asset.ByStatus && q.Status != "" || q.Order == byID {
		columns = "id" // the status is the same for all, or no matter
	}
	if descending {
		direction = " DESC"
	}
	order := ` ORDER BY ` + strings.ReplaceAll(columns, ",", direction+",") + direction
	if q.Order == asset.ByLastSeenAt {
		columns, from, more = "at, asset_id AS id", ` FROM asset_contacts`, where.onContacts(q.CompanyID)
	}
	arms := arms(q)
	texts, args := []string{}, []any{}
	for _, a := range arms {
		text := `SELECT ` + columns + from + ` WHERE company_id = ?` + a.text + more.text
		if len(arms) > 1 {
			text = d.Arm(text, order)
		}
		texts = append(texts, text)
		args = append(append(append(args, q.CompanyID), a.args...), more.args...)
	}
	if len(arms) == 0 {
		return "", nil
	}
	return strings.Join(texts, ` UNION ALL `) + order, args
}

func orderColumn(o asset.Order) string {
	return cmp.Or(map[asset.Order]string{asset.ByIdentification: "identification", asset.ByStatus: "status",
		asset.ByCreatedAt: "created_at", asset.ByLastSeenAt: "at"}[o], "synced_at")
}

// arms splits a filter into conditions, of each of which an index holds the rows in the order asked for.
func arms(q asset.Query) []part {
	policies := onlyPolicies(q.Filter)
	statuses := armStatuses(q, policies != nil)
	if policies == nil {
		return statuses
	}
	var all []part
	if len(policies)*len(statuses) > maxArms {
		for _, s := range armStatuses(q, false) {
			all = append(all, part{s.text + ` AND policy_id IN (` + marks(len(policies)) + `)`, append(s.args, anys(policies)...)})
		}
		return all
	}
	for _, p := range policies {
		for _, s := range statuses {
			all = append(all, part{` AND policy_id <> '' AND policy_id = ?` + s.text, append([]any{p}, s.args...)})
		}
	}
	return all
}

// archived is the status, in the database alone, of assets that were archived.
const archived asset.Status = "ARCHIVED"

// The statuses of managed devices, and of the other assets that lists show.
var (
	enrolledStatuses = []asset.Status{asset.Active, asset.Inactive, asset.Synchronizing} //nolint:gochecknoglobals // never written to
	otherStatuses    = []asset.Status{asset.Pending, asset.Deleted}                      //nolint:gochecknoglobals // never written to
)

// armStatuses are the conditions on the status: one if an index holds the order of all,
// else one for each status that there may be. Only managed devices have a policy or a
// last contact.
func armStatuses(q asset.Query, limited bool) []part {
	statuses, managed := slices.Concat(enrolledStatuses, otherStatuses), q.Enrolled || limited || q.Order == asset.ByLastSeenAt
	switch {
	case q.Archived:
		statuses = []asset.Status{archived}
	case q.Status != "":
		statuses = []asset.Status{q.Status}
	case !q.Enrolled && (q.Order == asset.ByStatus || q.Order == asset.BySyncedAt && !limited):
		return []part{{` AND status <> '` + string(archived) + `'`, nil}}
	}
	var all []part
	for _, s := range statuses {
		if s.Enrolled() && q.Order != byID || !s.Enrolled() && !managed {
			all = append(all, part{` AND status = ?`, []any{string(s)}})
		}
	}
	return all
}

// compareAssets orders the assets of a page as the statements do.
func compareAssets(o asset.Order, descending bool) func(a, b asset.Asset) int {
	compare := comparePlaces(descending)
	return func(a, b asset.Asset) int { return compare(placeOf(o, a), placeOf(o, b)) }
}

// placeOf is the position of an asset in an order.
func placeOf(o asset.Order, a asset.Asset) place {
	p := place{id: a.ID}
	switch o {
	case asset.ByIdentification:
		p.text = a.Identification
	case asset.ByStatus:
		p.text = string(a.Status)
	case asset.ByCreatedAt:
		p.number = millis(a.CreatedAt)
	case asset.ByLastSeenAt:
		p.number = millis(a.Device.LastSeenAt)
	case byID:
	default:
		p.number = millis(a.SyncedAt)
	}
	return p
}
