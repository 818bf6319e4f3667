package database

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/musterhq/muster/internal/asset"
)

// hits are the places that a search found, in order, and where it goes on if
// it stopped before the end.
type hits struct {
	keys []place
	next *place
}

// hits finds the places of a page, one more than the page takes if there are
// more, and the total.
func (q *search) hits(ctx context.Context) (hits, int64, error) {
	total, err := countAssets(ctx, q.db.read(), q.Filter)
	if err != nil {
		return hits{}, 0, err
	}
	if len(q.where) == 0 {
		found, err := q.scan(ctx)
		return found, total, err
	}
	if total <= int64(q.db.search.few) {
		return q.whole(q.lookAll(ctx))
	}
	for _, s := range q.sources {
		ids, few, err := q.few(ctx, s)
		if err != nil {
			return hits{}, 0, err
		}
		if few {
			return q.whole(q.look(ctx, ids))
		}
	}
	found, err := q.scan(ctx)
	return found, asset.Uncounted, err
}

// whole sorts and counts all that there is, and leaves what follows the place
// to go on from.
func (q *search) whole(all hits, err error) (hits, int64, error) {
	total := int64(len(all.keys))
	slices.SortFunc(all.keys, q.compare)
	if q.from != nil {
		after, there := slices.BinarySearchFunc(all.keys, *q.from, q.compare)
		if there {
			after++
		}
		all.keys = all.keys[after:]
	}
	return all, total, err
}

// few returns the ids of a source, and whether there are no more than are
// looked at one by one. Limits are part of the text, so that PostgreSQL plans
// for them.
func (q *search) few(ctx context.Context, s source) ([]string, bool, error) {
	limit := q.db.search.few
	ids, err := list(ctx, q.db.read(), scanValue[string], s.query+` LIMIT `+strconv.Itoa(limit+1), s.args...)
	if err != nil || len(ids) > limit {
		return nil, false, err
	}
	slices.Sort(ids)
	return slices.Compact(ids), true, nil
}

// lookRows is how many assets one statement looks at.
const lookRows = 500

// look looks at each of some assets. A join would have PostgreSQL, which knows
// neither how few ids there are nor how many rows the conditions leave, read
// the whole table at times. The company is compared in a way that no index
// serves, or SQLite would walk through the company rather than look up the ids.
func (q *search) look(ctx context.Context, ids []string) (all hits, err error) {
	c := q.conditions()
	filter, args := q.filter()
	for some := range slices.Chunk(ids, lookRows) {
		size := 1
		if len(some) > 1 {
			size = lookRows // the list is filled up: two texts to prepare
		}
		given := make([]any, 0, size)
		for i := range size {
			given = append(given, some[min(i, len(some)-1)])
		}
		found, err := q.places(ctx, `SELECT `+q.column()+`, id, TRUE FROM assets WHERE id IN (`+marks(size)+`) AND company_id || '' = ?`+filter+c.where,
			slices.Concat(given, []any{q.CompanyID}, args, c.args))
		if err != nil {
			return hits{}, err
		}
		all.keys = append(all.keys, found.keys...)
	}
	return all, nil
}

// filter is the filter as conditions on a row.
func (q *search) filter() (string, []any) {
	text, args := "", []any{}
	if q.Status != "" {
		text, args = ` AND status = ?`, append(args, string(q.Status))
	}
	if q.Enrolled {
		text += enrolledOnly
	}
	if policies, limited := onlyPolicies(q.Filter); limited && len(policies) == 0 {
		text += ` AND id = ''`
	} else if limited {
		text, args = text+` AND policy_id IN (`+marks(len(policies))+`)`, append(args, anys(policies)...)
	}
	return text, args
}

// lookAll looks at each asset of the filter, which are few.
func (q *search) lookAll(ctx context.Context) (hits, error) {
	whole := *q
	whole.from, whole.Size = nil, q.db.search.few
	return whole.scan(ctx)
}

// walk reads along the order until the page is full, the assets end, or it has
// gone far enough.
func (q *search) scan(ctx context.Context) (found hits, err error) {
	arms, from := q.arms(), q.from
	if len(arms) == 0 {
		return found, nil
	}
	stride := q.Size + 1
	if len(q.where) > 0 {
		stride = max(stride, q.db.search.stride)
	}
	for walked := 0; ; {
		passed, err := q.batch(ctx, arms, from, stride)
		if err != nil {
			return found, err
		}
		for _, p := range passed.keys {
			if p.match {
				found.keys = append(found.keys, p)
			}
		}
		if len(found.keys) > q.Size || len(passed.keys) < stride {
			return found, nil
		}
		from = &passed.keys[stride-1]
		if walked += stride; walked >= q.db.search.walk {
			found.next = from
			return found, nil
		}
		stride = min(stride*4, q.db.search.walk-walked)
	}
}

// arms are those of the list. If there are too many, the policies are not what
// is walked along, but one more condition of the rows.
func (q *search) arms() []arm {
	query := asset.Query{Filter: q.Filter, Order: q.Order, Descending: q.Descending}
	policies, limited := onlyPolicies(q.Filter)
	if limited && len(policies)*len(armStatuses(query, true)) > maxArms {
		q.where = append(q.where, arm{` AND policy_id IN (` + marks(len(policies)) + `)`, anys(policies)})
		return armStatuses(query, false)
	}
	return arms(query)
}

func (q *search) column() string { return orderColumn(q.Order) }

// stride reads the next places along the order, and whether each is a match.
func (q *search) batch(ctx context.Context, arms []arm, from *place, limit int) (hits, error) {
	columns := q.column() + ", id"
	direction, sign := "", ">"
	if q.Descending {
		direction, sign = " DESC", "<"
	}
	order := ` ORDER BY ` + q.column() + direction + `, id` + direction
	match, c := ", TRUE AS matches", q.conditions()
	if len(q.where) > 0 {
		match = `, CASE WHEN ` + strings.TrimPrefix(c.where, " AND ") + ` THEN TRUE ELSE FALSE END AS matches`
	}
	var texts []string
	var args []any
	for _, a := range arms {
		text := `SELECT ` + columns + match + ` FROM assets WHERE company_id = ?` + a.where
		args = append(append(append(args, c.args...), q.CompanyID), a.args...)
		if from != nil {
			text += ` AND (` + columns + `) ` + sign + ` (?, ?)`
			args = append(args, q.value(*from), from.id)
		}
		if len(arms) > 1 {
			text = q.db.dialect.arm(text, order+` LIMIT `+strconv.Itoa(limit))
		}
		texts = append(texts, text)
	}
	return q.places(ctx, strings.Join(texts, ` UNION ALL `)+order+` LIMIT ?`, append(args, limit))
}

func (q *search) value(p place) any {
	if q.numeric {
		return p.number
	}
	return p.text
}

func (q *search) places(ctx context.Context, query string, args []any) (hits, error) {
	all, err := list(ctx, q.db.read(), into(func(p *place) []any {
		if q.numeric {
			return []any{&p.number, &p.id, &p.match}
		}
		return []any{&p.text, &p.id, &p.match}
	}), query, args...)
	return hits{keys: all}, err
}
