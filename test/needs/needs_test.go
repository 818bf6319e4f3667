package needs_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/musterhq/muster/test/needs"
)

// TestNeeds_Missing reports what the other packages skip on this machine. The go
// command shows nothing that a passing test prints, so the report goes to the go
// command's own standard error, once for a whole `go test ./...`.
func TestNeeds_Missing(t *testing.T) {
	var report strings.Builder
	for _, n := range needs.All() {
		if _, err := n.Find(); err != nil {
			fmt.Fprintf(&report, "skipped: %s: %s is missing (%s)\n", n.Without, n.Name, n.Remedy)
		}
	}
	report.WriteString("skipped: conformance suites of others: they need Node and Python packages (make conformance)\n")
	t.Log(report.String())
	if testing.Verbose() {
		return // the go command shows the log
	}
	if out, err := goStderr(); err == nil {
		_, _ = out.WriteString(report.String())
		_ = out.Close()
	}
}

// Every need says how to get it and what is skipped without it.
func TestNeeds_AreComplete(t *testing.T) {
	names := map[string]bool{}
	for _, n := range needs.All() {
		if n.Name == "" || n.Remedy == "" || n.Without == "" || names[n.Name] {
			t.Errorf("%q: remedy %q, without %q", n.Name, n.Remedy, n.Without)
		}
		names[n.Name] = true
	}
}

func TestNeed_Of(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for _, test := range []struct {
		name, ci string
		need     needs.Need
		want     string
	}{
		{"a developer's machine", "", needs.Zbar(), "skipped"},
		{"CI", "true", needs.Zbar(), "failed"},
		{"CI without an optional right", "true", needs.Mount(), "skipped"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("CI", test.ci)
			r := &recorder{TB: t}
			if path := test.need.Of(r); path != "" || r.end != test.want {
				t.Errorf("the test is %q with path %q, want %q", r.end, path, test.want)
			}
		})
	}
}

// recorder keeps how a test ends.
type recorder struct {
	testing.TB
	end string
}

func (r *recorder) Skip(...any)  { r.end = "skipped" }
func (r *recorder) Fatal(...any) { r.end = "failed" }
