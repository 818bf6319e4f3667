package service_test

import (
	"testing"

	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/service"
)

// What programs know of another service's operations is what a service offers.
func TestDeclarations_AreThoseOfAService(t *testing.T) {
	t.Parallel()
	l := servertest.New(t)
	offered, declared := l.Start().Registry().All(), service.Declarations().All()
	if len(offered) != len(declared) {
		t.Fatalf("a service offers %d operations, and %d are declared", len(offered), len(declared))
	}
	for i, o := range offered {
		if d := declared[i]; d.Name != o.Name || d.Method != o.Method || d.Path != o.Path {
			t.Errorf("operation %d: %s %s %s is declared as %s %s %s", i, o.Name, o.Method, o.Path, d.Name, d.Method, d.Path)
		}
	}
}
