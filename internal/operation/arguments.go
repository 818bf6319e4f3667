package operation

import (
	"reflect"
	"strings"
)

// Argument describes an argument of an operation for a command line.
type Argument struct {
	Name, Doc string
	In        string // "path", "query" or "body"
	Kind      string // "text", "number" (whole), "boolean", "texts" (a list of texts), or "json" for all other types
	Required  bool
	Secret    bool
	Values    []string // the values that are allowed; nil: any
	Default   string   // as text; empty: none
}

// Arguments returns the arguments of the operation, in the order of their declaration.
func (o *Operation) Arguments() []Argument {
	all := make([]Argument, len(o.args.fields))
	for i := range o.args.fields {
		f := &o.args.fields[i]
		all[i] = Argument{Name: f.name, Doc: f.doc, In: [...]string{inPath: "path", inQuery: "query", inBody: "body"}[f.place],
			Kind: f.shape.argument(), Required: f.rule.required, Secret: f.rule.secret, Values: f.rule.enum, Default: f.rule.fallback}
	}
	return all
}

// argument returns Argument.Kind for an argument of the shape.
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

// Command returns the group and the name of the operation's command in the command line, such as "devices" and "lock".
// The group is empty for an operation outside assets, policies and proposals. Both follow from Method and Path: GET
// /assets/{assetId}, for example, is "devices" and "show".
func (o *Operation) Command() (group, name string) {
	segments := strings.Split(strings.TrimPrefix(o.Path, "/"), "/")
	last := segments[len(segments)-1]
	group = map[string]string{"assets": "devices", "policies": "policies", "policy-proposals": "proposals"}[segments[0]]
	switch {
	case group == "":
		return "", strings.Join(segments, "-")
	case len(segments) > 2 && strings.HasPrefix(last, "{"): // an element of a list below the resource
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
