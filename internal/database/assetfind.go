package database

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/musterhq/muster/internal/asset"
)

// A filter beyond status and policy is answered in one of two ways. If one of its
// conditions, or all that have an index together, are met by few assets, these are
// looked at one by one, sorted and counted. Otherwise matches are common: a page is
// soon filled on a walk along the order, and counting takes as long as there are
// matches.

// few is how many assets are looked at one by one.
const few = 10_000

// place is the position of an asset in an order.
type place struct {
	number int64 // of an order by time; -1: it has none, and comes last
	text   string
	id     string
}

// whole finds the places of all assets that meet the filter, in no order; false if
// they may be many.
func (db *DB) whole(ctx context.Context, q assetQuery, o asset.Order) ([]place, bool, error) {
	for _, s := range q.narrowed() {
		ids, few, err := db.fewIDs(ctx, s)
		if err != nil {
			return nil, false, err
		}
		if few {
			places, err := db.look(ctx, q, o, ids)
			return places, true, err
		}
	}
	return nil, false, nil
}

// maxSources is how many conditions are asked for what few assets meet. The others are
// looked at with the rows.
const maxSources = 8

// narrowed are the sources, and what all of them have in common.
func (q assetQuery) narrowed() []source {
	asked := q.sources[:min(len(q.sources), maxSources)]
	if len(asked) < 2 {
		return asked
	}
	var texts []string
	var args []any
	for _, s := range asked {
		texts, args = append(texts, `SELECT * FROM (`+s.query+`) AS s`+strconv.Itoa(len(texts))), append(args, s.args...)
	}
	return append(slices.Clone(asked), source{query: strings.Join(texts, ` INTERSECT `), args: args})
}

// fewIDs returns the ids of a source, and whether there are no more than are looked at
// one by one. Limits are part of the text, so that PostgreSQL plans for them.
func (db *DB) fewIDs(ctx context.Context, s source) ([]string, bool, error) {
	ids, err := list(ctx, db.read(), scanValue[string], s.query+` LIMIT `+strconv.Itoa(db.few+1), s.args...)
	if err != nil || len(ids) > db.few {
		return nil, false, err
	}
	slices.Sort(ids)
	return slices.Compact(ids), true, nil
}

// lookRows is how many assets one statement looks at.
const lookRows = 500

// look looks at each of some assets. A join would have PostgreSQL, which knows
// neither how few ids there are nor how many rows the conditions leave, read
// the whole table at times. What indexes begin with is compared in a way that no
// index serves, or the engines would walk through it rather than look up the ids.
func (db *DB) look(ctx context.Context, q assetQuery, o asset.Order, ids []string) (all []place, err error) {
	filter, args := q.filter()
	filter = strings.ReplaceAll(filter, ` AND status `, ` AND status || '' `)
	for some := range slices.Chunk(ids, lookRows) {
		size := 1
		if len(some) > 1 {
			size = lookRows // the list is filled up: two texts to prepare
		}
		found, err := db.placesOf(ctx, o, `SELECT `+placeColumn(o)+`, id FROM assets WHERE id IN (`+marks(size)+
			`) AND company_id || '' = ?`+filter,
			slices.Concat(anys(filled(some, size)), []any{q.CompanyID}, args))
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// filter is the whole filter as conditions on an asset's row.
func (q assetQuery) filter() (string, []any) {
	where := q.where.onAssets()
	text, args := "", []any{}
	switch {
	case q.Archived:
		text = ` AND status = '` + string(archived) + `'`
	case q.Status != "":
		text, args = ` AND status = ?`, append(args, string(q.Status))
	case !q.Enrolled:
		text = ` AND status <> '` + string(archived) + `'`
	}
	if q.Enrolled {
		text += enrolledOnly
	}
	only, policies := ofPolicies(`policy_id`, onlyPolicies(q.Filter))
	return text + only + where.text, slices.Concat(args, policies, where.args)
}

// placeColumn is what an asset is ordered by.
func placeColumn(o asset.Order) string {
	if o == asset.ByLastSeenAt {
		return `CASE WHEN status IN ('ACTIVE', 'INACTIVE', 'SYNCHRONIZING') THEN
			(SELECT s.at FROM asset_contacts s WHERE s.asset_id = assets.id) ELSE -1 END`
	}
	return orderColumn(o)
}

func (db *DB) placesOf(ctx context.Context, o asset.Order, query string, args []any) ([]place, error) {
	return list(ctx, db.read(), into(func(p *place) []any {
		if o == asset.ByIdentification || o == asset.ByStatus {
			return []any{&p.text, &p.id}
		}
		return []any{&p.number, &p.id}
	}), query, args...)
}

// comparePlaces orders as the statements do: text byte by byte, ties by id, what has no
// time last.
func comparePlaces(descending bool) func(a, b place) int {
	return func(a, b place) int {
		if (a.number < 0) != (b.number < 0) {
			return cmp.Compare(b.number, a.number)
		}
		order := cmp.Or(cmp.Compare(a.number, b.number), strings.Compare(a.text, b.text), strings.Compare(a.id, b.id))
		if descending {
			return -order
		}
		return order
	}
}

// countMany counts what meets a filter of which there may be many: in an index, if that
// holds its only condition.
func (db *DB) countMany(ctx context.Context, q assetQuery) (int64, error) {
	if q.asked == 1 && len(q.sources) == 1 && q.sources[0].exact && q.Status == "" && q.PolicyID == "" && q.Policies == nil && !q.Archived {
		return value[int64](ctx, db.read(), `SELECT COUNT(*) FROM (`+q.sources[0].query+`) AS found`, q.sources[0].args...)
	}
	filter, args := q.filter()
	return value[int64](ctx, db.read(), `SELECT COUNT(*) FROM assets WHERE company_id = ?`+filter, append([]any{q.CompanyID}, args...)...)
}

// AssetsByID reads those of some assets that are the company's, in the order of the ids.
func (db *DB) AssetsByID(ctx context.Context, companyID string, ids []string) ([]asset.Asset, error) {
	var all []asset.Asset
	for some := range slices.Chunk(ids, lookRows) {
		// The list is filled up, so that there are few texts to prepare.
		size := 20
		for size < len(some) {
			size *= 5
		}
		args := append([]any{companyID}, anys(filled(some, size))...)
		at := make(map[string]int, len(some))
		for i, id := range some {
			at[id] = i
		}
		found, err := list(ctx, db.read(), scanAsset, `SELECT `+assetColumns+` FROM assets a WHERE a.id IN (`+marks(size)+
			`) AND a.company_id || '' = ?`, append(args, companyID)...)
		if err != nil {
			return nil, err
		}
		slices.SortFunc(found, func(a, b asset.Asset) int { return cmp.Compare(at[a.ID], at[b.ID]) })
		all = append(all, found...)
	}
	return all, nil
}

// AssetsNamed returns the ids of a company's assets with an identification, at most limit.
func (db *DB) AssetsNamed(ctx context.Context, companyID, identification string, limit int) ([]string, error) {
	return list(ctx, db.read(), scanValue[string], `SELECT id FROM assets WHERE company_id = ? AND identification = ?
		AND status IN ('PENDING', 'SYNCHRONIZING', 'ACTIVE', 'INACTIVE', 'DELETED', 'ARCHIVED') ORDER BY id LIMIT ?`, companyID,
		storable(identification), limit)
}
