package database

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

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

// marks returns n placeholders for an IN list.
func marks(n int) string { return strings.TrimSuffix(strings.Repeat("?, ", n), ", ") }

// anys makes arguments of values.
func anys[T any](values []T) []any {
	args := make([]any, len(values))
	for i, v := range values {
		args[i] = v
	}
	return args
}
