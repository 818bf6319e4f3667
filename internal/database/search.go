package database

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/resource"
)

// A search is answered in one of two ways. If one of its conditions is met by
// few assets, these are looked at one by one, sorted and counted. Otherwise
// every condition is common, and a walk along the order meets enough assets
// soon; what few have in common only together may end the walk early.
type searchLimits struct {
	few    int // how many assets are looked at one by one
	walk   int // how many assets one call walks past
	stride int // how many the walk's first statement reads
}

const (
	// maxSearchWords is how many words of a search count.
	maxSearchWords = 8
	// lastRune ends a range of all texts that begin alike. No term has it.
	lastRune = "\U0010FFFF"
)

// SearchAssets returns one page of what a search finds.
func (db *DB) SearchAssets(ctx context.Context, s asset.Search) (asset.Found, error) {
	q, err := newSearch(db, s)
	if err != nil {
		return asset.Found{}, err
	}
	if id := idIn(s.Text); id != "" {
		if found, err := q.byID(ctx, id); err != nil || found.Total > 0 {
			return found, err
		}
	}
	hits, total, err := q.hits(ctx)
	if err != nil {
		return asset.Found{}, err
	}
	found := asset.Found{Total: total}
	if len(hits.keys) > q.Size {
		hits.keys, hits.next = hits.keys[:q.Size], &hits.keys[q.Size-1]
	}
	if hits.next != nil {
		found.Next = hits.next.cursor(q.numeric)
	}
	found.Assets, err = q.rows(ctx, hits.keys)
	return found, err
}

// search is a search under way.
type search struct {
	db *DB
	asset.Search
	numeric bool // the order is by a number
	from    *place
	where   []arm    // conditions beyond the filter, on an asset's row
	sources []source // statements that find the few assets that meet one of them
}

// source is a SELECT of asset ids.
type source struct {
	query string
	args  []any
}

// place is where an asset stands in the order.
type place struct {
	number int64
	text   string
	id     string
	match  bool
}

func newSearch(db *DB, s asset.Search) (*search, error) {
	if s.Size == 0 {
		s.Size = 20
	}
	s.Size = min(max(s.Size, 1), 1000)
	q := &search{db: db, Search: s, numeric: s.Order != asset.ByIdentification && s.Order != asset.ByStatus}
	if s.After != "" {
		from, ok := parseCursor(s.After, q.numeric)
		if !ok {
			return nil, fault.Invalid("this is not where a search goes on: begin a new search", fault.Field{Field: "after", Message: "is not the next of a search"})
		}
		q.from = &from
	}
	words := searchWords(s.Text)
	if strings.TrimSpace(s.Text) != "" && len(words) == 0 {
		q.where = append(q.where, arm{` AND id = ''`, nil}) // signs only: nothing has them
	}
	for _, word := range words {
		q.term(word, word+lastRune, "%\n"+escapeLike(word)+"%")
	}
	if s.Tag != "" {
		q.term(tagTerm(s.Tag), tagTerm(s.Tag), "%\n"+escapeLike(tagTerm(s.Tag))+"\n%")
	}
	if s.Management != "" {
		term := managementTerm(s.Management)
		q.term(term, term, "%\n"+term+"\n%")
	}
	q.enrolled()
	q.located()
	return q, nil
}

// searchWords are the words that a person typed.
func searchWords(text string) []string {
	var all []string
	for _, word := range printable(text) {
		trimmed := strings.TrimLeftFunc(word, isSign)
		if tag, ok := strings.CutPrefix(word, "#"); ok && tag != "" && trimmed != "" {
			trimmed = word
		}
		if trimmed != "" && len(all) < maxSearchWords {
			all = append(all, clip(trimmed))
		}
	}
	return all
}

// term adds the condition that an asset has a term from low to high.
func (q *search) term(low, high, pattern string) {
	q.where = append(q.where, arm{` AND search_terms LIKE ? ESCAPE '\'`, []any{pattern}})
	q.sources = append(q.sources, source{
		`SELECT asset_id FROM asset_terms WHERE company_id = ? AND term >= ? AND term <= ?`, []any{q.CompanyID, low, high}})
}

func escapeLike(text string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(text)
}

const enrolledOnly = ` AND status IN ('ACTIVE', 'INACTIVE', 'SYNCHRONIZING')`

// heard adds the conditions on when a device was last heard of. One that was
// last heard of before a time was last synchronized before it.
func (q *search) enrolled() {
	if !q.HeardSince.IsZero() {
		q.where = append(q.where, arm{enrolledOnly + ` AND last_seen_at >= ?`, []any{millis(q.HeardSince)}})
	}
	if q.QuietSince.IsZero() {
		return
	}
	before := millis(q.QuietSince)
	q.where = append(q.where, arm{enrolledOnly + ` AND last_seen_at < ?`, []any{before}})
	var texts []string
	var args []any
	for _, status := range []asset.Status{asset.Active, asset.Inactive, asset.Synchronizing} {
		texts = append(texts, `SELECT id FROM assets WHERE company_id = ? AND status = ? AND synced_at < ?`)
		args = append(args, q.CompanyID, string(status), before)
	}
	q.sources = append(q.sources, source{strings.Join(texts, ` UNION ALL `), args})
}

// located adds the conditions on when a device told its place, and on being lost.
func (q *search) located() {
	if !q.LocatedSince.IsZero() {
		q.where = append(q.where, arm{enrolledOnly + ` AND location <> '' AND EXISTS (SELECT 1 FROM asset_places p
			WHERE p.asset_id = assets.id AND p.reported_at >= ?)`, []any{millis(q.LocatedSince)}})
	}
	if q.Unlocated {
		q.where = append(q.where, arm{enrolledOnly + ` AND location = ''`, nil})
	}
	if q.Lost {
		q.where = append(q.where, arm{enrolledOnly + ` AND lost_mode`, nil})
		q.sources = append(q.sources, source{`SELECT id FROM assets WHERE company_id = ? AND lost_mode`, []any{q.CompanyID}})
	}
}

// conditions is everything that an asset must meet beyond the filter.
func (q *search) conditions() arm {
	var all arm
	for _, c := range q.where {
		all.where, all.args = all.where+c.where, append(all.args, c.args...)
	}
	return all
}

// idIn returns the asset id that a text is, or that ends the path name that it
// is; empty: none.
func idIn(text string) string {
	id := strings.TrimSpace(text)
	if _, after, ok := strings.Cut(id, "/"+string(resource.Assets)+"/"); ok {
		id = after
	}
	if resource.IsID(id) {
		return id
	}
	return ""
}

func (q *search) byID(ctx context.Context, id string) (asset.Found, error) {
	only := *q
	only.where, only.from, only.Text = nil, nil, ""
	hits, err := only.look(ctx, []string{id})
	if err != nil || len(hits.keys) == 0 {
		return asset.Found{}, err
	}
	assets, err := q.rows(ctx, hits.keys)
	return asset.Found{Assets: assets, Total: int64(len(assets))}, err
}

// cursor is the place as callers keep it.
func (p place) cursor(numeric bool) string {
	value := p.text
	if numeric {
		value = strconv.FormatInt(p.number, 10)
	}
	return base64.RawURLEncoding.EncodeToString([]byte(encode([2]string{value, p.id})))
}

func parseCursor(text string, numeric bool) (p place, ok bool) {
	var pair [2]string
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || json.Unmarshal(raw, &pair) != nil || pair[1] == "" {
		return p, false
	}
	p.id = storable(pair[1])
	if numeric {
		p.number, err = strconv.ParseInt(pair[0], 10, 64)
	} else {
		p.text = storable(pair[0])
	}
	return p, err == nil
}

// compare orders places as the statements do.
func (q *search) compare(a, b place) int {
	order := cmp.Or(cmp.Compare(a.number, b.number), strings.Compare(a.text, b.text), strings.Compare(a.id, b.id))
	if q.Descending {
		return -order
	}
	return order
}

// rows reads the assets at the places, in the query's order.
func (q *search) rows(ctx context.Context, places []place) ([]asset.Asset, error) {
	if len(places) == 0 {
		return nil, nil
	}
	// The list is filled up, so that there are few texts to prepare.
	size := 20
	for size < len(places) {
		size *= 4
	}
	args := append(make([]any, 0, size+1), q.CompanyID)
	for i := range size {
		args = append(args, places[min(i, len(places)-1)].id)
	}
	all, err := list(ctx, q.db.read(), scanAsset, `SELECT `+assetColumns+` FROM assets a WHERE a.id IN (`+marks(size)+`)`, args...)
	// An asset may have moved in the order since its place was read.
	at := make(map[string]int, len(places))
	for i, p := range places {
		at[p.id] = i
	}
	slices.SortFunc(all, func(a, b asset.Asset) int { return cmp.Compare(at[a.ID], at[b.ID]) })
	return all, err
}
