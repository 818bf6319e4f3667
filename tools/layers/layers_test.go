package main

import (
	"slices"
	"testing"
)

func TestCheckImports_FindsWhatBreaksARule(t *testing.T) {
	t.Parallel()
	all := []layer{
		{"leaf", "leaf", []string{"internal/phrase", "internal/wait"}},
		{"type", "leaf", []string{"internal/asset", "internal/policy"}},
		{testSupport, "leaf type", []string{"internal/assettest"}},
	}
	rules := []confined{
		{[]string{"database/sql"}, []string{"internal/asset"}, true, "remedy"},
		{[]string{"flag"}, nil, false, "remedy"},
	}
	const up = ": a package of layer leaf may not import internal/asset of layer type: declare an interface in the consumer"
	tests := map[string]struct {
		pkg  pkg
		want []string
	}{
		"imports of lower layers": {pkg{ImportPath: "internal/asset", Imports: []string{"internal/phrase", "os", "database/sql/driver"}},
			nil},
		"packages of one entry": {pkg{ImportPath: "internal/asset/view", Imports: []string{"internal/asset"}}, nil},
		"leaves":                {pkg{ImportPath: "internal/phrase", Imports: []string{"internal/wait"}}, nil},
		"an import upwards": {pkg{ImportPath: "internal/phrase", Imports: []string{"internal/asset"}},
			[]string{"internal/phrase" + up}},
		"an import upwards, nested": {pkg{ImportPath: "internal/phrase/csv", Imports: []string{"internal/asset"}},
			[]string{"internal/phrase/csv" + up}},
		"a sibling": {pkg{ImportPath: "internal/policy", Imports: []string{"internal/asset"}},
			[]string{"internal/policy: a package of layer type may not import internal/asset of layer type: declare an interface in " +
				"the consumer"}},
		"tests import anything": {pkg{ImportPath: "internal/phrase", XTestImports: []string{"internal/asset", "testing", "flag"}},
			nil},
		"test support": {pkg{ImportPath: "internal/assettest", Imports: []string{"internal/asset", "testing", "flag"}}, nil},
		"test support in production": {pkg{ImportPath: "internal/policy", Imports: []string{"net/http/httptest"}},
			[]string{"internal/policy: imports net/http/httptest, which is for tests"}},
		"a confined import": {pkg{ImportPath: "internal/policy", Imports: []string{"flag"}},
			[]string{"internal/policy: imports flag: remedy"}},
		"a confined import in tests": {pkg{ImportPath: "internal/policy", TestImports: []string{"database/sql"}},
			[]string{"internal/policy: imports database/sql: remedy"}},
		"no layer": {pkg{ImportPath: "internal/assets"},
			[]string{"internal/assets: the package has no layer: add it to tools/layers/rules.go"}},
		"a vague folder": {pkg{ImportPath: "internal/asset/util", Name: "ids"},
			[]string{"internal/asset/util: its name does not say what it provides"}},
		"a vague name": {pkg{ImportPath: "internal/asset/ids", Name: "helpers"},
			[]string{"internal/asset/ids: its name does not say what it provides"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			packages := []pkg{test.pkg}
			for _, l := range all { // so that each entry has a package
				for _, entry := range l.packages {
					packages = append(packages, pkg{ImportPath: entry})
				}
			}
			if got := checkImports(packages, all, rules); !slices.Equal(got, test.want) {
				t.Errorf("findings %q, want %q", got, test.want)
			}
		})
	}
}

func TestCheckImports_FindsEntriesWithoutPackage(t *testing.T) {
	t.Parallel()
	got := checkImports([]pkg{{ImportPath: "internal/phrase"}}, []layer{{"leaf", "", []string{"internal/phrase", "internal/wait"}}}, nil)
	if want := "internal/wait: there is no such package: remove it from tools/layers/rules.go"; !slices.Equal(got, []string{want}) {
		t.Errorf("findings %q, want %q", got, want)
	}
}

func TestCheckDependencies_ComparesRequirementsWithReasons(t *testing.T) {
	t.Parallel()
	got := checkDependencies([]string{"a.example/x", "b.example/y"},
		"| module | reason |\n|---|---|\n| `a.example/x` | reason |\n| `c.example/z` | reason |\n")
	want := []string{
		"go.mod: b.example/y has no row in docs/dependencies.md: say why it is required and what it replaces",
		"docs/dependencies.md: c.example/z is not a direct requirement of go.mod: remove its row",
	}
	if !slices.Equal(got, want) {
		t.Errorf("findings %q, want %q", got, want)
	}
}
