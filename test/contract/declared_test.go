package contract_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/surface/rest/resttest"
)

var braces = regexp.MustCompile(`\{[^}]*\}`)

// Every row of the contract's endpoints is declared, as the row says, and nothing else is.
func TestContract_DeclarationsMatch(t *testing.T) {
	t.Parallel()
	open := append(slices.Clone(resttest.Endpoints), resttest.Explain, resttest.Events)
	for _, o := range whole(t).All() {
		got := describe(o)
		i := slices.IndexFunc(open, func(e resttest.Endpoint) bool { return e.Method == got.Method && e.Path == got.Path })
		if i < 0 {
			t.Errorf("%s %s (%s) is not in the contract, or declared twice", o.Method, o.Path, o.Name)
			continue
		}
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
func describe(o *operation.Operation) resttest.Endpoint {
	success := 200
	if o.Created {
		success = 201
	}
	permissions := o.Needs.Names()
	slices.Sort(permissions)
	return resttest.Endpoint{
		Method: o.Method, Path: braces.ReplaceAllString(o.Path, "{}"), Tool: o.Name,
		Permissions: strings.Join(permissions, " "), Gate: string(o.Gate), Family: resttest.FamilyOf(o),
		Success: success, Body: bodyMembers(o),
	}
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
