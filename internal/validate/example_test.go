package validate_test

import (
	"fmt"

	"github.com/musterhq/muster/internal/validate"
)

// A device's text loses its control characters and outer spaces, and gets a limit.
func ExampleClean() {
	fmt.Printf("%q\n", validate.Clean("  Pixel\t8\x00  Pro\n", 50))
	fmt.Printf("%q\n", validate.Clean("Pixel 8 Pro", 7))
	// Output:
	// "Pixel 8 Pro"
	// "Pixel 8"
}
