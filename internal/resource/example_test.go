package resource_test

import (
	"fmt"

	"github.com/musterhq/muster/internal/resource"
)

// Callers name an asset by its id or by its full name. The name of another
// company's asset is no id, so that the asset is not found.
func ExampleShort() {
	for _, ref := range []string{"front-desk", "enterprises/acme/assets/front-desk", "enterprises/other/assets/front-desk"} {
		_, ok := resource.Short("acme", resource.Assets, ref)
		fmt.Println(ref, ok)
	}
	// Output:
	// front-desk true
	// enterprises/acme/assets/front-desk true
	// enterprises/other/assets/front-desk false
}
