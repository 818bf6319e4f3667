package emulator

import (
	"encoding/base64"
	"encoding/json"
	"sort"
	"strconv"
	"strings"

	"github.com/musterhq/muster/internal/discovery"
	"github.com/musterhq/muster/internal/slice"
)

// selectFields cuts an answer down to a fields expression, such as
// "nextPageToken,devices(name,state)" or "devices/name". "*" is every field.
func selectFields(text []byte, expression string) ([]byte, error) {
	wanted, rest, ok := parseFields(expression)
	if !ok || rest != "" {
		return nil, invalid("Invalid field selection %s", expression)
	}
	var tree any
	if err := json.Unmarshal(text, &tree); err != nil {
		return nil, err
	}
	return json.Marshal(wanted.cut(tree))
}

// checkFields refuses a fields expression that names what the answer's schema
// does not have.
func checkFields(document *discovery.Document, schema, expression string) error {
	if expression == "" {
		return nil
	}
	wanted, rest, ok := parseFields(expression)
	if !ok || rest != "" || !wanted.in(document, schema, "") {
		return invalid("Invalid field selection %s", expression)
	}
	return nil
}

// in reports whether every name is a member of the schema. What lies below "*"
// and in members of any shape is not looked at.
func (f fieldSet) in(document *discovery.Document, schema, path string) bool {
	for name, inner := range f {
		if name == "*" {
			continue
		}
		property, ok := document.Property(schema, path+name)
		if !ok {
			return false
		}
		if len(inner) > 0 && property.Schema != "" && !inner.in(document, schema, path+name+".") {
			return false
		}
	}
	return true
}

// fieldSet is a tree of wanted members; an empty one wants all.
type fieldSet map[string]fieldSet

// parseFields reads a comma-separated list up to its end or a closing bracket.
func parseFields(text string) (fields fieldSet, rest string, ok bool) {
	fields = fieldSet{}
	for {
		at := fields
		for {
			end := strings.IndexAny(text, ",/.()")
			if end < 0 {
				end = len(text)
			}
			name := text[:end]
			if name == "" {
				return nil, "", false
			}
			if at[name] == nil {
				at[name] = fieldSet{}
			}
			inner := at[name]
			text = text[end:]
			if strings.HasPrefix(text, "/") || strings.HasPrefix(text, ".") { // a dot in field masks
				at, text = inner, text[1:]
				continue
			}
			if strings.HasPrefix(text, "(") {
				sub, after, ok := parseFields(text[1:])
				if !ok || !strings.HasPrefix(after, ")") {
					return nil, "", false
				}
				at[name] = sub
				text = after[1:]
			}
			break
		}
		if !strings.HasPrefix(text, ",") {
			return fields, text, true
		}
		text = text[1:]
	}
}

func (f fieldSet) cut(tree any) any {
	if len(f) == 0 {
		return tree
	}
	switch tree := tree.(type) {
	case map[string]any:
		kept := map[string]any{}
		for name, value := range tree {
			if inner, ok := f[name]; ok {
				kept[name] = inner.cut(value)
			} else if inner, ok := f["*"]; ok {
				kept[name] = inner.cut(value)
			}
		}
		return kept
	case []any:
		return slice.Map(tree, f.cut)
	default:
		return tree
	}
}

// page cuts a page out of items, which are sorted by their keys, and gives each
// as show answers it. The token says
// after which key the next page begins, so that items which come and go between
// two pages are neither repeated nor skipped. A token is good for the same list
// alone. Sizes above the most are cut.
func page[T, R any](c *call, items []T, key func(T) string, show func(T) R, usual, most int) ([]R, string, error) {
	size := usual
	if text := c.query.Get("pageSize"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return nil, "", invalid("Page size must not be negative.")
		}
		if n > 0 {
			size = min(n, most)
		}
	}
	start, prefix := 0, c.method.ID+" "+c.name()+" after:"
	if token := c.query.Get("pageToken"); token != "" {
		decoded, err := base64.RawURLEncoding.DecodeString(token)
		after, ok := strings.CutPrefix(string(decoded), prefix)
		if err != nil || !ok {
			return nil, "", invalid("Invalid page token.")
		}
		start = sort.Search(len(items), func(i int) bool { return key(items[i]) > after })
	}
	end := min(start+size, len(items))
	next := ""
	if end < len(items) {
		next = base64.RawURLEncoding.EncodeToString([]byte(prefix + key(items[end-1])))
	}
	return slice.Map(items[start:end], show), next, nil
}
