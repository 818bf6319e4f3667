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
