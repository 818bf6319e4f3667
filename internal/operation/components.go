package operation

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/musterhq/muster/internal/phrase"
)

// Components collects the schemas of named types, so that a document describes
// each once and refers to it, and generated clients get a type of that name.
type Components struct {
	// Schemas are the schemas by the names of their components.
	Schemas map[string]*jsonschema.Schema

	path  string // what a reference begins with
	types map[string]reflect.Type
}

// NewComponents returns an empty collection whose schemas stand below path,
// such as "#/components/schemas/".
func NewComponents(path string) *Components {
	return &Components{Schemas: map[string]*jsonschema.Schema{}, path: path, types: map[string]reflect.Type{}}
}

// Body describes the members of a REST body as a component that is named after
// the operation, and returns the reference to it.
func (c *Components) Body(o *Operation) *jsonschema.Schema {
	var name strings.Builder
	for word := range strings.SplitSeq(o.Name, "_") {
		name.WriteString(phrase.UpperFirst(word))
	}
	return c.refer(name.String()+"Request", o.args.typ, func() *jsonschema.Schema {
		return o.args.schema(writer{forREST, c}, bodyArguments)
	})
}

// Refer returns a reference to the component of a name.
func (c *Components) Refer(name string) *jsonschema.Schema {
	return &jsonschema.Schema{Ref: c.path + name}
}

// Result describes a type as results have it, as a component, and returns the reference to it.
func (c *Components) Result(t reflect.Type) *jsonschema.Schema { return writer{forREST, c}.result(t) }

// refer keeps the schema of a type unless it is there already.
func (c *Components) refer(name string, t reflect.Type, describe func() *jsonschema.Schema) *jsonschema.Schema {
	switch c.types[name] {
	case t:
	case nil:
		c.types[name] = t
		c.Schemas[name] = describe()
	default:
		panic(fmt.Sprintf("%s and %s would both be described as %s", c.types[name], t, name))
	}
	return c.Refer(name)
}

// writer writes schemas.
type writer struct {
	to         dialect
	components *Components // nil: everything in one piece
}

// named describes a type as a component if it has a name and there are
// components, and else in place.
func (w writer) named(t reflect.Type, describe func() *jsonschema.Schema) *jsonschema.Schema {
	if w.components == nil || t.Name() == "" {
		return describe()
	}
	return w.components.refer(typeName(t.String()), t, describe)
}

// typeName makes a component's name of a Go type: command.Result becomes
// CommandResult, operation.Page[….asset.View] becomes AssetViewPage, and
// proposal.ChangeArg becomes ProposalChange.
func typeName(goType string) string {
	if outer, inner, generic := strings.Cut(goType, "["); generic {
		inner = strings.TrimSuffix(inner, "]")
		return typeName(inner[strings.LastIndexByte(inner, '/')+1:]) + outer[strings.LastIndexByte(outer, '.')+1:]
	}
	pkg, name, _ := strings.Cut(goType, ".")
	name = phrase.UpperFirst(strings.TrimSuffix(name, "Arg"))
	if pkg == "operation" || strings.HasPrefix(strings.ToLower(name), pkg) {
		return name
	}
	return phrase.UpperFirst(pkg) + name
}
