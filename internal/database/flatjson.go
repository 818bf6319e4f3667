package database

import "strings"

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
