package database

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/validate"
)

// activityColumns are those that an entry is inserted with. Its number in the hash chain (seq) and its hash
// are added when the chain is extended (activitychain.go).
const activityColumns = `company_id, at, id, actor_kind, actor_id, actor_user_id, actor_name, actor_prefix, area, action,
	target_kind, target_id, target_name, outcome, reference, changes, request_id, address, client, reason, ticket, proof`

// The limits of an entry's texts, in characters.
const (
	maxActivityName   = 200
	maxActivityChange = 1000
)

// maxActivityChanges is how many changes an entry names. Of an asset's custom data, one call can change thousands.
const maxActivityChanges = 100

// RecordActivity implements activity.Recorder.
func (db *DB) RecordActivity(ctx context.Context, companyID string, e activity.Event) error {
	return db.statement(ctx, func(ctx context.Context, c conn) error { return db.record(ctx, c, companyID, e) })
}

// record writes an entry, and the event that reports it if there is one, in the transaction of c.
func (db *DB) record(ctx context.Context, c conn, companyID string, e activity.Event) error {
	if e.Target.Kind == activity.Asset && e.Target.Name == "" {
		name, _, err := maybe(value[string](ctx, c, `SELECT identification FROM assets WHERE id = ? AND company_id = ?`,
			e.Target.ID, companyID))
		if err != nil {
			return err
		}
		e.Target.Name = name
	}
	if err := c.Insert(ctx, "activity", activityColumns, db.entry(ctx, companyID, e)); err != nil {
		return err
	}
	if changed, ok := db.activityEvent(companyID, e); ok {
		return db.tell(ctx, c, changed)
	}
	return nil
}

// entry returns the values of activityColumns. An event without an actor or a note has those of the request.
// Names from people and devices are cleaned, so that no control character reaches a log or a terminal.
func (db *DB) entry(ctx context.Context, companyID string, e activity.Event) []any {
	o := access.OriginOf(ctx)
	a := cmp.Or(e.Actor, o.Actor, access.ServiceActor())
	e.Outcome, e.Note = cmp.Or(e.Outcome, activity.OK), cmp.Or(e.Note, o.Note)
	now := db.now()
	made := activity.Entry{ID: resource.NewIDAt(now), CompanyID: companyID, At: instant(millis(now)), Action: e.Action, Outcome: e.Outcome,
		Actor:     access.Actor{Kind: a.Kind, ID: a.ID, UserID: a.UserID, Name: validate.Clean(a.Name, maxActivityName), Prefix: a.Prefix},
		Target:    activity.Target{Kind: e.Target.Kind, ID: e.Target.ID, Name: validate.Clean(e.Target.Name, maxActivityName)},
		Reference: e.Reference, Changes: cleanChanges(e.Changes), RequestID: o.RequestID, Address: o.Address, Client: o.Client,
		Note: e.Note}
	if db.prover != nil {
		made.Proof = db.prover.Prove(made.Statement())
	}
	who, t := made.Actor, made.Target
	return []any{companyID, millis(now), made.ID, string(who.Kind), who.ID, who.UserID, who.Name, who.Prefix, made.Action.Area(),
		string(made.Action), string(t.Kind), t.ID, t.Name, string(made.Outcome), made.Reference, activity.EncodeChanges(made.Changes),
		made.RequestID, made.Address, made.Client, made.Note.Reason, made.Note.Ticket, made.Proof}
}

// cleanChanges returns changes as an entry has them: with clean texts, and in place of those above maxActivityChanges one
// that says how many they are. A field may be a key of custom data, which callers choose.
func cleanChanges(all []activity.Change) []activity.Change {
	named := all[:min(len(all), maxActivityChanges)]
	changes := make([]activity.Change, len(named), len(named)+1)
	for i, change := range named {
		changes[i] = activity.Change{Field: validate.Clean(change.Field, maxActivityName),
			Before: validate.Clean(change.Before, maxActivityChange), After: validate.Clean(change.After, maxActivityChange)}
	}
	if more := len(all) - len(named); more > 0 {
		changes = append(changes, activity.Change{Field: "more", After: strconv.Itoa(more)})
	}
	return changes
}

// readActivity are the columns of activityFields.
const readActivity = `e.company_id, e.at, e.id, e.actor_kind, e.actor_id, e.actor_user_id, e.actor_name, e.actor_prefix, e.action,
	e.target_kind, e.target_id, e.target_name, e.outcome, e.reference, e.changes, e.request_id, e.address, e.client, e.seq, e.hash,
	e.reason, e.ticket, e.proof`

// activityFields receives readActivity.
func activityFields(e *activity.Entry) []any {
	a, t := &e.Actor, &e.Target
	return []any{&e.CompanyID, at(&e.At), &e.ID, &a.Kind, &a.ID, &a.UserID, &a.Name, &a.Prefix, &e.Action,
		&t.Kind, &t.ID, &t.Name, &e.Outcome, &e.Reference, encoded{&e.Changes}, &e.RequestID, &e.Address, &e.Client, &e.Seq, &e.Hash,
		&e.Note.Reason, &e.Note.Ticket, &e.Proof}
}

// scanListed reads a row of listedActivity.
func scanListed(r row) (e activity.Entry, err error) {
	var device string
	err = r.Scan(append(activityFields(&e), &device, &e.State, &e.Detail)...)
	if e.Target.Name == "" {
		e.Target.Name = device
	}
	return e, err
}

// listedActivity selects entries, with the present name of a device whose entry has no name, and the
// present state and outcome of a command. A device that was deleted has the name of its newest entry with
// one. A command that was deleted has no state.
const listedActivity = `SELECT ` + readActivity + `,
	CASE WHEN e.target_name <> '' OR e.target_kind <> 'ASSET' THEN '' ELSE COALESCE(d.identification,
		(SELECT n.target_name FROM activity n WHERE n.company_id = e.company_id AND n.target_id = e.target_id AND n.target_name <> ''
			ORDER BY n.at DESC, n.id DESC LIMIT 1), '') END,
	COALESCE(m.state, ''), COALESCE(m.outcome, '')
	FROM activity e
	LEFT JOIN assets d ON e.target_kind = 'ASSET' AND d.id = e.target_id AND d.company_id = e.company_id
	LEFT JOIN commands m ON e.area = 'command' AND m.id = e.reference AND m.company_id = e.company_id`

// activityWhere is the filter's condition. The conditions of partial indexes are repeated literally, without
// arguments: the engines use such an index only if they find its condition in the statement.
func activityWhere(f activity.Filter) (string, []any) {
	where, args := []string{"e.company_id = ?"}, []any{f.CompanyID}
	and := func(condition string, values ...any) {
		where, args = append(where, condition), append(args, values...)
	}
	for _, c := range []struct {
		given     bool
		condition string
		value     any
	}{
		{!f.From.IsZero(), "e.at >= ?", millis(f.From)},
		{!f.To.IsZero(), "e.at < ?", millis(f.To)},
		{f.Actor != "", "e.actor_kind = ?", string(f.Actor)},
		{f.ActorID != "", "e.actor_id = ?", f.ActorID},
		{f.Action != "", "e.action = ?", string(f.Action)},
		{f.AssetID != "", "e.target_id = ? AND e.target_kind = 'ASSET'", f.AssetID},
		{f.TargetID != "", "e.target_id = ?", f.TargetID},
	} {
		if c.given {
			and(c.condition, c.value)
		}
	}
	area := f.Area
	if f.Action != "" {
		area = f.Action.Area()
	}
	if area == "command" {
		and("e.area = 'command'")
	} else if area != "" {
		and("e.area = ? AND e.area <> 'command'", area)
	}
	if f.Outcome == activity.OK {
		and("e.outcome = 'OK'")
	} else if f.Outcome != "" {
		and("e.outcome = ? AND e.outcome <> 'OK'", string(f.Outcome))
	}
	if f.Once && f.Outcome == "" {
		and(firstEntry)
		and("(e.action <> 'policy.saved' OR e.reference = '')")
		if f.AssetID == "" && f.Text == "" {
			and("e.request_id NOT LIKE 'job/%'") // the devices of a job, which has an entry of its own
		}
	}
	if len(f.Actions) > 0 {
		and("e.action IN ("+marks(len(f.Actions))+")", anys(f.Actions)...)
	}
	words := strings.Fields(strings.ToLower(f.Text))
	words = words[:min(len(words), maxTextWords)]
	begin, end, letters := hasWord(strings.Join(words, ""))
	for _, word := range words {
		args := append(slices.Clip(letters), "%"+escapeLike(word)+"%")
		and(`(`+begin+`e.actor_name`+end+` OR `+begin+`e.target_name`+end+` OR e.target_name = '' AND
			e.target_kind = 'ASSET' AND EXISTS (SELECT 1 FROM assets s WHERE s.id = e.target_id AND s.company_id = e.company_id
				AND `+begin+`s.identification`+end+`))`, slices.Concat(args, args, args)...)
	}
	if f.Limit.Policies != nil {
		condition, values := limited(f.Limit)
		and(condition, values...)
	}
	return " WHERE " + strings.Join(where, " AND "), args
}

// maxTextWords is how many words of a filter's text are used; further ones are ignored. maxLetters is how many letters of them
// are found as capitals, too, beside those of ASCII.
const maxTextWords, maxLetters = 5, 24

// hasWord is what stands before and after a column in the condition that it has a word, with the arguments before the word's
// pattern. The words are in small letters. LOWER knows the capitals of ASCII alone, in PostgreSQL because our columns have the
// collation "C", so others are replaced.
func hasWord(words string) (begin, end string, letters []any) {
	begin, end = `LOWER(`, `)`
	for _, small := range words {
		capital := string(unicode.ToUpper(small))
		if small >= utf8.RuneSelf && capital != string(small) && !slices.Contains(letters, any(capital)) && len(letters) < 2*maxLetters {
			begin, end, letters = `REPLACE(`+begin, end+`, ?, ?)`, append(letters, capital, string(small))
		}
	}
	return begin, end + ` LIKE ? ESCAPE '\'`, letters
}

// firstEntry leaves out a command's second entry, which reports that it failed or is unconfirmed.
const firstEntry = `(e.area <> 'command' OR e.outcome IN ('OK', 'REFUSED'))`

// limited is the condition of entries that a user who is limited to some policies may see.
func limited(l activity.Limit) (string, []any) {
	if len(l.Policies) == 0 {
		return "e.actor_user_id = ?", []any{l.UserID}
	}
	policies := marks(len(l.Policies))
	args := append([]any{l.UserID}, anys(l.Policies)...)
	return `(e.actor_user_id = ? OR e.target_kind = 'POLICY' AND e.target_id IN (` + policies + `)
		OR e.target_kind = 'ASSET' AND EXISTS (SELECT 1 FROM assets s WHERE s.id = e.target_id AND s.company_id = e.company_id
			AND s.policy_id IN (` + policies + `)))`, append(args, anys(l.Policies)...)
}

// Activity implements activity.Store.
func (db *DB) Activity(ctx context.Context, f activity.Filter, after activity.Cursor, limit int) ([]activity.Entry, error) {
	where, args := activityWhere(f)
	if after.ID != "" {
		where += ` AND (e.at, e.id) < (?, ?)`
		args = append(args, millis(after.At), after.ID)
	}
	return list(ctx, db.read(), scanListed, listedActivity+where+` ORDER BY e.at DESC, e.id DESC LIMIT ?`,
		append(args, min(limit, activity.MaxPage))...)
}

// activityBucket is the number of an entry's interval. Its arguments are the begin of the first interval and
// the width of each, in milliseconds.
const activityBucket = `(e.at - CAST(? AS BIGINT)) / CAST(? AS BIGINT) AS bucket`

// ActivityDensity implements activity.Store.
func (db *DB) ActivityDensity(ctx context.Context, f activity.Filter, width time.Duration) ([]activity.Bucket, error) {
	where, args := activityWhere(f)
	from, step := millis(f.From), max(1, width.Milliseconds())
	return list(ctx, db.read(), func(r row) (b activity.Bucket, err error) {
		var n int64
		err = r.Scan(&n, &b.Count)
		b.From = instant(from + n*step)
		return b, err
	}, `SELECT `+activityBucket+`, COUNT(*) FROM activity e`+where+
		` GROUP BY bucket ORDER BY bucket`, append([]any{from, step}, args...)...)
}

// ActivityOfActors counts the entries of each caller of a kind, without second entries of commands, in intervals
// of width from a time on. The map has the caller's id.
func (db *DB) ActivityOfActors(ctx context.Context, companyID string, kind access.Kind, since time.Time,
	width time.Duration) (map[string][]activity.Bucket, error) {
	from, step := millis(since), max(1, width.Milliseconds())
	type counted struct {
		id     string
		bucket activity.Bucket
	}
	all, err := list(ctx, db.read(), func(r row) (c counted, err error) {
		var n int64
		err = r.Scan(&c.id, &n, &c.bucket.Count)
		c.bucket.From = instant(from + n*step)
		return c, err
	}, `SELECT e.actor_id, `+activityBucket+`, COUNT(*) FROM activity e
		WHERE e.company_id = ? AND e.actor_kind = ? AND e.at >= ? AND `+firstEntry+
		` GROUP BY e.actor_id, bucket ORDER BY e.actor_id, bucket`,
		from, step, companyID, string(kind), from)
	counts := map[string][]activity.Bucket{}
	for _, c := range all {
		counts[c.id] = append(counts[c.id], c.bucket)
	}
	return counts, err
}
