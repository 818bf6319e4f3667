package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// Diff is what differs between two states of a policy.
type Diff struct {
	Moves []Move // settings, in the catalog's order
	// Others are the members of the document that differ and that no moved
	// setting explains, as dotted paths in alphabetical order: apps, for one.
	Others []string
	// Name is the name's change; nil if it is the same.
	Name *[2]string
	// Description, Labels and Group say whether these differ.
	Description, Labels, Group bool
}

// Unnamed are the differences that neither a setting nor the name explains.
func (d Diff) Unnamed() []string {
	all := slices.Clone(d.Others)
	for _, one := range []struct {
		differs bool
		word    string
	}{{d.Description, "description"}, {d.Labels, "labels"}, {d.Group, "group"}} {
		if one.differs {
			all = append(all, one.word)
		}
	}
	return all
}

// Empty reports whether nothing differs.
func (d Diff) Empty() bool {
	return len(d.Moves) == 0 && len(d.Others) == 0 && d.Name == nil && !d.Description && !d.Labels && !d.Group
}

// OnlyName reports whether nothing but the name differs.
func (d Diff) OnlyName() bool {
	d.Name = nil
	return d.Empty()
}

// Risky reports whether a setting of high impact differs, or one with a value that can
// erase data or cut devices off, or a member of the document that no setting names: what
// that one does is not known.
func (d Diff) Risky() bool {
	return len(d.Others) > 0 || slices.ContainsFunc(d.Moves, func(m Move) bool {
		return m.Setting.HighImpact || Warning(m.Setting.ID, m.From) != "" || Warning(m.Setting.ID, m.To) != ""
	})
}

// Compare returns what leads from one state of a policy to another.
func Compare(t Type, from, to Revision) (Diff, error) {
	d, err := CompareDocuments(t, from.Document, to.Document)
	if err != nil {
		return Diff{}, err
	}
	if from.Name != to.Name {
		d.Name = &[2]string{from.Name, to.Name}
	}
	d.Description = from.Description != to.Description
	d.Labels = !slices.Equal(from.Labels, to.Labels)
	d.Group = from.Group != to.Group
	return d, nil
}

// CompareDocuments returns the settings that move and the other members that
// differ. Order of members and white space do not count; an absent object and
// an empty one are the same.
func CompareDocuments(t Type, from, to json.RawMessage) (Diff, error) {
	a, err := parseObject(from)
	if err != nil {
		return Diff{}, fmt.Errorf("cannot read the earlier document: %w", err)
	}
	b, err := parseObject(to)
	if err != nil {
		return Diff{}, fmt.Errorf("cannot read the later document: %w", err)
	}
	var d Diff
	for i := range catalog {
		r := &catalog[i]
		was, is := read(a, t, r), read(b, t, r)
		if was == is {
			continue
		}
		d.Moves = append(d.Moves, Move{Setting: r.setting(), From: was, To: is})
		for _, path := range r.paths(t) {
			a.remove(path)
			b.remove(path)
		}
	}
	d.Others = differing(tree(a), tree(b), "")
	return d, nil
}

// paths are all members of a document that make the setting.
func (r *row) paths(t Type) [][]string {
	if t == Agent {
		return [][]string{{"settings", r.id}}
	}
	all := [][]string{r.path}
	for _, f := range r.former {
		all = append(all, f.path)
	}
	return all
}

func tree(o *object) map[string]any {
	d := json.NewDecoder(bytes.NewReader(o.text()))
	d.UseNumber() // a number is compared as it is written, never rounded
	var m map[string]any
	_ = d.Decode(&m) // the text was read as valid JSON before
	return m
}

func differing(a, b map[string]any, prefix string) []string {
	names := slices.Concat(slices.Collect(maps.Keys(a)), slices.Collect(maps.Keys(b)))
	slices.Sort(names)
	var found []string
	for _, name := range slices.Compact(names) {
		x, xIs := asObject(a[name])
		y, yIs := asObject(b[name])
		switch {
		case xIs && yIs:
			found = append(found, differing(x, y, prefix+name+".")...)
		case !reflect.DeepEqual(a[name], b[name]):
			found = append(found, prefix+name)
		}
	}
	return found
}

// asObject takes an absent member for an empty object.
func asObject(v any) (map[string]any, bool) {
	if v == nil {
		return nil, true
	}
	m, ok := v.(map[string]any)
	return m, ok
}
