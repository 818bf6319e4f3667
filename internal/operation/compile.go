package operation

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"
)

// place says where REST finds an argument. All the others (MCP, forms) give
// the arguments as one flat object.
type place int

const (
	inPath place = iota
	inQuery
	inBody
)

// plan is an argument struct, compiled once at Define.
type plan struct {
	typ    reflect.Type
	fields []field
	index  map[string]int // every field by its exact name
	body   bool           // there are members of a body
	ruled  bool           // a pointer to typ is a Ruler
	rules  []Rule         // what Rules says of a zero value
}

// field is one argument.
type field struct {
	name    string
	doc     string
	example string
	place   place
	at      []int // for reflect.Value.FieldByIndex
	shape   shape
	rule    rule
	// restOnly: the other surfaces do not know it.
	restOnly bool
}

// shape is the JSON type of a value.
type shape struct {
	kind    reflect.Kind // String, Bool, Int64, Slice or Struct; Map: an Object
	pointer bool
	typ     reflect.Type // without the pointer
	elem    *shape       // of a Slice
	plan    *plan        // of a Struct
}

// maxFields is what the decoder's set of seen members can hold.
const maxFields = 64

// compile turns a struct type into a plan and panics where the declaration
// makes no sense; owner names it in the panic.
func compile(owner string, typ reflect.Type) *plan {
	if typ.Kind() != reflect.Struct {
		panic(fmt.Sprintf("operation %s: the arguments are a %s, not a struct", owner, typ))
	}
	p := &plan{typ: typ, index: map[string]int{}, ruled: reflect.PointerTo(typ).Implements(reflect.TypeFor[Ruler]())}
	p.add(owner, typ, nil)
	if len(p.fields) > maxFields {
		panic(fmt.Sprintf("operation %s: %s has more than %d fields", owner, typ, maxFields))
	}
	for i, f := range p.fields {
		for other := range p.index {
			if strings.EqualFold(other, f.name) {
				panic(fmt.Sprintf("operation %s: %s and %s are told apart by case alone", owner, other, f.name))
			}
		}
		p.index[f.name] = i
		p.body = p.body || f.place == inBody
	}
	if p.ruled {
		rules := Rules{plan: p}
		reflect.New(typ).Interface().(Ruler).Rules(&rules)
		p.rules = rules.all
	}
	return p
}

// add collects the fields of typ, those of embedded structs among them.
func (p *plan) add(owner string, typ reflect.Type, at []int) {
	for i := range typ.NumField() {
		sf := typ.Field(i)
		index := append(at[:len(at):len(at)], i)
		if sf.Anonymous && sf.Type.Kind() == reflect.Struct && sf.Tag == "" {
			p.add(owner, sf.Type, index)
			continue
		}
		p.fields = append(p.fields, compileField(owner+"."+sf.Name, sf, index))
	}
}

func compileField(owner string, sf reflect.StructField, at []int) field {
	f := field{doc: sf.Tag.Get("doc"), example: sf.Tag.Get("example"), at: at, shape: compileShape(owner, sf.Type),
		restOnly: sf.Tag.Get("only") == "REST"}
	for where, key := range []string{inPath: "path", inQuery: "query", inBody: "json"} {
		if name, ok := sf.Tag.Lookup(key); ok {
			if f.name != "" {
				panic("operation " + owner + " stands in two places")
			}
			f.name, _, _ = strings.Cut(name, ",")
			f.place = place(where)
		}
	}
	f.rule = parseRule(owner, sf.Tag.Get("rule"))
	f.rule.mustFit(owner, f.shape)
	if f.name == "" || f.name == "-" || !sf.IsExported() {
		panic("operation " + owner + " is not an argument: give it a path, query or json tag")
	}
	if f.place == inPath {
		if tag := sf.Tag.Get("rule"); f.shape.kind != reflect.String || f.shape.pointer || tag != "" && tag != "required" {
			panic("operation " + owner + ": a path argument is a plain string without rules; what is not an id is not found")
		}
		f.rule.required = true
	}
	if f.place == inQuery && (f.shape.kind == reflect.Slice && f.shape.elem.kind != reflect.String || f.shape.kind == reflect.Struct ||
		f.shape.kind == reflect.Map) {
		panic("operation " + owner + ": a query parameter is one value, or a list of texts")
	}
	return f
}

func compileShape(owner string, typ reflect.Type) shape {
	s := shape{typ: typ}
	if typ.Kind() == reflect.Pointer {
		s.pointer, s.typ = true, typ.Elem()
	}
	if s.typ == reflect.TypeFor[Object]() {
		s.kind = reflect.Map
		return s
	}
	switch s.typ.Kind() {
	case reflect.String, reflect.Bool:
		s.kind = s.typ.Kind()
	case reflect.Int, reflect.Int32, reflect.Int64:
		s.kind = reflect.Int64
	case reflect.Slice:
		s.kind = reflect.Slice
		elem := compileShape(owner, s.typ.Elem())
		if elem.pointer || elem.kind == reflect.Slice {
			panic(fmt.Sprintf("operation %s: elements of %s are not supported", owner, s.typ))
		}
		s.elem = &elem
	case reflect.Struct:
		s.kind = reflect.Struct
		s.plan = compile(owner, s.typ)
		for _, f := range s.plan.fields {
			if f.place != inBody {
				panic("operation " + owner + ": a nested struct has json members only")
			}
		}
	default:
		panic(fmt.Sprintf("operation %s: arguments of type %s are not supported", owner, typ))
	}
	return s
}

// Input is a member of a body as a form asks for it.
type Input struct {
	Name, Label, Help string
	Kind              string // text, area, email, tel, password, list, or what the tag "input" says
	Max               int    // characters; 0: no limit
	Required          bool
}

// Inputs lists the members of an argument struct that have a label. Beside the
// tags of Ruler it reads
//
//	label:"Phone number"  input:"tel"  help:"With its country code"
func Inputs[A any]() []Input {
	typ := reflect.TypeFor[A]()
	var inputs []Input
	for _, f := range compile(typ.Name(), typ).fields {
		tag := typ.FieldByIndex(f.at).Tag
		if label := tag.Get("label"); label != "" {
			inputs = append(inputs, Input{Name: f.name, Label: label, Help: tag.Get("help"), Required: f.rule.required,
				Kind: cmp.Or(tag.Get("input"), f.kind()), Max: f.longest()})
		}
	}
	return inputs
}

// kind is the form of an input that follows from a field's rules.
func (f *field) kind() string {
	switch {
	case f.shape.kind == reflect.Slice:
		return "list"
	case f.rule.secret:
		return "password"
	case f.rule.email:
		return "email"
	case f.rule.controls == lineBreaks:
		return "area"
	}
	return "text"
}

// longest is how many characters a field takes at most; those of a list stand on
// lines of their own.
func (f *field) longest() int {
	one := cmp.Or(f.rule.maxChars, f.rule.maxBytes)
	if f.shape.kind == reflect.Slice {
		return f.rule.maxItems * (one + len("\r\n"))
	}
	return one
}
