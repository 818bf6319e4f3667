package house

import (
	"go/ast"
	"path"
	"slices"
	"strconv"
	"strings"
)

// vagueNames say nothing about what lies in a package.
var vagueNames = []string{"util", "utils", "common", "helper", "helpers", "model", "models", "types", "misc", "shared"}

// confined lists imports that belong to certain rooms only.
var confined = []struct {
	imports []string // import paths; what lies below them counts as well
	rooms   []string
	text    string
	tests   bool // the rule holds for tests, too
}{
	{
		imports: []string{"database/sql", "github.com/jackc/pgx", "modernc.org/sqlite"},
		rooms:   []string{"internal/database"},
		text:    "SQL belongs to internal/database: ask for it through an interface of the package that needs it",
		tests:   true,
	},
	{
		imports: []string{"google.golang.org/api"},
		rooms:   []string{"internal/platform", "internal/emulator", "internal/fcm"},
		text:    "the vendor's types belong to internal/platform, internal/emulator and internal/fcm: translate there",
		tests:   true,
	},
	{
		imports: []string{"flag"},
		rooms:   []string{"cmd", "internal/house/cmd"},
		text:    "flags belong to cmd: take the value as a parameter",
	},
}

// checkLayer finds packages without a place in the house and with names that
// say nothing.
func (r *report) checkLayer(p *pkg) {
	first := p.files[0]
	if _, l := room(p.dir); l == 0 {
		r.add(first.Package, "package %s has no layer: give it one in internal/house/layers.go", p.dir)
	}
	for _, name := range []string{path.Base(p.dir), first.Name.Name} {
		if slices.Contains(vagueNames, strings.TrimSuffix(name, "_test")) {
			r.add(first.Package, "a package named %s says nothing: name it after what it provides", name)
			return
		}
	}
}

func (r *report) checkImports(f *file) {
	for _, spec := range f.Imports {
		importPath, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue // the compiler says so
		}
		r.checkConfined(f, spec, importPath)
		if !f.test {
			r.checkDirection(f, spec, importPath)
		}
	}
}

func (r *report) checkConfined(f *file, spec *ast.ImportSpec, importPath string) {
	_, l := room(f.pkg.dir)
	for _, c := range confined {
		if within(importPath, c.imports...) && !within(f.pkg.dir, c.rooms...) && l != trial && (c.tests || !f.test) {
			r.add(spec.Pos(), "%s may not import %s: %s", f.pkg.dir, importPath, c.text)
		}
	}
}

func (r *report) checkDirection(f *file, spec *ast.ImportSpec, importPath string) {
	_, from := room(f.pkg.dir)
	if from != trial && (strings.HasSuffix(importPath, "test") || within(importPath, "testing")) {
		r.add(spec.Pos(), "production code may not import %s: it is for tests", importPath)
		return
	}
	dir, ok := r.tree.inModule(importPath)
	if !ok || from == 0 {
		return
	}
	_, to := room(dir)
	switch {
	case to == 0: // said where the imported package is declared
	case dir == "internal/fleetsim" && from == command && !within(f.pkg.dir, "cmd/muster"):
		r.add(spec.Pos(), "only cmd/muster may import %s", dir)
	case !mayImport(f.pkg.dir, dir):
		r.add(spec.Pos(), "%s (%s) may not import %s (%s): imports point down; let the consumer own an interface",
			f.pkg.dir, from, dir, to)
	}
}
