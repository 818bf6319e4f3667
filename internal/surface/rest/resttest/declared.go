package resttest

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/operation"
)

var braces = regexp.MustCompile(`\{[^}]*\}`)

// Declared compares the declarations of the whole service with Endpoints:
// every row is declared, as the row says, and nothing else is. The tools named
// in without are not there yet.
func Declared(t *testing.T, registry *operation.Registry, without ...string) {
	t.Helper()
	for _, complaint := range operation.Audit(registry) {
		t.Error(complaint)
	}
	open := slices.Clone(Endpoints)
	if registry.Find(Explain.Tool) != nil {
		open = append(open, Explain, Events)
	}
	for _, o := range registry.All() {
		got := describe(o)
		i := slices.IndexFunc(open, func(e Endpoint) bool { return e.Method == got.Method && e.Path == got.Path })
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
		if slices.Contains(without, e.Tool) {
			continue
		}
		t.Errorf("%s %s (%s) is not declared", e.Method, e.Path, e.Tool)
	}
}

// describe writes a declaration as a row.
func describe(o *operation.Operation) Endpoint {
	success := 200
	if o.Created {
		success = 201
	}
	permissions := o.Needs.Names()
	slices.Sort(permissions)
	return Endpoint{
		Method: o.Method, Path: braces.ReplaceAllString(o.Path, "{}"), Tool: o.Name,
		Permissions: strings.Join(permissions, " "), Gate: string(o.Gate), Family: FamilyOf(o), Success: success, Body: members(o),
	}
}

// FamilyOf is the family whose errors an operation speaks.
func FamilyOf(o *operation.Operation) Family {
	return map[operation.Dialect]Family{
		operation.FirstFour: FirstFour, operation.Commands: Commands, operation.Policies: Policies,
		operation.Provisioning: Provisioning, operation.Reads: Reads,
	}[o.Dialect]
}

func members(o *operation.Operation) string {
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
