package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"strconv"
	"strings"
)

// TableCopy is one table that was copied: the same rows on both sides.
type TableCopy struct {
	Name     string
	Rows     int64
	Checksum string // SHA-256, hexadecimal, of all values in order of the primary key
}

// Copy copies a whole database into an empty one of the other engine, in one
// transaction, and compares what arrived. The source is read as it is at one moment. No
// service may run on it until the end, and a file may not change: else nothing is kept.
func Copy(ctx context.Context, from Options, to string) (copied []TableCopy, err error) {
	if postgresURL(from.URL) == postgresURL(to) {
		return nil, errors.New("both databases are of one engine: use `muster backup` and `muster restore` for SQLite, pg_dump " +
			"for PostgreSQL")
	}
	was, err := stateOf(from.URL)
	if err != nil {
		return nil, fmt.Errorf("the source: %w", err)
	}
	here, err := seenAt(ctx, from.URL)
	if err == nil {
		err = here.Check(Existing)
	}
	if err != nil {
		return nil, fmt.Errorf("the source: %w", err)
	}
	source, err := look(ctx, from.URL, &DB{now: from.Now, patient: true})
	if err != nil {
		return nil, fmt.Errorf("the source: %w", err)
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	unchanged, err := source.hold(ctx, from.URL, was)
	if err != nil {
		return nil, err
	}
	there, err := seenAt(ctx, to)
	if err == nil && !there.Empty() {
		err = there.Check(Existing)
	}
	if err != nil {
		return nil, fmt.Errorf("the target: %w", err)
	}
	target, err := Open(ctx, Options{URL: to, Now: from.Now, Changed: from.Changed, Logger: from.Logger, patient: true})
	if err != nil {
		return nil, fmt.Errorf("the target: %w", err)
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	err = target.fill(ctx, func(ctx context.Context, t Tx) error {
		err := source.Snapshot(ctx, func(ctx context.Context, c Conn) error {
			copied, err = copyTables(ctx, c, t)
			return err
		})
		if after := t.db.dialect.Events().afterCopy; err == nil && after != "" {
			err = t.Exec(ctx, after)
		}
		if err != nil {
			return err
		}
		return unchanged(ctx)
	})
	return copied, err
}

// fill runs f in a transaction that may take long.
func (db *DB) fill(ctx context.Context, f Work) error {
	if db.writer != nil {
		return db.Write(ctx, f, false)
	}
	return db.inUpgrade(ctx, db.pool, f)
}

// copiedTable is a table with its columns.
type copiedTable struct {
	name     string
	columns  []string
	kinds    []string
	key      []string
	requires []string // tables that it refers to
}

// ownTables are the tables that the target makes by itself. They are not copied.
var ownTables = []string{"versions", "applied_migrations", formerTable, "event_history"} //nolint:gochecknoglobals // a table that is never written to

func copyTables(ctx context.Context, source Conn, t Tx) ([]TableCopy, error) {
	described := source
	if t.db.writer != nil {
		described = t // SQLite describes its tables in one way on every version
	}
	tables, err := describe(ctx, described)
	if err != nil {
		return nil, err
	}
	for _, table := range tables {
		n, err := Value[int64](ctx, t, `SELECT COUNT(*) FROM `+table.name)
		if err != nil {
			return nil, fmt.Errorf("the target: %w", err)
		}
		if n > 0 {
			return nil, fmt.Errorf("the target is not empty: its table %s has %d rows; name an empty database", table.name, n)
		}
	}
	var copied []TableCopy
	for _, table := range tables {
		sent, err := table.send(ctx, source, t)
		if err != nil {
			return nil, fmt.Errorf("cannot copy the table %s: %w", table.name, err)
		}
		arrived, err := table.read(ctx, t, func([]any) error { return nil })
		if err != nil {
			return nil, fmt.Errorf("cannot read back the table %s: %w", table.name, err)
		}
		if arrived != sent {
			return nil, fmt.Errorf("the table %s differs after copying: %d rows with checksum %s were read, %d with %s arrived; "+
				"nothing was kept",
				table.name, sent.Rows, sent.Checksum, arrived.Rows, arrived.Checksum)
		}
		copied = append(copied, arrived)
	}
	return copied, nil
}

// describe lists a SQLite database's tables, each after those that it refers to.
func describe(ctx context.Context, c Conn) (sorted []copiedTable, err error) {
	names, err := List(ctx, c, ScanValue[string],
		`SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name`)
	if err != nil {
		return nil, err
	}
	var rest []copiedTable
	for _, name := range names {
		if slices.Contains(ownTables, name) {
			continue
		}
		table, err := describeTable(ctx, c, name)
		if err != nil {
			return nil, err
		}
		rest = append(rest, table)
	}
	for len(rest) > 0 {
		i := slices.IndexFunc(rest, func(t copiedTable) bool {
			return !slices.ContainsFunc(t.requires, func(name string) bool {
				return name != t.name && slices.ContainsFunc(rest, func(other copiedTable) bool { return other.name == name })
			})
		})
		if i < 0 {
			return nil, errors.New("tables refer to each other in a circle")
		}
		sorted, rest = append(sorted, rest[i]), slices.Delete(rest, i, i+1)
	}
	return sorted, nil
}

// describeTable reads the columns of a table, its primary key in order, and its references.
func describeTable(ctx context.Context, c Conn, name string) (t copiedTable, err error) {
	t.name = name
	type column struct {
		name, kind string
		key        int
	}
	columns, err := List(ctx, c, Into(func(col *column) []any { return []any{&col.name, &col.kind, &col.key} }),
		`SELECT name, type, pk FROM pragma_table_info('`+name+`') ORDER BY cid`)
	if err != nil {
		return t, err
	}
	for _, col := range columns {
		t.columns, t.kinds = append(t.columns, col.name), append(t.kinds, col.kind)
	}
	for n := 1; n <= len(columns); n++ {
		for _, col := range columns {
			if col.key == n {
				t.key = append(t.key, col.name)
			}
		}
	}
	t.requires, err = List(ctx, c, ScanValue[string], `SELECT "table" FROM pragma_foreign_key_list('`+name+`')`)
	return t, err
}

// read hands over the rows in order of the primary key, and returns their sum.
func (t copiedTable) read(ctx context.Context, c Conn, each func(values []any) error) (sum TableCopy, err error) {
	rows, err := c.Query(ctx, `SELECT `+strings.Join(t.columns, ", ")+` FROM `+t.name+` ORDER BY `+strings.Join(t.key, ", "))
	if err != nil {
		return sum, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	digest := sha256.New()
	for sum.Name = t.name; rows.Next(); sum.Rows++ {
		values := make([]any, len(t.columns))
		for i, kind := range t.kinds {
			switch kind {
			case "TEXT":
				values[i] = new(string)
			case "BOOLEAN":
				values[i] = new(bool)
			case "DOUBLE PRECISION":
				values[i] = new(float64)
			default:
				values[i] = new(int64)
			}
		}
		if err := rows.Scan(values...); err != nil {
			return sum, err
		}
		for i, v := range values {
			values[i] = addTo(digest, v)
		}
		if err := each(values); err != nil {
			return sum, err
		}
	}
	sum.Checksum = hex.EncodeToString(digest.Sum(nil))
	return sum, rows.Err()
}

// addTo adds a value to the sum, and returns it without its pointer.
func addTo(digest hash.Hash, pointer any) (v any) {
	text := ""
	switch p := pointer.(type) {
	case *string:
		v, text = *p, *p
	case *bool:
		v, text = *p, strconv.FormatBool(*p)
	case *int64:
		v, text = *p, strconv.FormatInt(*p, 10)
	case *float64:
		v, text = *p, strconv.FormatFloat(*p, 'g', -1, 64)
	}
	_, _ = io.WriteString(digest, strconv.Itoa(len(text))+":"+text+",") // a hash never fails
	return v
}

// copyRows is how many rows one statement inserts.
const copyRows = 100

// send reads the rows from one side and inserts them on the other.
func (t copiedTable) send(ctx context.Context, from Conn, to Tx) (TableCopy, error) {
	var batch []any
	insert := func() error {
		if len(batch) == 0 {
			return nil
		}
		row := "(" + Marks(len(t.columns)) + ")"
		err := to.Exec(ctx, `INSERT INTO `+t.name+` (`+strings.Join(t.columns, ", ")+`) VALUES `+
			strings.TrimSuffix(strings.Repeat(row+", ", len(batch)/len(t.columns)), ", "), batch...)
		batch = nil
		return err
	}
	sum, err := t.read(ctx, from, func(values []any) error {
		if err := t.checkTexts(values); err != nil {
			return err
		}
		if batch = append(batch, values...); len(batch) < copyRows*len(t.columns) {
			return nil
		}
		return insert()
	})
	if err != nil {
		return sum, err
	}
	return sum, insert()
}

// checkTexts names the row and the column of a text that PostgreSQL cannot keep.
func (t copiedTable) checkTexts(values []any) error {
	for i, v := range values {
		if text, is := v.(string); !is || isText(text) {
			continue
		}
		row := make([]string, len(t.key))
		for n, column := range t.key {
			row[n] = fmt.Sprintf("%s = %#v", column, values[slices.Index(t.columns, column)])
		}
		return fmt.Errorf("its column %s has a text that is not UTF-8 or has the character NUL, in the row with %s: correct or delete "+
			"that row in the source, and copy again",
			t.columns[i], strings.Join(row, ", "))
	}
	return nil
}
