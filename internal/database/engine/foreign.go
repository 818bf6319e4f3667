package engine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// schemaObject is one entry of SQLite's list of tables, indexes, views and triggers.
type schemaObject struct{ kind, name, text string }

func objectFields(o *schemaObject) []any { return []any{&o.kind, &o.name, &o.text} }

// Foreign reports what a SQLite file has besides Muster's tables and indexes, or instead of
// them: a trigger or a view runs inside Muster's own statements. Of a file that a
// newer Muster changed, only triggers and views are known to be foreign. It changes
// nothing. PostgreSQL is the business of those who run it.
func Foreign(ctx context.Context, url string) error {
	return examine(ctx, url, foreign)
}

// examine looks at a SQLite file, if the URL is of one that there is. It changes nothing.
func examine(ctx context.Context, url string, look func(context.Context, *sql.DB) error) error {
	path, embedded := strings.CutPrefix(url, "sqlite:")
	if !embedded {
		return nil
	}
	pool, err := lookSQLite(ctx, path)
	if err == nil && pool != nil {
		err = errors.Join(look(ctx, pool), pool.Close())
	}
	return wrapSQLite(path, err)
}

func foreign(ctx context.Context, pool *sql.DB) error {
	c := session{db: &DB{dialect: sqliteDialect{}}, run: pool}
	there, err := objects(ctx, c)
	if err != nil {
		return err
	}
	for _, o := range there {
		if o.kind != "table" && o.kind != "index" {
			return fmt.Errorf("the file has the %s %q, which Muster did not make and which can change what it does", o.kind, o.name)
		}
	}
	done, err := applied(ctx, c, sqliteDialect{})
	if err != nil || len(done) == 0 {
		return err
	}
	own, err := ownObjects(ctx, done)
	if err != nil || own == nil {
		return err
	}
	for _, o := range there {
		known, ours := own[o.kind+" "+o.name]
		switch {
		case !ours:
			return fmt.Errorf("the file has the %s %q, which Muster did not make", o.kind, o.name)
		case !slices.Equal(known, parts(o.text)):
			return fmt.Errorf("the %s %q of the file is not as Muster makes it", o.kind, o.name)
		}
		delete(own, o.kind+" "+o.name)
	}
	for name := range own {
		return fmt.Errorf("the file lacks the %s of Muster", name)
	}
	return nil
}

// engines are the tables that SQLite keeps for itself, and the one by which the first version
// is refused: its form does not matter, because nothing reads it.
var engines = []string{"sqlite_sequence", "sqlite_stat1", "sqlite_stat4", formerTable} //nolint:gochecknoglobals // a table that is never written to

// objects lists what a file consists of, without what belongs to SQLite: its own
// tables, and indexes of keys, which have no text.
func objects(ctx context.Context, c Conn) ([]schemaObject, error) {
	all, err := List(ctx, c, Into(objectFields), `SELECT type, name, COALESCE(sql, '') FROM sqlite_master ORDER BY type DESC, name`)
	return slices.DeleteFunc(all, func(o schemaObject) bool {
		return o.kind == "table" && slices.Contains(engines, o.name) || o.kind == "index" && o.text == ""
	}), err
}

// ownObjects returns what the migrations make in an empty file, by kind and name;
// nil: this program does not know all of them.
func ownObjects(ctx context.Context, migrations []int64) (own map[string][]string, err error) {
	pool, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return nil, err
	}
	defer func() { _ = pool.Close() }()
	pool.SetMaxOpenConns(1) // each connection would have a memory of its own
	c := session{db: &DB{dialect: sqliteDialect{}}, run: pool}
	all, err := allMigrations(sqliteDialect{})
	if err != nil {
		return nil, err
	}
	for _, m := range all {
		if i := slices.Index(migrations, m.version); i >= 0 {
			migrations = slices.Delete(slices.Clone(migrations), i, i+1)
			if err := c.Exec(ctx, m.text); err != nil {
				return nil, fmt.Errorf("%s: %w", m.name, err)
			}
		}
	}
	if slices.ContainsFunc(migrations, func(version int64) bool { return version > 0 }) {
		return nil, nil
	}
	made, err := objects(ctx, c)
	own = map[string][]string{}
	for _, o := range made {
		own[o.kind+" "+o.name] = parts(o.text)
	}
	return own, err
}

var (
	sqlComment = regexp.MustCompile(`(?m)--.*$`)
	sqlBlank   = regexp.MustCompile(`\s+`)
)

// parts are what a CREATE statement consists of, sorted: migrations that were released out
// of their order add their columns in another one.
func parts(text string) []string {
	text = sqlBlank.ReplaceAllString(sqlComment.ReplaceAllString(text, " "), " ")
	open := strings.IndexByte(text, '(')
	if open < 0 {
		return []string{text}
	}
	found, depth, from := []string{strings.TrimSpace(text[:open])}, 0, open+1
	for i := open; i < len(text); i++ {
		switch c := text[i]; {
		case c == '(':
			depth++
		case c == '\'' || c == '"':
			if end := strings.IndexByte(text[i+1:], c); end >= 0 {
				i += end + 1
			}
		case c == ')' && depth > 1:
			depth--
		case c == ')' || c == ',' && depth == 1:
			found = append(found, strings.TrimSpace(text[from:i]))
			from = i + 1
			if c == ')' {
				found = append(found, strings.TrimSpace(text[from:]))
				slices.Sort(found)
				return found
			}
		}
	}
	return []string{text}
}
