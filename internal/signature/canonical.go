package signature

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Canonical writes a value as JSON in the form of RFC 8785, which has one text for
// each value: members sorted by the UTF-16 code units of their names, no spaces, one
// way to escape. Of numbers it takes integers that every reader knows exactly.
func Canonical(value any) ([]byte, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return Normal(text)
}

// Normal is the canonical form of a JSON text.
func Normal(text []byte) ([]byte, error) {
	if !utf8.Valid(text) {
		return nil, errors.New("the text is not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return nil, err
	}
	if d.More() {
		return nil, errors.New("the text has more than one value")
	}
	return appendValue(nil, value)
}

// IsCanonical reports whether a text is JSON in the canonical form.
func IsCanonical(text []byte) bool {
	normal, err := Normal(text)
	return err == nil && bytes.Equal(normal, text)
}

func appendValue(b []byte, value any) ([]byte, error) {
	switch v := value.(type) {
	case nil:
		return append(b, "null"...), nil
	case bool:
		return strconv.AppendBool(b, v), nil
	case json.Number:
		return appendInteger(b, v)
	case string:
		return appendString(b, v), nil
	case []any:
		return appendArray(b, v)
	case map[string]any:
		return appendObject(b, v)
	}
	return nil, fmt.Errorf("%T has no canonical form", value)
}

// greatestInteger is what a double holds exactly, as RFC 8785 takes numbers.
const greatestInteger = 1<<53 - 1

func appendInteger(b []byte, n json.Number) ([]byte, error) {
	i, err := strconv.ParseInt(n.String(), 10, 64)
	if err != nil || i > greatestInteger || i < -greatestInteger || n.String() == "-0" {
		return nil, fmt.Errorf("%s is no integer that every reader knows exactly", n)
	}
	return strconv.AppendInt(b, i, 10), nil
}

func appendArray(b []byte, all []any) (_ []byte, err error) {
	b = append(b, '[')
	for i, one := range all {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = appendValue(b, one); err != nil {
			return nil, err
		}
	}
	return append(b, ']'), nil
}

func appendObject(b []byte, members map[string]any) (_ []byte, err error) {
	names := make([]string, 0, len(members))
	for name := range members {
		names = append(names, name)
	}
	slices.SortFunc(names, compareUTF16)
	b = append(b, '{')
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, name), ':')
		if b, err = appendValue(b, members[name]); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

// compareUTF16 orders as UTF-16 does, where characters above U+FFFF come before
// those from U+E000.
func compareUTF16(x, y string) int {
	return slices.CompareFunc(utf16.Encode([]rune(x)), utf16.Encode([]rune(y)), cmp.Compare[uint16])
}

func appendString(b []byte, text string) []byte {
	b = append(b, '"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r > 0x1f:
			b = utf8.AppendRune(b, r)
		case r >= '\b' && r <= '\r' && r != '\v':
			b = append(b, '\\', "btn_fr"[r-'\b'])
		default:
			b = fmt.Appendf(b, `\u%04x`, r)
		}
	}
	return append(b, '"')
}
