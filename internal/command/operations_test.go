package command_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/test/expect"
	"github.com/musterhq/muster/test/spec"
)

// Whatever takes the permission for destructive commands is a command that the
// company's limit counts, and nothing else is.
func TestDefine_Destructive(t *testing.T) {
	t.Parallel()
	r := &operation.Registry{}
	command.Define(r, &command.Service{})
	counted := map[string]bool{}
	for _, kind := range command.Types() {
		if kind.Destructive() {
			counted[string(kind)] = true
		}
	}
	for _, o := range r.All() {
		if (o.Gate == access.DestructiveCommands) != o.Needs.Has(access.DevicesCommandDestructive) {
			t.Errorf("%s: gate %q, needs %s", o.Name, o.Gate, o.Needs)
		}
		for _, sample := range o.Samples {
			if result, ok := sample.(command.Result); ok && counted[string(result.Type)] != (o.Gate == access.DestructiveCommands) {
				t.Errorf("%s sends %s: counted %t", o.Name, result.Type, counted[string(result.Type)])
			}
		}
	}
	for _, c := range spec.Commands {
		if counted[c.Type] != c.Destructive() {
			t.Errorf("%s: counted %t", c.Type, counted[c.Type])
		}
	}
}

// The catalog is the contract's table, row by row, in its order. test/contract compares permissions, settings and bodies.
func TestDeclarations(t *testing.T) {
	t.Parallel()
	r := &operation.Registry{}
	command.Define(r, &command.Service{})
	for i, row := range command.Catalog() {
		if i >= len(spec.Commands) {
			t.Fatalf("%s is not in test/spec", row.Type)
		}
		want, o := spec.Commands[i], r.Find(row.Operation)
		budget := operation.AfterValidation
		if want.Family == spec.FirstFour {
			budget = operation.BeforeValidation
		}
		expect.Equal(t, row.Operation, expect.Values{"operation": {row.Operation, want.Tool}, "type": {string(row.Type), want.Type},
			"segment": {row.Segment, want.Segment}, "budget": {o.Budget, budget}, "unconfirmed": {o.Unconfirmed, true},
			// contract 7.1: messages never return 502
			"blames the platform": {o.Faults == nil || slices.Contains(o.Faults, fault.Provider), row.Type != command.NotificationMessage}})
		if len(o.Description) < 80 || !strings.HasSuffix(o.Description, ".") {
			t.Errorf("%s is described as %q", o.Name, o.Description)
		}
	}
	if got, want := len(command.Catalog()), len(spec.Commands); got != want {
		t.Errorf("%d commands, want %d", got, want)
	}
	for _, name := range []string{"list_device_commands", "list_logs", "get_log"} {
		o := r.Find(name)
		expect.Equal(t, name, expect.Values{"budget": {o.Budget, operation.Free}, "unconfirmed": {o.Unconfirmed, false}})
	}
}
