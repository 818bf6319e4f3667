package house

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// tree is a module's sources.
type tree struct {
	module   string // the module's path
	direct   []requirement
	fset     *token.FileSet
	packages []*pkg // in order of directory
}

// pkg is the sources of one directory.
type pkg struct {
	dir   string // slash-separated, from the module's root
	files []*file
	types *types.Package
	info  types.Info // of the files that are not tests; imports are hollow
}

type file struct {
	*ast.File
	pkg       *pkg
	test      bool
	generated bool
	lines     int
}

func load(fsys fs.FS) (*tree, error) {
	t := &tree{fset: token.NewFileSet()}
	if err := t.loadModule(fsys); err != nil {
		return nil, err
	}
	byDir := make(map[string]*pkg)
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return skip(fsys, name)
		}
		if path.Ext(name) != ".go" {
			return nil
		}
		f, err := t.parse(fsys, name)
		if err != nil {
			return err
		}
		dir := path.Dir(name)
		if byDir[dir] == nil {
			byDir[dir] = &pkg{dir: dir}
			t.packages = append(t.packages, byDir[dir])
		}
		f.pkg = byDir[dir]
		f.pkg.files = append(f.pkg.files, f)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, p := range t.packages {
		p.resolve(t)
	}
	return t, nil
}

// skip leaves out what the go command leaves out, modules of their own (the
// developers' tools) and what package managers bring.
func skip(fsys fs.FS, dir string) error {
	base := path.Base(dir)
	if dir == "." {
		return nil
	}
	if base[0] == '.' || base[0] == '_' || base == "testdata" || base == "node_modules" {
		return fs.SkipDir
	}
	if _, err := fs.Stat(fsys, path.Join(dir, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

func (t *tree) parse(fsys fs.FS, name string) (*file, error) {
	source, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, err
	}
	parsed, err := parser.ParseFile(t.fset, name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("cannot parse: %w", err)
	}
	return &file{
		File:      parsed,
		test:      strings.HasSuffix(name, "_test.go"),
		generated: ast.IsGenerated(parsed),
		lines:     strings.Count(string(source), "\n"),
	}, nil
}

// resolve tells which declaration each identifier means. Imported packages are
// left hollow: all that is asked of them is their path, so the type checker's
// complaints about their members are of no interest.
func (p *pkg) resolve(t *tree) {
	p.info = types.Info{
		Defs:  make(map[*ast.Ident]types.Object),
		Uses:  make(map[*ast.Ident]types.Object),
		Types: make(map[ast.Expr]types.TypeAndValue),
	}
	var files []*ast.File
	for _, f := range p.files {
		if !f.test {
			files = append(files, f.File)
		}
	}
	config := types.Config{Importer: hollow{}, Error: func(error) {}, FakeImportC: true}
	p.types, _ = config.Check(path.Join(t.module, p.dir), t.fset, files, &p.info)
}

// hollow imports every package as an empty one, but for the types that hold
// state: those are declared, each as a struct with a channel in it, so that
// they are found inside other types.
type hollow struct{}

var errNoPath = errors.New("empty import path")

var stateful = map[string][]string{
	"bytes":       {"Buffer"},
	"strings":     {"Builder"},
	"sync":        {"Cond", "Map", "Mutex", "Once", "Pool", "RWMutex", "WaitGroup"},
	"sync/atomic": {"Bool", "Int32", "Int64", "Uint32", "Uint64", "Uintptr", "Value"},
}

func (hollow) Import(importPath string) (*types.Package, error) {
	if importPath == "" {
		return nil, errNoPath
	}
	imported := types.NewPackage(importPath, packageName(importPath))
	state := types.NewVar(token.NoPos, imported, "state", types.NewChan(types.SendRecv, types.Typ[types.Int]))
	for _, name := range stateful[importPath] {
		declared := types.NewTypeName(token.NoPos, imported, name, nil)
		types.NewNamed(declared, types.NewStruct([]*types.Var{state}, nil), nil)
		imported.Scope().Insert(declared)
	}
	imported.MarkComplete()
	return imported, nil
}

// packageName guesses the name of a package from its path, as the go command's
// conventions have it: no major version, no "go-" in front.
func packageName(importPath string) string {
	parts := strings.Split(importPath, "/")
	last := parts[len(parts)-1]
	if len(parts) > 1 && len(last) > 1 && last[0] == 'v' && strings.Trim(last[1:], "0123456789") == "" {
		last = parts[len(parts)-2]
	}
	last, _, _ = strings.Cut(last, ".")
	return strings.ReplaceAll(strings.TrimPrefix(last, "go-"), "-", "")
}

// selects tells which package and name a selector such as time.Now means; the
// package is empty for fields and methods.
func (f *file) selects(s *ast.SelectorExpr) (importPath, member string) {
	id, ok := s.X.(*ast.Ident)
	if !ok {
		return "", ""
	}
	if imported, ok := f.pkg.info.Uses[id].(*types.PkgName); ok {
		return imported.Imported().Path(), s.Sel.Name
	}
	return "", ""
}

// inModule is the directory of a package of this module; ok is false for others.
func (t *tree) inModule(importPath string) (dir string, ok bool) {
	return strings.CutPrefix(importPath, t.module+"/")
}

// production is a package's files that are neither tests nor generated.
func (p *pkg) production() []*file {
	return slices.DeleteFunc(slices.Clone(p.files), func(f *file) bool { return f.test || f.generated })
}
