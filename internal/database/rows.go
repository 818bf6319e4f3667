package database

import (
	"context"
	"database/sql/driver"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/database/engine"
	"github.com/musterhq/muster/internal/fault"
)

// find is one for a row that has a name: if there is none, fault.NotFound says so.
func find[T any](ctx context.Context, c conn, noun string, scan func(row) (T, error), query string, args ...any) (T, error) {
	t, err := one(ctx, c, scan, query, args...)
	return found(t, err, noun)
}

// listed is list for a transaction, which fails with the query: then there are no rows.
func listed[T any](ctx context.Context, t *tx, scan func(row) (T, error), query string, args ...any) []T {
	all, err := list(ctx, t, scan, query, args...)
	t.check(err)
	return all
}

// valueIn is value for a transaction, which fails with the query, also where there is no row.
func valueIn[T any](ctx context.Context, t *tx, query string, args ...any) T {
	v, err := value[T](ctx, t, query, args...)
	t.check(err)
	return v
}

// pair is value for a row of two columns.
func pair[A, B any](ctx context.Context, c conn, query string, args ...any) (a A, b B, err error) {
	_, err = one(ctx, c, func(r row) (none struct{}, err error) { return none, r.Scan(&a, &b) }, query, args...)
	return a, b, err
}

// maybe reports whether there was a row, instead of engine.ErrNoRow.
func maybe[T any](t T, err error) (T, bool, error) {
	if errors.Is(err, engine.ErrNoRow) {
		return t, false, nil
	}
	return t, err == nil, err
}

// mapped returns the second column of a query by the first.
func mapped[K comparable, V any](ctx context.Context, c conn, query string, args ...any) (map[K]V, error) {
	found := map[K]V{}
	_, err := list(ctx, c, func(r row) (none struct{}, err error) {
		var key K
		var v V
		err = r.Scan(&key, &v)
		found[key] = v
		return none, err
	}, query, args...)
	return found, err
}

// found turns the absence of a row into fault.NotFound with the noun's name.
func found[T any](t T, err error, noun string) (T, error) {
	if errors.Is(err, engine.ErrNoRow) {
		return t, fault.New(fault.NotFound, "no such %s", noun)
	}
	return t, err
}

// taken turns an error because another row has the same key into fault.Refused.
func taken(err error, format string, args ...any) error {
	if engine.Unique(err) {
		return fault.New(fault.Refused, format, args...)
	}
	return err
}

// millis is an instant as it is stored; the zero time is 0.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// instant is the reverse of millis.
func instant(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// encode returns v as JSON text. Only what always can be encoded is stored.
func encode(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("database: %T cannot be encoded: %v", v, err))
	}
	return string(text)
}

// decode reads JSON text into v; an empty text leaves v as it is.
func decode(text string, v any) error {
	if text == "" {
		return nil
	}
	return json.Unmarshal([]byte(text), v)
}

// storable is a device's text as PostgreSQL takes it: a report that cannot be
// stored would come back forever.
func storable(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// anys makes arguments of values.
func anys[T any](values []T) []any {
	args := make([]any, len(values))
	for i, v := range values {
		args[i] = v
	}
	return args
}

// Flat JSON, objects and arrays of strings, is most of what a page of assets
// holds. Without escapes it is cut out of the text that the engine returned,
// several times as fast as encoding/json; with them encoding/json reads it.

// decodeMap reads a JSON object of strings; an empty text is none.
func decodeMap(text string) (map[string]string, error) {
	if text == "" {
		return nil, nil
	}
	if parts, ok := cut(text, '{', '}'); ok && len(parts)%2 == 0 {
		m := make(map[string]string, len(parts)/2)
		for i := 0; i < len(parts); i += 2 {
			m[parts[i]] = parts[i+1]
		}
		return m, nil
	}
	var m map[string]string
	err := decode(text, &m)
	return m, err
}

// decodeList reads a JSON array of strings; an empty text is none.
func decodeList(text string) ([]string, error) {
	if text == "" {
		return nil, nil
	}
	if parts, ok := cut(text, '[', ']'); ok {
		return parts, nil
	}
	var l []string
	err := decode(text, &l)
	return l, err
}

// cut returns the strings of a flat object or array as encoding/json writes
// it, names and values in turn; false for any other text.
func cut(text string, open, end byte) ([]string, bool) {
	if len(text) < 2 || text[0] != open || text[len(text)-1] != end || strings.IndexByte(text, '\\') >= 0 {
		return nil, false
	}
	// Between strings without escapes there is nothing but one mark.
	parts := make([]string, 0, strings.Count(text, `"`)/2)
	for rest := text[1:]; rest != string(end); {
		if rest[0] != '"' {
			return nil, false
		}
		length := strings.IndexByte(rest[1:], '"')
		if length < 0 {
			return nil, false
		}
		parts = append(parts, rest[1:length+1])
		rest = rest[length+2:]
		mark := byte(',')
		if open == '{' && len(parts)%2 == 1 {
			mark = ':'
		}
		switch {
		case rest == string(end):
		case rest != "" && rest[0] == mark:
			rest = rest[1:]
		default:
			return nil, false
		}
	}
	return parts, true
}

// into returns a scanner of rows whose columns fill the fields of a T, one by
// one. Where a column keeps a value in another form than the field, its field
// is one of the types below. The same fields are the arguments of an INSERT of
// these columns.
func into[T any](fields func(*T) []any) func(row) (T, error) {
	return engine.Into(fields)
}

// moment is a time that its column keeps as millis.
type moment time.Time

func at(t *time.Time) *moment { return (*moment)(t) }

func (m *moment) Scan(column any) error {
	ms, err := kept[int64](column)
	*m = moment(instant(ms))
	return err
}

func (m *moment) Value() (driver.Value, error) { return millis(time.Time(*m)), nil }

// duration is a duration that its column keeps in milliseconds.
type duration time.Duration

func (d *duration) Scan(column any) error {
	ms, err := kept[int64](column)
	*d = duration(time.Duration(ms) * time.Millisecond)
	return err
}

func (d *duration) Value() (driver.Value, error) { return time.Duration(*d).Milliseconds(), nil }

// encoded is a value that its column keeps as JSON; an empty text is none.
type encoded struct{ value any }

func (e encoded) Scan(column any) error {
	text, err := kept[string](column)
	return errors.Join(err, decode(text, e.value))
}

func (e encoded) Value() (driver.Value, error) { return encode(e.value), nil }

// document is JSON that its column keeps as it is.
type document json.RawMessage

func asText(raw *json.RawMessage) *document { return (*document)(raw) }

func (d *document) Scan(column any) error {
	text, err := kept[string](column)
	*d = document(text)
	return err
}

// Text implements engine.Texter.
func (d *document) Text() string { return string(*d) }

func (d *document) Value() (driver.Value, error) { return d.Text(), nil }

// digest is a hash that its column keeps in hexadecimal digits.
type digest []byte

func (d digest) Scan(column any) error {
	text, err := kept[string](column)
	if err == nil && len(text) != hex.EncodedLen(len(d)) {
		err = errors.New("the stored hash is damaged")
	}
	if err == nil {
		_, err = hex.Decode(d, []byte(text))
	}
	return err
}

func (d digest) Value() (driver.Value, error) { return hex.EncodeToString(d), nil }

// kept is what the driver read from a column.
func kept[T any](column any) (T, error) {
	v, ok := column.(T)
	if !ok {
		return v, fmt.Errorf("the column holds a %T instead of a %T", column, v)
	}
	return v, nil
}
