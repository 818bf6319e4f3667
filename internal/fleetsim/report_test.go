package fleetsim

import (
	"strings"
	"testing"
)

// Outcomes that differ in their times alone are one kind of failure.
func TestKindOf(t *testing.T) {
	t.Parallel()
	a := kindOf("expired: the device did not come back until 2026-11-22T07:09:16.123Z")
	if b := kindOf("expired: the device did not come back until 2027-01-02T03:04:05+01:00"); a != b || strings.Contains(a, "2026") {
		t.Errorf("%q and %q are counted apart", a, b)
	}
}
