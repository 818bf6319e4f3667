package operation

import (
	"reflect"
	"strings"
)

// Argument is an argument of an operation, as a command line asks for it.
type Argument struct {
	Name, Doc string
	In        string // "path", "query" or "body"
	Kind      string // "text", "number", "boolean", "texts", or "json" for what has members
	Required  bool
	Secret    bool
	Values    []string // the only ones; nil: others, too
	Default   string
}

// Arguments are those of the operation, in the order of their declaration.
func (o *Operation) Arguments() []Argument {
	all := make([]Argument, len(o.args.fields))
	for i := range o.args.fields {
		f := &o.args.fields[i]
		all[i] = Argument{Name: f.name, Doc: f.doc, In: [...]string{inPath: "path", inQuery: "query", inBody: "body"}[f.place],
			Kind: f.shape.argument(), Required: f.rule.required, Secret: f.rule.secret, Values: f.rule.enum, Default: f.rule.fallback}
	}
	return all
}

// argument is the kind of an argument of a shape.
func (s *shape) argument() string {
	switch {
	case s.kind == reflect.String:
		return "text"
	case s.kind == reflect.Int64:
		return "number"
	case s.kind == reflect.Bool:
		return "boolean"
	case s.kind == reflect.Slice && s.elem.kind == reflect.String:
		return "texts"
	}
	return "json"
}

// Command is how the command line calls the operation: the group of its commands and the
// command, such as "devices" and "lock". The group is empty for an operation that belongs
// to none. It follows from method and path.
func (o *Operation) Command() (group, name string) {
	segments := strings.Split(strings.TrimPrefix(o.Path, "/"), "/")
	last := segments[len(segments)-1]
	group = map[string]string{"assets": "devices", "policies": "policies", "policy-proposals": "proposals"}[segments[0]]
	switch {
	case group == "":
		return "", strings.Join(segments, "-")
	case len(segments) > 2 && strings.HasPrefix(last, "{"): // one of a list
		return group, strings.TrimSuffix(segments[len(segments)-2], "s")
	case o.Method == "GET" && len(segments) == 1:
		return group, "list"
	case o.Method == "GET" && len(segments) == 2 && strings.HasPrefix(last, "{"):
		return group, "show"
	case o.Method == "POST" && len(segments) == 1:
		return group, "create"
	case o.Method == "PATCH":
		return group, "set"
	case o.Method == "POST" && len(segments) == 3:
		return group, strings.TrimSuffix(last, "s")
	}
	return group, last
}
