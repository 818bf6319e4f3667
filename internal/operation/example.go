package operation

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
)

// Example is a valid call of the operation: every path argument, and of the
// others those that are required or have an example tag. An example tag holds
// the value as text, or as JSON where it is no string.
func (o *Operation) Example() (path []string, body []byte) {
	for _, name := range o.pathArgs {
		path = append(path, o.args.fields[o.args.index[name]].exampleText())
	}
	if o.HasBody() {
		body = o.args.example(bodyArguments)
	}
	return path, body
}

// FlatExample is the same call as one flat object, as MCP has it.
func (o *Operation) FlatExample() []byte {
	return o.args.example(allArguments)
}

// example writes an object of the wanted fields in their order.
func (p *plan) example(wanted argumentSet) []byte {
	var b bytes.Buffer
	b.WriteByte('{')
	for i := range p.fields {
		f := &p.fields[i]
		if !wanted.has(f) || !f.rule.required && f.example == "" {
			continue
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		b.WriteString(quote(f.name) + ":" + f.exampleJSON())
	}
	b.WriteByte('}')
	return b.Bytes()
}

func (f *field) exampleJSON() string {
	if f.example != "" && f.shape.kind != reflect.String {
		return f.example
	}
	return f.shape.exampleJSON(&f.rule, f)
}

// exampleText is the example of a string argument.
func (f *field) exampleText() string {
	switch {
	case f.example != "":
		return f.example
	case f.rule.enum != nil:
		return f.rule.enum[0]
	case f.rule.email:
		return "operations@example.com"
	case f.rule.pkg:
		return "com.example.app"
	case f.name == "assetId":
		return "8k2v0r6m4q1x7t9c3w5y2n8b6d"
	case f.name == "policyId":
		return "5h9j3f7p1s6z4g8a2e0k7m9q3v"
	}
	const filler = "example text, as long as need be "
	text := filler[:7]
	if n := f.rule.minChars; n > len(text) {
		text = strings.Repeat(filler, n/len(filler)+1)[:n]
	}
	if n := f.rule.maxChars; n > 0 && n < len(text) {
		text = text[:n]
	}
	if n := f.rule.maxBytes; n > 0 && n < len(text) {
		text = text[:n]
	}
	return text
}

func (s *shape) exampleJSON(r *rule, f *field) string {
	switch s.kind {
	case reflect.Bool:
		return "true"
	case reflect.Int64:
		if r.min != nil {
			return string(must(*r.min))
		}
		return "1"
	case reflect.Slice:
		return "[" + s.elem.exampleJSON(r, f) + "]"
	case reflect.Map:
		return "{}"
	case reflect.Struct:
		return string(s.plan.example(allArguments))
	default:
		return quote(f.exampleText())
	}
}

func quote(text string) string { return string(must(text)) }

// must writes a value that cannot fail to be JSON.
func must(v any) []byte {
	b, _ := json.Marshal(v)
	return b
}
