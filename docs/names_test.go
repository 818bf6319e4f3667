package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	// A package and a name of it, not a part of a longer name, of a path or of a string.
	nameCited = regexp.MustCompile(`(?:^|[^\w./"-])([a-z]\w*)\.([A-Z]\w*)`)
	// A word in mixed capitals is the name of a declaration.
	firstName   = regexp.MustCompile(`^// (\w*[a-z0-9][A-Z]\w*)`)
	ofTemplates = regexp.MustCompile(`(?m)^(?:templ|func|type) (?:\([^)]*\) )?(\w+)`)
)

// goNames is what comments of Go files can name, and what they name wrongly.
type goNames struct {
	fset     *token.FileSet
	declared map[string]bool // packages, and what all packages with a name declare: usb, usb.Tool
	foreign  map[string]bool // names of other modules' packages, which a comment may mean
	found    []string
}

func (g *goNames) declare(pkg, name string) {
	g.declared[pkg], g.declared[pkg+"."+name] = true, true
}

// collect adds what a file declares and imports.
func (g *goNames) collect(file *ast.File) {
	for _, spec := range file.Imports {
		if imported, _ := strconv.Unquote(spec.Path.Value); !strings.HasPrefix(imported, "github.com/musterhq/muster/") {
			g.foreign[path.Base(imported)] = true
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		var idents []*ast.Ident
		switch n := n.(type) {
		case *ast.FuncDecl:
			idents = []*ast.Ident{n.Name}
		case *ast.TypeSpec:
			idents = []*ast.Ident{n.Name}
		case *ast.ValueSpec:
			idents = n.Names
		case *ast.Field:
			idents = n.Names
		}
		for _, ident := range idents {
			g.declare(file.Name.Name, ident.Name)
		}
		return true
	})
}

func (g *goNames) report(at token.Pos, format string, args ...any) {
	position := g.fset.Position(at)
	g.found = append(g.found, fmt.Sprintf("%s:%d: %s", position.Filename, position.Line, fmt.Sprintf(format, args...)))
}

// check finds comments that name what its package does not declare, and doc comments
// that begin with the name of another declaration. A function's may begin with a parameter.
func (g *goNames) check(file *ast.File, text string) {
	names := documented(file)
	for _, declaration := range file.Decls {
		if f, ok := declaration.(*ast.FuncDecl); ok && f.Doc != nil {
			for _, parameter := range f.Type.Params.List {
				for _, ident := range parameter.Names {
					names[f.Doc][ident.Name] = true
				}
			}
		}
	}
	for _, group := range file.Comments {
		for _, comment := range group.List {
			for _, cited := range nameCited.FindAllStringSubmatch(comment.Text, -1) {
				if pkg, name := cited[1], cited[2]; g.declared[pkg] && !g.foreign[pkg] && !g.declared[pkg+"."+name] {
					g.report(comment.Pos(), "package %s does not declare %s: write the name of what the comment means", pkg, name)
				}
			}
		}
		before := text[:g.fset.Position(group.Pos()).Offset]
		endsLine := strings.TrimSpace(before[strings.LastIndexByte(before, '\n')+1:]) != ""
		first := firstName.FindStringSubmatch(group.List[0].Text)
		if names[group] != nil && first != nil && !endsLine && !names[group][first[1]] {
			g.report(group.Pos(), "the comment begins with %s: begin it with the name of what it documents", first[1])
		}
	}
}

func TestNames_OfComments(t *testing.T) {
	t.Parallel()
	g := goNames{token.NewFileSet(), map[string]bool{}, map[string]bool{"main": true}, nil}
	for _, s := range sources(t, ".templ") {
		for _, match := range ofTemplates.FindAllStringSubmatch(s.text, -1) {
			g.declare(path.Base(path.Dir(s.path)), match[1])
		}
	}
	files := map[*ast.File]string{} // with their texts
	for _, s := range sources(t, ".go") {
		file, err := parser.ParseFile(g.fset, s.path, s.text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		g.collect(file)
		files[file] = s.text
	}
	for file, text := range files {
		g.check(file, text)
	}
	for _, finding := range g.found {
		t.Error(finding)
	}
}
