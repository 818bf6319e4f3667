package operation

import (
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/validate"
)

// Source is where the arguments of one call come from: Flat, Named or Parts.
type Source interface {
	// read sets v, an argument struct of o, and collects in f what is wrong with the arguments. Its
	// error is Parts.Refused.
	read(o *Operation, v reflect.Value, f *faults) error
}

// Flat is one JSON object that holds every argument, as MCP gives them. No
// text at all, or null, stands for an object without members.
type Flat []byte

func (s Flat) read(o *Operation, v reflect.Value, f *faults) error {
	if len(s) == 0 || string(s) == "null" {
		s = Flat("{}")
	}
	decodeObject(o.args, v, s, toolArguments, f)
	return nil
}

// Named is one JSON object that holds every argument of a request over REST by its name, those
// that only REST has as well.
type Named []byte

func (s Named) read(o *Operation, v reflect.Value, f *faults) error {
	decodeObject(o.args, v, s, allArguments, f)
	return nil
}

// Parts are the arguments of an HTTP request.
type Parts struct {
	Path  []string // the values of Operation.PathArgs, in their order, unescaped
	Query string   // as it stands in the URL
	Body  []byte
	// Refused is what the surface found wrong with the request itself, such as
	// a body that is too large. It is reported at the time of validation.
	Refused *fault.Error
}

func (s *Parts) read(o *Operation, v reflect.Value, f *faults) error {
	if s.Refused != nil {
		return s.Refused
	}
	p := o.args
	for i, name := range o.pathArgs {
		v.FieldByIndex(p.fields[p.index[name]].at).SetString(s.Path[i])
	}
	s.readQuery(p, v, f)
	switch {
	case len(s.Body) == 0 && (!p.body || o.BodyOptional):
	case len(s.Body) == 0:
		if !p.missing(inBody, f) {
			f.malform("the body must be one JSON object")
		}
		f.malformed = true
	default:
		decodeObject(p, v, s.Body, bodyArguments, f)
	}
	return nil
}

// Query reads an argument struct of query parameters alone from a query, as a request's
// are read.
func Query[A any](query string) (args A, err error) {
	typ := reflect.TypeFor[A]()
	p, v := compile(typ.Name(), typ), reflect.ValueOf(&args).Elem()
	var f faults
	p.setDefaults(v)
	(&Parts{Query: query}).readQuery(p, v, &f)
	p.runRules(v, "", &f)
	return args, f.err()
}

// Checker returns a function that checks the members of a body against the rules of an
// argument struct, as a request's are checked. Several may be checked at the same time.
func Checker[A any]() func(text []byte) error {
	typ := reflect.TypeFor[A]()
	p := compile(typ.Name(), typ)
	return func(text []byte) error {
		v := reflect.New(typ).Elem()
		var f faults
		p.setDefaults(v)
		decodeObject(p, v, text, bodyArguments, &f)
		p.runRules(v, "", &f)
		return f.err()
	}
}

// Check checks the arguments of a call that is not made now.
func (o *Operation) Check(s Source) error {
	_, err := o.decode(s)
	return err
}

// readQuery sets the query parameters. They are as strict as members of a
// body: a filter with a slip in its name must not quietly select everything.
func (s *Parts) readQuery(p *plan, v reflect.Value, f *faults) {
	values, err := url.ParseQuery(s.Query)
	if err != nil {
		f.malform("the query is not well-formed")
		return
	}
	for i := range p.fields {
		q := &p.fields[i]
		if q.place != inQuery {
			continue
		}
		switch given := values[q.name]; {
		case len(given) == 0 && q.rule.required:
			f.wrong(q.name, "is required")
		case len(given) == 0:
		case !utf8.ValidString(strings.Join(given, "")):
			f.wrong(q.name, "must be UTF-8")
		case q.shape.kind == reflect.Slice: // the parameter is given once for each text
			q.setTexts(v, given, f)
		case len(given) > 1:
			f.twice(q.name)
		default:
			q.setText(v, given[0], f)
		}
		delete(values, q.name)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		f.unknown(name)
	}
}

// setTexts sets a query parameter that is given once for each text.
func (q *field) setTexts(v reflect.Value, texts []string, f *faults) {
	v.FieldByIndex(q.at).Set(reflect.ValueOf(texts).Convert(q.shape.typ))
	if message := q.rule.items(len(texts)); message != "" {
		f.broken(q.name, message)
	}
	for i, text := range texts {
		if message := q.rule.text(text); message != "" {
			f.broken(q.name+"["+strconv.Itoa(i)+"]", message)
		}
	}
}

// setText sets a query parameter from its text.
func (q *field) setText(v reflect.Value, text string, f *faults) {
	target := v.FieldByIndex(q.at)
	if q.shape.pointer {
		target.Set(reflect.New(q.shape.typ))
		target = target.Elem()
	}
	if message := q.shape.parse(target, text, &q.rule); message != "" {
		f.broken(q.name, message)
	}
}

// missing notes every required argument of a place as missing, and reports whether there is one.
func (p *plan) missing(where place, f *faults) (any bool) {
	for i := range p.fields {
		if a := &p.fields[i]; a.place == where && a.rule.required {
			f.wrong(a.name, "is required")
			any = true
		}
	}
	return any
}

// assetOf is the argument assetId of an operation that has it.
func (o *Operation) assetOf(args any) string {
	return reflect.ValueOf(args).Elem().FieldByIndex(o.args.fields[o.args.index["assetId"]].at).String()
}

// decode reads the arguments of one call into a new argument struct and
// returns a pointer to it.
func (o *Operation) decode(s Source) (any, error) {
	pointer := reflect.New(o.args.typ)
	v := pointer.Elem()
	var f faults
	o.args.setDefaults(v)
	if err := s.read(o, v, &f); err != nil {
		return nil, err
	}
	o.args.runRules(v, "", &f)
	if err := f.err(); err != nil {
		return nil, err
	}
	return pointer.Interface(), nil
}

// NoteFields are the names by which a surface takes the parts of a note.
type NoteFields struct{ Reason, Ticket string }

// NotePattern is the regular expression of a part of a note, as JSON Schema has it.
func NotePattern(required bool) string {
	return (&rule{controls: noControls, notblank: required}).pattern()
}

// Read makes a note of what a caller said, and returns what is wrong with it. Blanks
// around a text are not kept, and a text of which nothing is shown is none.
func (f NoteFields) Read(reason, ticket string) (access.Note, *fault.Error) {
	for _, part := range []struct {
		field, text string
		most        int
	}{{f.Reason, reason, access.MaxReason}, {f.Ticket, ticket, access.MaxTicket}} {
		if wrong := wrongNote(part.text, part.most); wrong != "" {
			return access.Note{}, fault.InvalidField(part.field, wrong)
		}
	}
	return access.Note{Reason: shown(reason), Ticket: shown(ticket)}, nil
}

func shown(text string) string {
	if validate.Blank(text) {
		return ""
	}
	return strings.TrimSpace(text)
}

// WrongType is the fault of a part that is no text, or is given twice.
func WrongType(field string) *fault.Error {
	return fault.InvalidField(field, "must be one text")
}

func wrongNote(text string, most int) string {
	switch {
	case !utf8.ValidString(text):
		return "must be UTF-8"
	case utf8.RuneCountInString(text) > most:
		return fmt.Sprintf("must be at most %d characters", most)
	case noControls.in(text):
		return "must not have " + noControls.words()
	}
	return ""
}

// WantsReason reports whether the caller's company requires a reason for the
// operation. It requires none from people in the portal.
func (o *Operation) WantsReason(p access.Principal) bool {
	if !p.Kind.Automated() {
		return false
	}
	switch p.Settings.Controls.RequireReason {
	case access.ReasonAll:
		return o.Effect != Reading
	case access.ReasonDestructive:
		return o.Needs.Has(access.DevicesCommandDestructive)
	default:
		return false
	}
}

// check returns what is wrong with a call beside its arguments.
func (m Meta) check(o *Operation, p access.Principal) error {
	if m.Wrong != nil {
		return m.Wrong
	}
	if m.Note.Reason == "" && o.WantsReason(p) {
		return fault.InvalidField(m.ReasonField, "is required: the company requires a reason for this operation")
	}
	return nil
}

// Object is an argument that is a JSON object with any members, such as the arguments
// of another operation. It may hold secrets, so it prints without its text.
type Object []byte

// String keeps the members out of formatted text.
func (o Object) String() string { return "[object]" }

// GoString keeps them out of %#v.
func (o Object) GoString() string { return o.String() }

// LogValue keeps them out of logs.
func (o Object) LogValue() slog.Value { return slog.StringValue(o.String()) }

// TakeReason takes a member that is the caller's reason out of the arguments of an
// operation. What is not an object of distinct members is left for the operation to
// refuse.
func TakeReason(arguments Flat, member string) (rest Flat, reason string, wrong *fault.Error) {
	var given map[string]jsontext.Value
	if json.Unmarshal(arguments, &given) != nil {
		return arguments, "", nil
	}
	text, ok := given[member]
	if !ok {
		return arguments, "", nil
	}
	delete(given, member)
	rest, err := json.Marshal(given, json.Deterministic(true))
	switch {
	case err != nil:
		return arguments, "", nil // the operation refuses it
	case text.Kind() == 'n': // absent
	case text.Kind() != '"' || json.Unmarshal(text, &reason) != nil:
		wrong = WrongType(member)
	}
	return rest, reason, wrong
}
