// Package expect compares several values of one result, so that a failing test names each
// that differs.
package expect

import (
	"maps"
	"reflect"
	"slices"
	"testing"
)

// Values has for each name what a test got and what it wants.
type Values map[string][2]any

// Equal fails the test, without ending it, for each value that is not as wanted.
func Equal(tb testing.TB, what string, values Values) {
	tb.Helper()
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if got, want := values[name][0], values[name][1]; !reflect.DeepEqual(got, want) {
			tb.Errorf("%s: %s is %v, want %v", what, name, got, want)
		}
	}
}
