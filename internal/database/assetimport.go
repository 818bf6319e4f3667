package database

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"

	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/database/engine"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/resource"
)

// errDry ends an import that is to write nothing.
var errDry = errors.New("nothing is to be written")

// Import implements asset.Store. Imports of a company wait for each other and for
// devices that join, see holdInventory; a dry one only reads, and waits for none. Lines with a
// serial number are matched some at a time, so that a large file takes little memory; those without
// one are matched together, because they share names.
func (db *DB) Import(ctx context.Context, companyID string, lines []asset.Line, o asset.ImportOptions) (done asset.Imported, err error) {
	if o.Dry {
		err = db.engine.Snapshot(ctx, func(ctx context.Context, c conn) error {
			i := newImport(c, nil, companyID)
			defer func() { done = i.done }()
			return i.all(ctx, lines)
		})
		return whole(done), err
	}
	err = db.write(engine.Long(ctx), func(ctx context.Context, t *tx) error {
		i := newImport(t, t, companyID)
		defer func() { done = i.done }()
		t.check(holdInventory(ctx, t, companyID))
		_, err := findCompany(ctx, t, `c.id = ?`, companyID)
		t.check(err)
		if err := errors.Join(i.all(ctx, lines), i.insert(ctx)); err != nil {
			return err
		}
		i.done.Moved = len(i.done.Errors) == 0 && o.Plan != "" && o.Plan != i.done.Plan
		if len(i.done.Errors) > 0 || i.done.Moved || i.done.Made+i.done.Changed == 0 {
			return errDry
		}
		t.changed(companyID, "asset", "")
		i.counts.save(ctx, t)
		return db.record(ctx, t, companyID, activity.Event{Action: activity.AssetsImported, Changes: []activity.Change{
			{Field: "assets", After: strconv.Itoa(i.done.Made)}, {Field: "changed", After: strconv.Itoa(i.done.Changed)}}})
	})
	if errors.Is(err, errDry) {
		err = nil
	}
	return whole(done), err
}

// whole is what an import did: with errors nothing.
func whole(done asset.Imported) asset.Imported {
	if len(done.Errors) > 0 {
		slices.SortStableFunc(done.Errors, func(a, b asset.LineError) int { return a.Line - b.Line })
		done.Made, done.Changed, done.Left, done.Plan, done.Sample = 0, 0, 0, "", nil
	}
	return done
}

// importing is an import under way. What it writes is taken back if a line is at fault.
type importing struct {
	c         conn
	t         *tx // nil: nothing is written
	companyID string
	counts    counts
	made      []asset.Asset // that wait to be inserted
	plan      *asset.Planning
	done      asset.Imported
}

func newImport(c conn, t *tx, companyID string) *importing {
	return &importing{c: c, t: t, companyID: companyID, counts: counts{}, plan: asset.NewPlanning(),
		done: asset.Imported{Errors: []asset.LineError{}}}
}

// all makes or changes the assets that all lines mean.
func (i *importing) all(ctx context.Context, lines []asset.Line) error {
	var nameless []asset.Line // they have no serial number
	var some []asset.Line
	for _, l := range lines {
		if l.SerialKey() == "" {
			nameless = append(nameless, l)
		} else if some = append(some, l); len(some) == meantRows {
			if err := i.lines(ctx, some); err != nil {
				return err
			}
			some = some[:0]
		}
	}
	defer func() { i.plan.Finish(&i.done) }()
	return errors.Join(i.lines(ctx, some), i.lines(ctx, nameless))
}

// lines makes or changes the assets that lines mean.
func (i *importing) lines(ctx context.Context, lines []asset.Line) error {
	if len(lines) == 0 {
		return nil
	}
	there, err := meantBy(ctx, i.c, i.companyID, lines)
	if err != nil {
		return err
	}
	meant, wrong := asset.Match(lines, there)
	i.done.Errors = append(i.done.Errors, wrong...)
	if len(wrong) > 0 {
		return nil
	}
	for n, l := range lines {
		err := i.line(ctx, l, there, meant[n])
		if fault.CodeOf(err) == fault.InvalidArguments {
			i.done.Errors = append(i.done.Errors, asset.LineError{Line: l.Number, Message: lineFault(err)})
		} else if err != nil {
			return err
		}
	}
	return nil
}

func (i *importing) line(ctx context.Context, l asset.Line, there []asset.Asset, meant int) error {
	if meant >= 0 {
		return i.change(ctx, l, there[meant])
	}
	a := asset.Asset{CompanyID: i.companyID, Status: asset.Pending}
	if err := l.Apply(&a); err != nil {
		return err
	}
	if err := i.plan.Add(asset.PlanLine(l, asset.Asset{}, a)); err != nil {
		return err
	}
	i.done.Made++
	if i.t == nil {
		return nil
	}
	a.ID, a.CreatedAt = resource.NewID(), i.t.db.now()
	if i.made = append(i.made, a); len(i.made) == importRows {
		return i.insert(ctx)
	}
	return nil
}

// change changes an asset as a line says. What is written follows from the row as it is
// under its lock.
func (i *importing) change(ctx context.Context, l asset.Line, seen asset.Asset) error {
	after := seen
	if err := l.Apply(&after); err != nil {
		return err
	}
	planned := asset.PlanLine(l, seen, after)
	if len(planned.Changes) == 0 {
		i.done.Left++
		return i.plan.Add(planned)
	}
	i.done.Changed++
	if i.t == nil {
		return i.plan.Add(planned)
	}
	before, after, err := reimport(ctx, i.t, l, seen, i.counts)
	if err != nil {
		return err
	}
	return i.plan.Add(asset.PlanLine(l, before, after))
}

// insert inserts what waits for it.
func (i *importing) insert(ctx context.Context) error {
	if len(i.made) == 0 || len(i.done.Errors) > 0 {
		return nil
	}
	err := insertAssets(ctx, i.t, i.made, i.counts)
	i.made = i.made[:0]
	return err
}

// meantRows is how many lines one statement finds the assets of.
const meantRows = 200

// meantBy are the assets that lines may mean, those made first first.
func meantBy(ctx context.Context, c conn, companyID string, lines []asset.Line) (all []asset.Asset, err error) {
	serials, names := map[string]bool{}, map[string]bool{}
	for _, l := range lines {
		if key := l.SerialKey(); key != "" {
			serials[key] = true
		} else {
			names[l.Identification] = true
		}
	}
	for _, by := range []struct {
		values map[string]bool
		where  string
	}{
		{serials, ` AND a.serial_key <> '' AND a.serial_key IN (`},
		{names,
			` AND a.serial_key = '' AND a.status IN ('ACTIVE', 'INACTIVE', 'SYNCHRONIZING', 'PENDING', 'DELETED', 'ARCHIVED') AND a.identification IN (`},
	} {
		for some := range slices.Chunk(slices.Sorted(maps.Keys(by.values)), meantRows) {
			args := append([]any{companyID, companyID}, anys(filled(some, meantRows))...) // one text to prepare
			found, err := list(ctx, c, scanAsset, `SELECT `+assetColumns+` FROM assets a WHERE a.company_id = ?`+
				by.where+marks(meantRows)+`)
				ORDER BY a.created_at, a.id`, args...)
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
		}
	}
	return all, nil
}

// lineFault is what is wrong with a line, in words.
func lineFault(err error) string {
	f := fault.From(err)
	text := f.Detail
	for _, field := range f.Fields {
		text += ": " + field.Field + " " + field.Message
	}
	return text
}

// reimport writes what a line changes, and returns the asset before and after it. It locks the asset so
// that commands to its device, which refer to the row, do not wait until the import ends.
func reimport(ctx context.Context, t *tx, l asset.Line, seen asset.Asset, counts counts) (before, after asset.Asset, err error) {
	h, err := holdAs(ctx, t, seen.ID, t.hold())
	t.check(err)
	if before, err = findAsset(ctx, t, seen.CompanyID, seen.ID); err != nil {
		return before, after, err
	}
	after = before
	if err := l.Apply(&after); err != nil {
		return before, after, err
	}
	h.count(counts, -1)
	if h.status == archived {
		h.status, h.archived = asset.Status(h.archived), ""
	}
	if !h.status.Enrolled() {
		h.specifications = encodeSome(after.Specifications)
		h.serialKey, h.brandKey = asset.IdentityKey(after.Specifications["serialNumber"]), asset.IdentityKey(after.Specifications["brand"])
	}
	h.say(before, after)
	h.count(counts, 1)
	return before, after, h.save(ctx, t)
}
