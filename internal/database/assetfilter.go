package database

import (
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/asset"
)

// source is a SELECT of the ids of assets that meet one condition.
type source struct {
	query string
	args  []any
	// exact: it finds each managed device that meets the condition once, and nothing else.
	exact bool
}

// assetQuery is a filter as statements: conditions on an asset's row beyond status
// and policy, and for those that few assets may meet, what finds these.
type assetQuery struct {
	asset.Filter
	where   conditions
	sources []source
	asked   int // conditions in where
}

// conditions are conditions on an asset's row, and on when its device was last heard of.
type conditions struct{ row, seen part }

func (c conditions) none() bool { return c.row.text == "" && c.seen.text == "" }

// onAssets are the conditions for a statement that reads assets. A device that was heard of has
// an epoch, which no index has: PostgreSQL would read an index that has all else as a whole.
func (c conditions) onAssets() part {
	if c.seen.text == "" {
		return c.row
	}
	where := ` AND epoch > 0` + strings.ReplaceAll(c.seen.text, ` at `,
		` (SELECT s.at FROM asset_contacts s WHERE s.asset_id = assets.id) `)
	return part{c.row.text + where, slices.Concat(c.row.args, c.seen.args)}
}

// onContacts are the conditions for a statement that reads asset_contacts. A join would have
// PostgreSQL read both tables at times.
func (c conditions) onContacts(companyID string) part {
	if c.row.text == "" {
		return c.seen
	}
	return part{c.seen.text + ` AND (SELECT TRUE FROM assets WHERE assets.company_id = ? AND assets.id = asset_contacts.asset_id` +
		c.row.text + `)`, slices.Concat(c.seen.args, []any{companyID}, c.row.args)}
}

// newAssetQuery makes the statements of a filter. What only managed devices have
// makes the filter one of enrolled assets.
func newAssetQuery(f asset.Filter) assetQuery {
	q := assetQuery{Filter: f}
	q.texts()
	q.reports()
	q.states()
	q.places()
	if f.Archived && f.Status != "" {
		q.and(` AND archived_status = ?`, string(f.Status))
	}
	return q
}

func (q *assetQuery) and(text string, args ...any) {
	q.asked++
	q.where.row.text += text
	q.where.row.args = append(q.where.row.args, args...)
}

func (q *assetQuery) source(text string, args ...any) {
	q.sources = append(q.sources, source{query: text, args: append([]any{q.CompanyID}, args...)})
}

// exactly adds a source that is exact.
func (q *assetQuery) exactly(text string, args ...any) {
	q.source(text, args...)
	q.sources[len(q.sources)-1].exact = true
}

// device adds a condition on a managed device, which says itself which assets meet it
// if an index holds them.
func (q *assetQuery) device(text string, args ...any) {
	q.Enrolled = true
	q.and(text, args...)
}

func (q *assetQuery) indexed(text string, args ...any) {
	q.device(text, args...)
	q.exactly(`SELECT id FROM assets WHERE company_id = ?`+enrolledOnly+text, args...)
}

const enrolledOnly = ` AND status IN ('ACTIVE', 'INACTIVE', 'SYNCHRONIZING')`

// texts adds the conditions on the asset's identity, and on words, tags and management, which are terms.
func (q *assetQuery) texts() {
	if q.Text != "" {
		words := textWords(q.Text)
		if len(words) == 0 {
			q.and(` AND id = ''`) // signs alone: nothing has them
		}
		for _, word := range words {
			q.term(word, word+lastRune, "%\n"+escapeLike(word)+"%")
		}
	}
	if q.ID != "" {
		q.and(` AND id = ?`, q.ID)
		q.exactly(`SELECT id FROM assets WHERE company_id = ? AND id = ?`, q.ID)
	}
	if serial := asset.IdentityKey(q.Serial); serial != "" {
		q.and(` AND serial_key = ?`, serial)
		q.exactly(`SELECT id FROM assets WHERE company_id = ? AND serial_key <> '' AND serial_key = ?`, serial)
	}
	for _, tag := range q.Tags {
		q.term(tagTerm(tag), tagTerm(tag), "%\n"+escapeLike(tagTerm(tag))+"\n%")
	}
	if q.Management != "" {
		q.Enrolled = true
		term := managementTerm(q.Management)
		q.term(term, term, "%\n"+term+"\n%")
	}
}

// lastRune ends a range of all texts that begin alike. No term has it.
const lastRune = "\U0010FFFF"

// term adds the condition that an asset has a term from low to high.
func (q *assetQuery) term(low, high, pattern string) {
	q.and(` AND search_terms LIKE ? ESCAPE '\'`, pattern)
	q.source(`SELECT asset_id FROM asset_terms WHERE company_id = ? AND term >= ? AND term <= ?`, low, high)
}

func escapeLike(text string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(text)
}

// reports adds the conditions on what devices reported.
func (q *assetQuery) reports() {
	if q.PatchBefore != "" {
		q.indexed(` AND patch <> '' AND patch < ?`, q.PatchBefore)
	}
	if q.PatchMonth == asset.NoPatch {
		q.device(` AND patch = ''`)
	} else if q.PatchMonth != "" {
		q.indexed(` AND patch <> '' AND patch >= ? AND patch < ?`, q.PatchMonth+"-", q.PatchMonth+".")
	}
	if q.BatteryBelow > 0 {
		q.indexed(` AND battery >= 0 AND battery < ?`, q.BatteryBelow)
	}
	if q.Compliant != nil {
		kept := 0
		if *q.Compliant {
			kept = 1
		}
		q.indexed(` AND compliant = ?`, kept)
	}
	if q.App != "" {
		below, args := ``, []any{q.App}
		if q.AppBelow != nil {
			below, args = ` AND version_code >= 0 AND version_code < ?`, append(args, *q.AppBelow)
		}
		q.device(` AND EXISTS (SELECT 1 FROM installed_apps i WHERE i.asset_id = assets.id AND i.package = ?`+below+`)`, args...)
		q.exactly(`SELECT asset_id FROM installed_apps WHERE company_id = ? AND package = ?`+below, args...)
	}
}

// appliedHere holds for a device that reported which version of its policy it has.
const appliedHere = ` AND applied_policy_id <> '' AND applied_policy_id = policy_id AND applied_version > 0`

// states adds the conditions on what is known of devices without their reports.
func (q *assetQuery) states() {
	if q.PolicyBehind != nil {
		sign := `>=`
		if *q.PolicyBehind {
			sign = `<`
			q.source(`SELECT a.id FROM policies p CROSS JOIN assets a
				WHERE p.company_id = ? AND NOT p.deleted AND a.company_id = p.company_id AND a.policy_id = p.id AND a.policy_id <> '' AND a.applied_version > 0 AND a.applied_version < p.version`)
		}
		q.device(appliedHere + ` AND applied_version ` + sign + ` (SELECT p.version FROM policies p WHERE p.id = policy_id)`)
	}
	if q.Lost != nil && *q.Lost {
		q.device(` AND lost_mode`)
		q.source(`SELECT id FROM assets WHERE company_id = ? AND lost_mode`)
	} else if q.Lost != nil {
		q.device(` AND NOT lost_mode`)
	}
	if q.Messages != nil {
		q.messages(*q.Messages)
	}
	if !q.EnrolledSince.IsZero() {
		q.device(` AND enrolled_at >= ?`, millis(q.EnrolledSince))
		where, args := q.filter() // no index has the time
		q.source(`SELECT id FROM assets WHERE company_id = ?`+where, args...)
	}
	if !q.SeenBefore.IsZero() {
		q.seen(` AND at < ?`, millis(q.SeenBefore))
	}
	if !q.SeenAfter.IsZero() {
		q.seen(` AND at > ?`, millis(q.SeenAfter))
	}
}

func (q *assetQuery) messages(can bool) {
	switch {
	case can && q.Companions:
		q.indexed(` AND push_reachable = TRUE`)
	case can:
		q.indexed(` AND push_reachable = TRUE AND management = 'AGENT'`)
	case q.Companions:
		q.indexed(` AND push_reachable = FALSE`)
	default:
		q.device(` AND NOT (push_reachable = TRUE AND management = 'AGENT')`)
	}
}

// seen adds a condition on when devices were seen, and its source.
func (q *assetQuery) seen(text string, at int64) {
	q.Enrolled = true
	q.asked++
	q.where.seen.text += text
	q.where.seen.args = append(q.where.seen.args, at)
	var texts []string
	var args []any
	for i, status := range enrolledStatuses {
		texts = append(texts, `SELECT asset_id FROM asset_contacts WHERE company_id = ? AND status = ?`+text)
		if i > 0 {
			args = append(args, q.CompanyID)
		}
		args = append(args, string(status), at)
	}
	q.exactly(strings.Join(texts, ` UNION ALL `), args...)
}

// places adds the conditions on when a device told its place.
func (q *assetQuery) places() {
	if !q.LocatedSince.IsZero() {
		q.device(` AND location <> '' AND EXISTS (SELECT 1 FROM asset_places p
			WHERE p.asset_id = assets.id AND p.reported_at >= ?)`, millis(q.LocatedSince))
	}
	if q.Unlocated {
		q.device(` AND location = ''`)
	}
}
