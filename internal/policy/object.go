package policy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// object is a JSON object that can be changed in places while every other byte
// of it stays as it was: order of members, numbers, white space.
type object struct {
	raw     jsontext.Value // the text it was read from; stale once dirty
	members []member
	dirty   bool
}

type member struct {
	name  string
	value jsontext.Value
	inner *object // value, once it was opened; it then speaks for value
}

// parseObject reads one JSON object and nothing after it. A name given twice
// and invalid UTF-8 are refused at every depth.
func parseObject(text []byte) (*object, error) {
	d := jsontext.NewDecoder(bytes.NewReader(text))
	begin, err := d.ReadToken()
	if err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	if begin.Kind() != jsontext.KindBeginObject {
		return nil, errors.New("must be a JSON object")
	}
	o := &object{raw: text}
	for d.PeekKind() != jsontext.KindEndObject {
		name, err := d.ReadToken()
		if err != nil {
			return nil, fmt.Errorf("not JSON: %w", err)
		}
		m := member{name: name.String()}
		value, err := d.ReadValue()
		if err != nil {
			return nil, fmt.Errorf("not JSON: %w", err)
		}
		m.value = value.Clone()
		o.members = append(o.members, m)
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errors.New("must be one JSON object and nothing after it")
	}
	return o, nil
}

func (o *object) find(name string) *member {
	for i := range o.members {
		if o.members[i].name == name {
			return &o.members[i]
		}
	}
	return nil
}

// open returns a member's value as an object; nil if it is none.
func (m *member) open() *object {
	if m.inner == nil && m.value.Kind() == jsontext.KindBeginObject {
		m.inner, _ = parseObject(m.value) // it was read as valid JSON before
	}
	return m.inner
}

// get returns the value at a path. Absent and null, of the value or of an
// object on the way, are nil. It reports false if something on the way is not
// an object.
func (o *object) get(path []string) (jsontext.Value, bool) {
	for i, name := range path {
		m := o.find(name)
		if m == nil || m.value.Kind() == jsontext.KindNull {
			return nil, true
		}
		if i == len(path)-1 {
			return m.value, true
		}
		if o = m.open(); o == nil {
			return nil, false
		}
	}
	return nil, true
}

// set puts a value at a path, making the objects on the way.
func (o *object) set(path []string, value jsontext.Value) {
	o.dirty = true
	m := o.find(path[0])
	if m == nil {
		o.members = append(o.members, member{name: path[0]})
		m = &o.members[len(o.members)-1]
	}
	if len(path) == 1 {
		m.value, m.inner = value, nil
		return
	}
	if m.open() == nil {
		m.value, m.inner = jsontext.Value("{}"), &object{raw: jsontext.Value("{}")}
	}
	m.inner.set(path[1:], value)
}

// remove takes the value at a path away. Objects on the way stay, even empty.
func (o *object) remove(path []string) (removed bool) {
	i := slices.IndexFunc(o.members, func(m member) bool { return m.name == path[0] })
	switch {
	case i < 0:
		return false
	case len(path) == 1:
		o.members = slices.Delete(o.members, i, i+1)
		removed = true
	default:
		inner := o.members[i].open()
		removed = inner != nil && inner.remove(path[1:])
	}
	o.dirty = o.dirty || removed
	return removed
}

// text returns the object's JSON: the very bytes it was read from unless it
// was changed.
func (o *object) text() jsontext.Value {
	if !o.dirty {
		return o.raw
	}
	out := []byte{'{'}
	for i, m := range o.members {
		if i > 0 {
			out = append(out, ',')
		}
		out, _ = jsontext.AppendQuote(out, m.name) // the name was valid UTF-8 when read
		out = append(out, ':')
		if m.inner != nil {
			out = append(out, m.inner.text()...)
		} else {
			out = append(out, m.value...)
		}
	}
	return append(out, '}')
}
