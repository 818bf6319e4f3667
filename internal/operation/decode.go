package operation

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/phrase"
)

// decoder reads one JSON object into an argument struct. Names are matched
// exactly, at every depth: a variant in case, a name given twice, a name that
// is not declared, null for a required member, text after the object and
// invalid UTF-8 are faults. Null for an optional member means that it is absent.
// (encoding/json would take "assetid" for assetId, and the last of two.)
type decoder struct {
	json *jsontext.Decoder
	// takes is which arguments the outermost object may have: nothing in a body ever reaches a
	// path argument.
	takes  argumentSet
	faults *faults
}

// argumentSet is which arguments an object may have.
type argumentSet int

const (
	toolArguments argumentSet = iota // all but those of REST alone
	allArguments
	bodyArguments
)

// has reports whether an argument is one of them.
func (t argumentSet) has(f *field) bool {
	switch t {
	case bodyArguments:
		return f.place == inBody
	case toolArguments:
		return !f.restOnly
	default:
		return true
	}
}

// decodeObject reads body, which must be one object, into v, a struct of the plan.
func decodeObject(p *plan, v reflect.Value, body []byte, takes argumentSet, f *faults) {
	d := decoder{
		// Names given twice are found here, so that the other faults can be reported too.
		json:  jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowDuplicateNames(true)),
		takes: takes, faults: f,
	}
	if d.json.PeekKind() != '{' {
		if _, err := d.json.ReadValue(); err != nil && !errors.Is(err, io.EOF) {
			f.syntax(d.json, err)
			return
		}
		f.malform(d.whole() + " must be one JSON object")
		return
	}
	if err := d.object(p, v, ""); err != nil {
		f.syntax(d.json, err)
		return
	}
	if _, err := d.json.ReadToken(); !errors.Is(err, io.EOF) {
		f.malform(d.whole() + " must be one JSON object with nothing after it")
	}
}

// whole names what is decoded, in the caller's terms.
func (d *decoder) whole() string {
	if d.takes == bodyArguments {
		return "the body"
	}
	return "arguments"
}

// object reads an object into v. The error is one of syntax; everything else
// goes to the faults. path is "" at the top, else "changes[1].".
func (d *decoder) object(p *plan, v reflect.Value, path string) error {
	atTop := path == ""
	if !atTop {
		p.setDefaults(v)
	}
	if _, err := d.json.ReadToken(); err != nil {
		return err
	}
	var seen uint64
	for d.json.PeekKind() != '}' {
		i, err := d.name(p, path, &seen)
		if err != nil {
			return err
		}
		if i < 0 || !p.fields[i].rule.required && d.json.PeekKind() == 'n' {
			err = d.json.SkipValue()
		} else {
			f := &p.fields[i]
			err = d.value(&f.shape, &f.rule, v.FieldByIndex(f.at), path, f.name)
		}
		if err != nil {
			return err
		}
	}
	if _, err := d.json.ReadToken(); err != nil {
		return err
	}
	for i := range p.fields {
		f := &p.fields[i]
		if f.rule.required && seen&(1<<i) == 0 && (!atTop || d.takes != bodyArguments || f.place == inBody) {
			d.faults.wrong(path+f.name, "is required")
		}
	}
	if !atTop {
		p.runRules(v, path, d.faults)
	}
	return nil
}

// name reads a member's name and returns its field, or -1 for one that is
// not to be read.
func (d *decoder) name(p *plan, path string, seen *uint64) (int, error) {
	raw, err := d.json.ReadValue()
	if err != nil {
		return 0, err
	}
	name := raw[1 : len(raw)-1]
	if bytes.IndexByte(name, '\\') >= 0 {
		if name, err = jsontext.AppendUnquote(nil, raw); err != nil {
			return 0, err
		}
	}
	i, known := p.index[string(name)]
	if !known || path == "" && !d.takes.has(&p.fields[i]) {
		d.faults.unknown(path + string(name))
		return -1, nil
	}
	if *seen&(1<<i) != 0 {
		d.faults.twice(path + p.fields[i].name)
		return -1, nil
	}
	*seen |= 1 << i
	return i, nil
}

// value reads one value of the shape into v.
func (d *decoder) value(s *shape, r *rule, v reflect.Value, path, name string) error {
	kind := d.json.PeekKind()
	if kind == jsontext.KindInvalid {
		_, err := d.json.ReadToken()
		return err
	}
	want, article := s.json()
	if kind == 'f' {
		kind = 't'
	}
	if kind != want {
		message := "must be " + article
		if kind == 'n' {
			message = "must not be null"
		}
		d.faults.wrong(path+name, message)
		return d.json.SkipValue()
	}
	if s.pointer {
		v.Set(reflect.New(s.typ))
		v = v.Elem()
	}
	switch s.kind {
	case reflect.Struct:
		return d.object(s.plan, v, path+name+".")
	case reflect.Slice:
		return d.list(s, r, v, path, name)
	case reflect.Map:
		return d.anything(v, path+name)
	default:
		return d.scalar(s, r, v, path, name)
	}
}

// anything reads an object with any members.
func (d *decoder) anything(v reflect.Value, name string) error {
	text, err := d.json.ReadValue()
	if err != nil {
		return err
	}
	if !text.IsValid() { // it is but for names given twice
		d.faults.malformed = true
		d.faults.wrong(name, "has a member that stands twice")
		return nil
	}
	v.SetBytes(text.Clone())
	return nil
}

func (d *decoder) scalar(s *shape, r *rule, v reflect.Value, path, name string) error {
	token, err := d.json.ReadToken()
	if err != nil {
		return err
	}
	message := ""
	switch s.kind {
	case reflect.Bool:
		v.SetBool(token.Bool())
	case reflect.Int64:
		n, ok := integral(token.String())
		if !ok || v.OverflowInt(n) {
			d.faults.wrong(path+name, "must be an integer")
			return nil
		}
		v.SetInt(n)
		message = r.integer(n)
	default:
		v.SetString(token.String())
		message = r.text(v.String())
	}
	if message != "" {
		d.faults.broken(path+name, message)
	}
	return nil
}

// list reads an array. Its rules bind each element, except for those about
// its length.
func (d *decoder) list(s *shape, r *rule, v reflect.Value, path, name string) error {
	if _, err := d.json.ReadToken(); err != nil {
		return err
	}
	n := 0
	v.Set(reflect.MakeSlice(s.typ, 0, 4))
	for d.json.PeekKind() != ']' {
		element := reflect.New(s.elem.typ).Elem()
		if err := d.value(s.elem, r, element, path, name+"["+strconv.Itoa(n)+"]"); err != nil {
			return err
		}
		v.Set(reflect.Append(v, element))
		n++
	}
	if message := r.items(n); message != "" {
		d.faults.broken(path+name, message)
	}
	_, err := d.json.ReadToken()
	return err
}

// json is the kind of token that a value of the shape begins with, and the
// shape in words.
func (s *shape) json() (jsontext.Kind, string) {
	switch s.kind {
	case reflect.Bool:
		return 't', "true or false"
	case reflect.Int64:
		return '0', "an integer"
	case reflect.Slice:
		return '[', "an array"
	case reflect.Struct, reflect.Map:
		return '{', "an object"
	default:
		return '"', "a string"
	}
}

// integral reads a JSON number that is an integer, however it is written:
// 20, 20.0 and 2e1 are the same to JSON Schema.
func integral(text string) (int64, bool) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, true
	}
	const exact = 1 << 53
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || x != math.Trunc(x) || math.Abs(x) > exact {
		return 0, false
	}
	return int64(x), true
}

// setDefaults gives the fields that have a default their value.
func (p *plan) setDefaults(v reflect.Value) {
	for i := range p.fields {
		if f := &p.fields[i]; f.rule.hasFallback {
			f.shape.parse(v.FieldByIndex(f.at), f.rule.fallback, &f.rule)
		}
	}
}

// runRules runs the struct's own rules, if it has any. They see values, so
// they are left out where a value could not be read at all, and a field that
// is at fault already is not blamed again.
func (p *plan) runRules(v reflect.Value, path string, f *faults) {
	if !p.ruled || f.unread {
		return
	}
	var rules Rules
	v.Addr().Interface().(Ruler).Rules(&rules)
	for _, broken := range rules.faults {
		if !f.has(path + broken.Field) {
			f.broken(path+broken.Field, broken.Message)
		}
	}
}

// faults collects all that is wrong with the arguments of one call.
type faults struct {
	fields    []fault.Field
	detail    string
	malformed bool // not one object, a name unknown or given twice
	unread    bool // some value is missing or could not be read
}

// maxFaults bounds what one answer reports, maxTold what its text tells of that, maxName what it
// repeats of a name that the caller made up.
const (
	maxFaults = 100
	maxTold   = 10
	maxName   = 64
)

func (f *faults) broken(name, message string) {
	if len(f.fields) < maxFaults {
		f.fields = append(f.fields, fault.Field{Field: name, Message: message})
	}
}

func (f *faults) wrong(name, message string) {
	f.unread = true
	f.broken(name, message)
}

func (f *faults) unknown(name string) {
	f.malformed = true
	f.broken(printable(name), "is not known here")
}

func (f *faults) twice(name string) {
	f.malformed = true
	f.broken(name, "stands twice")
}

func (f *faults) malform(detail string) {
	f.malformed, f.unread = true, true
	if f.detail == "" {
		f.detail = detail
	}
	f.fields = nil // what was read up to there is not known to be meant
}

// syntax notes that the text is not JSON. Where is told, what stands there is
// not: it may be part of a secret.
func (f *faults) syntax(d *jsontext.Decoder, err error) {
	offset := d.InputOffset()
	if at, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		offset = at.ByteOffset
	}
	f.malform(fmt.Sprintf("the body is not valid JSON in UTF-8 (at byte %d)", offset))
}

func (f *faults) has(name string) bool {
	return slices.ContainsFunc(f.fields, func(field fault.Field) bool { return field.Field == name })
}

// err returns the faults as one error, or nil.
func (f *faults) err() error {
	if len(f.fields) == 0 && !f.malformed {
		return nil
	}
	e := fault.Invalid(f.detail, f.fields...)
	e.Malformed = f.malformed
	if e.Detail == "" {
		first := phrase.First(f.fields, maxTold, func(one fault.Field) string { return one.Field + " " + one.Message })
		e.Detail = strings.Join(first, "; ")
	}
	return e
}

// printable shortens a name that a caller made up and quotes what cannot be shown.
func printable(name string) string {
	if runes := []rune(name); len(runes) > maxName {
		name = string(runes[:maxName]) + "…"
	}
	quoted := strconv.Quote(name)
	return quoted[1 : len(quoted)-1]
}
