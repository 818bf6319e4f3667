package discovery

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/musterhq/muster/internal/phrase"
)

// Validate checks that a JSON document is an instance of a schema. The error is
// an [*Error] with all that is wrong; null members count as absent.
func (d *Document) Validate(schemaName string, document []byte) error {
	_, err := d.decode(schemaName, document, false)
	return err
}

// Decode checks a JSON document like [Document.Validate] and gives its members:
// objects as map[string]any, lists as []any, numbers as json.Number. Members
// that are null are left out. An empty document is an empty object. Like the
// vendor's parser it takes further spellings of numbers and enum values, and
// gives the usual ones.
func (d *Document) Decode(schemaName string, document []byte) (map[string]any, error) {
	return d.decode(schemaName, document, true)
}

func (d *Document) decode(schemaName string, document []byte, lenient bool) (map[string]any, error) {
	s := d.schemas[schemaName]
	if s == nil {
		return nil, fmt.Errorf("discovery document %s has no schema %q", d.Name, schemaName)
	}
	if len(document) == 0 {
		return map[string]any{}, nil
	}
	tree, err := readTree(document)
	if err != nil {
		return nil, &Error{Violations: []Violation{{Description: "Invalid JSON payload received. " + err.Error() + "."}}}
	}
	object, ok := tree.(map[string]any)
	if !ok {
		return nil,
			&Error{Violations: []Violation{
				{Description: `Invalid JSON payload received. Unknown name "": Root element must be a message.`}}}
	}
	c := checker{document: d, lenient: lenient}
	c.object(object, s, place{field: rootName(schemaName)})
	if err := c.found.orNil(); err != nil {
		return nil, err
	}
	return object, nil
}

// rootName is the vendor's name of a request's body: that of the resource, or
// nothing where the body is the whole request.
func rootName(schemaName string) string {
	if strings.HasSuffix(schemaName, "Request") {
		return ""
	}
	return snake(strings.ToLower(schemaName[:1]) + schemaName[1:])
}

// place is where the checker is.
type place struct {
	field       string
	owner, name string // schema and property, to name an enum's type
}

func (p place) member(owner, name string) place {
	field := snake(name)
	if p.field != "" {
		field = p.field + "." + field
	}
	return place{field: field, owner: owner, name: name}
}

func (p place) element(i int, below string) place {
	p.field += "[" + strconv.Itoa(i) + "]" + below
	return p
}

type checker struct {
	document *Document
	lenient  bool
	found    Error
}

// object checks the members of a message and drops those that are null.
func (c *checker) object(object map[string]any, s *schema, at place) {
	for _, name := range slices.Sorted(maps.Keys(object)) {
		value := object[name]
		property := s.Properties[name]
		switch {
		case property == nil && s.AdditionalProperties != nil:
			object[name] = c.value(value, s.AdditionalProperties, at.member(s.ID, name))
		case property == nil:
			c.unknown(name, at)
		case value == nil:
			delete(object, name)
		default:
			object[name] = c.value(value, property, at.member(s.ID, name))
		}
	}
}

func (c *checker) unknown(name string, at place) {
	where := ""
	if at.field != "" {
		where = " at '" + at.field + "'"
	}
	c.found.add(at.field, fmt.Sprintf("Invalid JSON payload received. Unknown name %q%s: Cannot find field.", name, where))
}

// value checks a value and returns it in its usual spelling.
func (c *checker) value(value any, s *schema, at place) any {
	if s.Ref != "" {
		s = c.document.resolve(s)
		at.owner = s.ID
	}
	if c.lenient {
		value = s.canonical(value)
	}
	switch s.Type {
	case "any":
	case "object":
		c.objectOrMap(value, s, at)
	case "array":
		c.array(value, s, at)
	case "boolean":
		if _, ok := value.(bool); !ok {
			c.invalid(at, "TYPE_BOOL", value, "")
		}
	case "integer", "number":
		if problem := checkNumber(value, s); problem != "" {
			c.invalid(at, problem, value, "")
		}
	default:
		c.text(value, s, at)
	}
	return value
}

func (c *checker) objectOrMap(value any, s *schema, at place) {
	object, ok := value.(map[string]any)
	if !ok {
		c.invalid(at, c.document.typePrefix+at.owner, value, "")
		return
	}
	if s.Properties != nil || s.AdditionalProperties == nil {
		c.object(object, s, at)
		return
	}
	for i, key := range slices.Sorted(maps.Keys(object)) {
		object[key] = c.value(object[key], s.AdditionalProperties, at.element(i, ".value"))
	}
}

func (c *checker) array(value any, s *schema, at place) {
	array, ok := value.([]any)
	if !ok {
		c.invalid(at, "TYPE_LIST", value, "")
		return
	}
	for i, element := range array {
		array[i] = c.value(element, s.Items, at.element(i, ""))
	}
}

func (c *checker) text(value any, s *schema, at place) {
	text, ok := value.(string)
	why := ""
	switch {
	case !ok:
	case len(s.Enum) > 0:
		ok = slices.Contains(s.Enum, text)
	default:
		why, ok = checkFormat(text, s.Format)
	}
	if !ok {
		c.invalid(at, scalarName(s, c.document.typePrefix, at), value, why)
	}
}

// scalarName is how the vendor names the type in a complaint.
func scalarName(s *schema, prefix string, at place) string {
	switch {
	case len(s.Enum) > 0:
		return prefix + at.owner + "." + phrase.UpperFirst(at.name)
	case s.Format == "google-duration":
		return "type.googleapis.com/google.protobuf.Duration"
	case s.Format == "google-datetime":
		return "type.googleapis.com/google.protobuf.Timestamp"
	case s.Format == "google-fieldmask":
		return "type.googleapis.com/google.protobuf.FieldMask"
	case s.Format == "int64" || s.Format == "uint64":
		return "TYPE_" + strings.ToUpper(s.Format)
	case s.Format == "byte":
		return "TYPE_BYTES"
	default:
		return "TYPE_STRING"
	}
}

// invalid adds the vendor's "Invalid value" sentence. The value of anything
// called a password is left out of it.
func (c *checker) invalid(at place, typeName string, value any, why string) {
	shown := why
	if shown == "" {
		shown = shorten(value)
		if strings.HasSuffix(strings.ToLower(at.name), "password") {
			shown = "(not shown)"
		}
	}
	c.found.add(at.field, fmt.Sprintf("Invalid value at '%s' (%s), %s", at.field, typeName, shown))
}

// shorten writes a value for a complaint, at most 200 bytes of it.
func shorten(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return "(not shown)"
	}
	if len(text) > 200 {
		return string(text[:200]) + "…"
	}
	return string(text)
}

func checkNumber(value any, s *schema) string {
	number, isNumber := value.(json.Number)
	if s.Type == "integer" {
		name, bits := "TYPE_INT32", 32
		if s.Format == "uint32" {
			name, bits = "TYPE_UINT32", 33
		}
		n, err := strconv.ParseInt(string(number), 10, bits)
		if !isNumber || err != nil || s.Format == "uint32" && n < 0 {
			return name
		}
		return ""
	}
	if word, ok := value.(string); ok && slices.Contains([]string{"NaN", "Infinity", "-Infinity"}, word) {
		return ""
	}
	n, err := strconv.ParseFloat(string(number), 64)
	if !isNumber || err != nil || s.Format == "float" && math.Abs(n) > math.MaxFloat32 {
		return "TYPE_" + strings.ToUpper(s.Format)
	}
	return ""
}

func isBase64(text string) bool {
	text = strings.TrimRight(text, "=")
	if _, err := base64.RawStdEncoding.DecodeString(text); err == nil {
		return true
	}
	_, err := base64.RawURLEncoding.DecodeString(text)
	return err == nil
}
