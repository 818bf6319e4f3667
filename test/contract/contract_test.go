package contract_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/surface/rest"
	"github.com/musterhq/muster/internal/surface/rest/resttest"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// whole is the registry of the whole service.
func whole(t *testing.T) *operation.Registry {
	t.Helper()
	return servertest.New(t).Start().Registry()
}

func TestContract_EveryRefusal(t *testing.T) {
	t.Parallel()
	resttest.Refusals(t, whole(t))
}

// Contract 7.5: a read is answered 503 while the database is away.
func TestContract_ReadsSayThatTheyCanBeUnavailable(t *testing.T) {
	t.Parallel()
	for _, o := range whole(t).All() {
		if o.Effect == operation.Reading && o.Dialect == operation.Reads && !slices.Contains(o.Faults, fault.Unavailable) {
			t.Errorf("%s does not declare %s", o.Name, fault.Unavailable)
		}
	}
}

// The description of the whole interface is committed, so that a change of the
// contract is a readable diff: go test ./test/contract -run OpenAPI -update
func TestOpenAPI_Golden(t *testing.T) {
	t.Parallel()
	registry := whole(t)
	resttest.Described(t, registry)
	golden := filepath.Join("testdata", "openapi.json")
	got := rest.OpenAPI(registry, "https://muster.example")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the interface has changed: look at the diff of %s after -update", golden)
	}
}
