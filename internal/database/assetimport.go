package database

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"

	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/resource"
)

// errDry ends an import that is to write nothing.
var errDry = errors.New("nothing is to be written")

// Import implements asset.Importer. Imports of a company wait for each other and for
// devices that join. Lines with a serial number are matched some at a time, so that a
// large file takes little memory; those without one are matched together, because they
// share names.
func (db *DB) Import(ctx context.Context, companyID string, lines []asset.Line, dry bool) (done asset.Imported, err error) {
	err = db.write(ctx, func(ctx context.Context, t *tx) error {
		i := importing{t: t, companyID: companyID, counts: counts{}, done: asset.Imported{Errors: []asset.LineError{}}}
		defer func() { done = i.done }()
		if err := holdCompany(ctx, t, companyID); err != nil {
			return err
		}
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
		if err := errors.Join(i.lines(ctx, some), i.lines(ctx, nameless), i.insert(ctx)); err != nil {
			return err
		}
		if dry || len(i.done.Errors) > 0 || i.done.Made+i.done.Changed == 0 {
			return errDry
		}
		t.changed(companyID, "asset", "")
		return errors.Join(i.counts.save(ctx, t), db.record(ctx, t, companyID, activity.Event{Action: activity.AssetsImported, Changes: []activity.Change{
			{Field: "assets", After: strconv.Itoa(i.done.Made)}, {Field: "changed", After: strconv.Itoa(i.done.Changed)}}}))
	})
	if errors.Is(err, errDry) {
		err = nil
	}
	if len(done.Errors) > 0 {
		slices.SortStableFunc(done.Errors, func(a, b asset.LineError) int { return a.Line - b.Line })
		done.Made, done.Changed, done.Left = 0, 0, 0
	}
	return done, err
}

// importing is an import under way. What it writes is taken back if a line is at fault.
type importing struct {
	t         *tx
	companyID string
	counts    counts
	made      []asset.Asset // that wait to be inserted
	done      asset.Imported
}

// lines makes or changes the assets that lines mean.
func (i *importing) lines(ctx context.Context, lines []asset.Line) error {
	if len(lines) == 0 {
		return nil
	}
	there, err := meantBy(ctx, i.t, i.companyID, lines)
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
	if meant < 0 {
		a := asset.Asset{ID: resource.NewID(), CompanyID: i.companyID, Status: asset.Pending, CreatedAt: i.t.db.now()}
		if err := l.Apply(&a); err != nil {
			return err
		}
		i.done.Made++
		if i.made = append(i.made, a); len(i.made) == importRows {
			return i.insert(ctx)
		}
		return nil
	}
	changed, err := reimport(ctx, i.t, l, there[meant], i.counts)
	if changed {
		i.done.Changed++
	} else if err == nil {
		i.done.Left++
	}
	return err
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
func meantBy(ctx context.Context, t *tx, companyID string, lines []asset.Line) (all []asset.Asset, err error) {
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
		{names, ` AND a.serial_key = '' AND a.status IN ('ACTIVE', 'INACTIVE', 'SYNCHRONIZING', 'PENDING', 'DELETED', 'ARCHIVED') AND a.identification IN (`},
	} {
		for some := range slices.Chunk(slices.Sorted(maps.Keys(by.values)), meantRows) {
			args := []any{companyID, companyID}
			for i := range meantRows { // the list is filled up: one text to prepare
				args = append(args, some[min(i, len(some)-1)])
			}
			found, err := list(ctx, t, scanAsset, `SELECT `+assetColumns+` FROM assets a WHERE a.company_id = ?`+by.where+marks(meantRows)+`)
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

// reimport changes an asset as a line says, and reports whether anything changed. What is
// written follows from the row as it is under its lock.
func reimport(ctx context.Context, t *tx, l asset.Line, seen asset.Asset, counts counts) (bool, error) {
	if changes, err := changes(l, seen); err != nil || !changes {
		return false, err
	}
	h, before, err := holdAsset(ctx, t, seen.CompanyID, seen.ID)
	if err != nil {
		return false, err
	}
	after := before
	if err := l.Apply(&after); err != nil {
		return false, err
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
	return true, h.save(ctx, t)
}

// changes reports whether a line changes an asset.
func changes(l asset.Line, before asset.Asset) (bool, error) {
	after := before
	err := l.Apply(&after)
	return len(asset.Differences(before, after)) > 0 || before.Archived != after.Archived || !maps.Equal(before.Specifications, after.Specifications), err
}
