package policy

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Value is a setting as a policy has it (contract 2.4).
type Value struct {
	ID            string   `json:"id" doc:"Id of the setting." example:"CAMERA"`
	Label         string   `json:"label" doc:"Its name for people." example:"Camera"`
	Group         string   `json:"group" doc:"What it belongs to." example:"Device features"`
	Value         string   `json:"value" doc:"An allowed value, NOT_SET (left to the default) or CUSTOM (a value the allowed values cannot express)." example:"ALLOW"`
	AllowedValues []string `json:"allowedValues" doc:"The values that it may be given." example:"[\"ALLOW\",\"BLOCK\"]"`
	HighImpact    bool     `json:"highImpact" doc:"Whether changing it on a policy with devices needs confirmation."`
}

// Move is a setting that changes its value (contract 2.6, fields).
type Move struct {
	Setting  Setting
	From, To string
}

// View reads a document through the catalog: every setting, in its order.
func View(t Type, document json.RawMessage) ([]Value, error) {
	o, err := parseObject(document)
	if err != nil {
		return nil, fmt.Errorf("cannot read the policy's document: %w", err)
	}
	values := make([]Value, len(catalog))
	for i := range catalog {
		s := catalog[i].setting()
		values[i] = Value{ID: s.ID, Label: s.Label, Group: s.Group, Value: read(o, t, &catalog[i]),
			AllowedValues: s.Allowed, HighImpact: s.HighImpact}
	}
	return values, nil
}

// Apply gives settings their new values and returns the document that results,
// with the settings that moved, in the order of the changes. A setting that
// already has its value moves nothing and is left as it is kept; members that
// no change names stay byte for byte. Changes are as NormalChanges returns
// them.
func Apply(t Type, document json.RawMessage, changes []Change) (json.RawMessage, []Move, error) {
	o, err := parseObject(document)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read the policy's document: %w", err)
	}
	var moves []Move
	for _, c := range changes {
		r := find(c.Setting)
		if r == nil {
			return nil, nil, fmt.Errorf("no setting %q", c.Setting)
		}
		from := read(o, t, r)
		if from == c.Value {
			continue
		}
		if !write(o, t, r, c.Value) {
			return nil, nil, fmt.Errorf("setting %s cannot be %q", c.Setting, c.Value)
		}
		moves = append(moves, Move{Setting: r.setting(), From: from, To: c.Value})
	}
	return json.RawMessage(o.text()), moves, nil
}

func read(o *object, t Type, r *row) string {
	switch {
	case t == Agent:
		return r.readAgent(o)
	case r.kind == reportLevel:
		return r.readLevel(o)
	default:
		return r.read(o)
	}
}

// write reports false if value is not one that the setting allows.
func write(o *object, t Type, r *row, value string) bool {
	for _, c := range r.choices {
		if c.value != value {
			continue
		}
		switch {
		case t == Agent:
			o.set([]string{"settings", r.id}, quoted(value))
		case r.kind == reportLevel:
			r.writeLevel(o, value)
		default:
			o.set(r.path, jsontext.Value(c.json))
			for _, f := range r.former {
				o.remove(f.path)
			}
		}
		return true
	}
	return false
}

// read is the rule of a PLATFORM document: what path holds, or if that is
// unset, what a member that path replaced holds.
func (r *row) read(o *object) string {
	value := r.value(o)
	if value == NotSet || r.kind == formerWins && value != "BLOCK" {
		for _, f := range r.former {
			if v := f.value(o); v != NotSet {
				return v
			}
		}
	}
	return value
}

func (r *row) value(o *object) string {
	v, value := r.choice(o, r.path, func(c choice) string { return c.json })
	if value == Custom && r.kind != unspecifiedCounts && unspecified(v) {
		return NotSet
	}
	return value
}

// choice is the value whose form in the document is what a path holds.
func (r *row) choice(o *object, path []string, form func(choice) string) (v jsontext.Value, value string) {
	v, reachable := o.get(path)
	if !reachable {
		return nil, Custom
	}
	if v == nil {
		return nil, NotSet
	}
	for _, c := range r.choices {
		if same(v, form(c)) {
			return v, c.value
		}
	}
	return v, Custom
}

func (f former) value(o *object) string {
	if v, _ := o.get(f.path); v != nil {
		for _, c := range f.reads {
			if same(v, c.json) {
				return c.value
			}
		}
	}
	return NotSet
}

// readLevel reads APPLICATION_REPORT_LEVEL: the first member says whether apps
// are reported, the second whether removed ones are too.
func (r *row) readLevel(o *object) string {
	on, reachable := o.get(r.path)
	removed, reachableToo := o.get(r.former[0].path)
	switch {
	case !reachable:
		return Custom
	case on == nil:
		return NotSet
	case same(on, "false"):
		return "DISABLED"
	case !same(on, "true") || !reachableToo:
		return Custom
	case removed == nil || same(removed, "false"):
		return "INSTALLED_APPS"
	case same(removed, "true"):
		return "INSTALLED_AND_REMOVED_APPS"
	default:
		return Custom
	}
}

func (r *row) writeLevel(o *object, value string) {
	removed := r.former[0].path
	switch value {
	case "DISABLED":
		o.set(r.path, jsontext.Value("false"))
		o.remove(removed)
	case "INSTALLED_APPS":
		o.set(r.path, jsontext.Value("true"))
		o.set(removed, jsontext.Value("false"))
	default:
		o.set(r.path, jsontext.Value("true"))
		o.set(removed, jsontext.Value("true"))
	}
}

// readAgent is the rule of an AGENT document: {"settings": {id: value}}.
func (r *row) readAgent(o *object) string {
	_, value := r.choice(o, []string{"settings", r.id}, func(c choice) string { return string(quoted(c.value)) })
	return value
}

// same compares a JSON scalar with another's plain text. Strings are compared
// unquoted, so that an escaped letter does not make a value a different one.
func same(v jsontext.Value, plain string) bool {
	if v.Kind() != jsontext.KindString {
		return string(v) == plain
	}
	text, err := jsontext.AppendUnquote(nil, v)
	return err == nil && `"`+string(text)+`"` == plain
}

// unspecified reports whether v is an enum's way of saying nothing.
func unspecified(v jsontext.Value) bool {
	return v.Kind() == jsontext.KindString && strings.HasSuffix(string(v), `_UNSPECIFIED"`)
}

func quoted(s string) jsontext.Value {
	q, _ := jsontext.AppendQuote(nil, s)
	return q
}
