package policy_test

import (
	"fmt"

	"github.com/musterhq/muster/internal/policy"
)

// A change of a setting writes the document that the platform gets. The setting's row in
// the catalog says where.
func ExampleApply() {
	changes := []policy.Change{{Setting: "CAMERA", Value: "BLOCK"}}
	document, moves, err := policy.Apply(policy.Platform, policy.Empty(policy.Platform), changes)
	fmt.Println(string(document), err)
	for _, m := range moves {
		fmt.Println(m.Setting.Label, m.From, "to", m.To)
	}
	// Output:
	// {"cameraAccess":"CAMERA_ACCESS_DISABLED"} <nil>
	// Camera NOT_SET to BLOCK
}
