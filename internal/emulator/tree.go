package emulator

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"google.golang.org/api/googleapi"

	"github.com/musterhq/muster/internal/discovery"
)

// toTree gives a value's JSON as a tree, with numbers as json.Number.
func toTree(value any) (map[string]any, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	tree := map[string]any{}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return tree, decoder.Decode(&tree)
}

// marshaled is a tree as JSON.
func marshaled(tree map[string]any) googleapi.RawMessage {
	text, err := json.Marshal(tree)
	if err != nil {
		panic(err) // a decoded JSON tree always marshals
	}
	return text
}

// fromTree reads a tree into a value.
func fromTree(tree map[string]any, value any) error {
	text, err := json.Marshal(tree)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, value)
}

// parseMask reads an updateMask: paths of members of the schema, with commas
// between them. Members in fixed can't be changed.
func parseMask(d *discovery.Document, schema, mask string, fixed ...string) ([][]string, error) {
	var paths [][]string
	for path := range strings.SplitSeq(mask, ",") {
		path = lowerCamel(strings.TrimSpace(path))
		if _, ok := d.Property(schema, path); !ok {
			return nil, invalid("Invalid value at 'update_mask': %q is not a field of %s.", path, schema)
		}
		segments := strings.Split(path, ".")
		if slices.Contains(fixed, segments[0]) {
			return nil, invalid("Invalid value at 'update_mask': %q cannot be modified.", path)
		}
		paths = append(paths, segments)
	}
	return paths, nil
}

// lowerCamel turns a protocol name into a JSON name; a JSON name stays.
func lowerCamel(name string) string {
	var b strings.Builder
	up := false
	for _, r := range name {
		switch {
		case r == '_':
			up = true
		case up:
			b.WriteString(strings.ToUpper(string(r)))
			up = false
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// applyMask copies the masked members from patch to target. A member that the
// patch does not have is cleared.
func applyMask(target, patch map[string]any, paths [][]string) {
	for _, path := range paths {
		applyPath(target, patch, path)
	}
}

func applyPath(target, patch map[string]any, path []string) {
	name := path[0]
	if len(path) == 1 {
		if value, ok := patch[name]; ok {
			target[name] = value
		} else {
			delete(target, name)
		}
		return
	}
	inner, _ := patch[name].(map[string]any)
	if inner == nil {
		inner = map[string]any{}
	}
	under, _ := target[name].(map[string]any)
	if under == nil {
		if len(inner) == 0 {
			return
		}
		under = map[string]any{}
		target[name] = under
	}
	applyPath(under, inner, path[1:])
}
