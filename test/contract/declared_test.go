package contract_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/surface/rest/resttest"
	"github.com/musterhq/muster/test/spec"
)

// Every row of the contract's endpoints is declared, as the row says, and nothing else is.
func TestContract_DeclarationsMatch(t *testing.T) {
	t.Parallel()
	open := spec.All()
	for _, o := range whole(t).All() {
		got := describe(o)
		i := slices.IndexFunc(open, func(e spec.Endpoint) bool { return e.Method == got.Method && e.Path == got.Path })
		if i < 0 {
			t.Errorf("%s %s (%s) is not in the contract, or declared twice", o.Method, o.Path, o.Name)
			continue
		}
		got.Example = open[i].Example
		if got != open[i] {
			t.Errorf("%s\n declared %+v\ncontract %+v", o.Name, got, open[i])
		}
		open = slices.Delete(open, i, i+1)
	}
	for _, e := range open {
		t.Errorf("%s %s (%s) is not declared", e.Method, e.Path, e.Tool)
	}
}

// describe writes a declaration as a row.
func describe(o *operation.Operation) spec.Endpoint {
	success := 200
	if o.Created {
		success = 201
	}
	permissions := o.Needs.Names()
	slices.Sort(permissions)
	return spec.Endpoint{
		Method: o.Method, Path: o.Path, Tool: o.Name, Effect: effectOf(o),
		Permissions: strings.Join(permissions, " "), Gate: string(o.Gate), Family: resttest.FamilyOf(o),
		Success: success, Body: bodyMembers(o),
	}
}

func effectOf(o *operation.Operation) spec.Effect {
	switch {
	case o.Effect == operation.Destroying:
		return spec.Destroying
	case o.Disruptive:
		return spec.Disrupting
	case o.Effect == operation.Writing:
		return spec.Adding
	}
	return spec.Reading
}

func bodyMembers(o *operation.Operation) string {
	if !o.HasBody() {
		return "-"
	}
	schema := o.BodySchema()
	var names []string
	for _, name := range schema.PropertyOrder {
		if slices.Contains(schema.Required, name) {
			name += "*"
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}
