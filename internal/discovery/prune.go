package discovery

import (
	"encoding/json"
	"strconv"
)

// Prune drops from a decoded object, in place, every member that has its
// protocol's default: false, zero, empty text, an empty list or map, an enum's
// first value. The vendor's answers leave these out; a message without members
// stays. The object must be an instance of the schema.
func (d *Document) Prune(schemaName string, object map[string]any) {
	if s := d.schemas[schemaName]; s != nil {
		d.prune(s, object)
	}
}

func (d *Document) prune(s *schema, object map[string]any) {
	for name, value := range object {
		property := s.Properties[name]
		if property == nil {
			continue
		}
		property = d.resolve(property)
		if isDefault(property, value) {
			delete(object, name)
			continue
		}
		d.pruneInside(property, value)
	}
}

func (d *Document) pruneInside(s *schema, value any) {
	switch value := value.(type) {
	case map[string]any:
		if s.Properties != nil {
			d.prune(s, value)
		} else if s.AdditionalProperties != nil {
			for _, entry := range value {
				d.pruneInside(d.resolve(s.AdditionalProperties), entry)
			}
		}
	case []any:
		if s.Items != nil {
			for _, element := range value {
				d.pruneInside(d.resolve(s.Items), element)
			}
		}
	}
}

func isDefault(s *schema, value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case bool:
		return !value && s.Type == "boolean"
	case string:
		switch {
		case s.Type == "any":
			return false
		case len(s.Enum) > 0:
			return value == s.Enum[0]
		case s.Format == "int64" || s.Format == "uint64":
			return value == "0"
		}
		return value == ""
	case json.Number:
		n, err := strconv.ParseFloat(string(value), 64)
		return err == nil && n == 0 && s.Type != "any"
	case []any:
		return len(value) == 0 && s.Type == "array"
	case map[string]any:
		return len(value) == 0 && s.Properties == nil && s.AdditionalProperties != nil && s.ID == ""
	default:
		return false
	}
}
