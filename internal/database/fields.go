package database

import (
	"database/sql/driver"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/musterhq/muster/internal/database/engine"
)

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

func lasting(d *time.Duration) *duration { return (*duration)(d) }

func (d *duration) Scan(column any) error {
	ms, err := kept[int64](column)
	*d = duration(time.Duration(ms) * time.Millisecond)
	return err
}

func (d *duration) Value() (driver.Value, error) { return time.Duration(*d).Milliseconds(), nil }

// encoded is a value that its column keeps as JSON; an empty text is none.
type encoded struct{ value any }

func asJSON(v any) encoded { return encoded{v} }

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
