package operation_test

import (
	"testing"

	"github.com/musterhq/muster/internal/operation"
)

// The command line calls an operation by its group and a word that follows from method and path.
func TestOperation_Command(t *testing.T) {
	for _, c := range []struct{ method, path, group, name string }{
		{"GET", "/events", "", "events"},
		{"GET", "/assets", "devices", "list"},
		{"GET", "/assets/count", "devices", "count"},
		{"GET", "/assets/{assetId}", "devices", "show"},
		{"PATCH", "/assets/{assetId}", "devices", "set"},
		{"GET", "/assets/{assetId}/commands", "devices", "commands"},
		{"GET", "/assets/{assetId}/commands/{reference}", "devices", "command"},
		{"POST", "/assets/{assetId}/commands/lock", "devices", "lock"},
		{"POST", "/policies/{policyId}/rollbacks", "policies", "rollback"},
		{"POST", "/policies/{policyId}/enrollment-codes", "policies", "enrollment-code"},
		{"POST", "/policy-proposals", "proposals", "create"},
		{"POST", "/policy-proposals/{proposalId}/apply", "proposals", "apply"},
	} {
		o := operation.Operation{Method: c.method, Path: c.path}
		if group, name := o.Command(); group != c.group || name != c.name {
			t.Errorf("%s %s is called by %q %q, want %q %q", c.method, c.path, group, name, c.group, c.name)
		}
	}
}
