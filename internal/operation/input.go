package operation

import (
	"cmp"
	"reflect"
)

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
