package main

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// mutant is one change of one condition.
type mutant struct {
	number   int // of those that are drawn, from 1
	target   target
	file     string // relative to the root
	line     int
	function string // or Type.Method
	old, new string // the condition, on one line
	from, to int    // offsets of what text replaces
	text     string
	nth      int    // of the mutants with the same key
	reason   string // why it is equivalent; empty: it is not
}

// key names a mutant without its line, so that it stays the same while the file changes around it.
func (m mutant) key() string {
	return m.target.pkg + " " + m.function + "\n" + m.old + " -> " + m.new
}

func (m mutant) String() string {
	return fmt.Sprintf("%s:%d %s: %s -> %s", m.file, m.line, m.function, m.old, m.new)
}

// conditions are all mutants of a target, in the order of its files.
func conditions(t target) ([]mutant, error) {
	var all []mutant
	nth := map[string]int{}
	for _, path := range t.sources() {
		found, err := conditionsOf(t, path)
		if err != nil {
			return nil, err
		}
		for _, m := range found {
			m.nth = nth[m.key()]
			nth[m.key()]++
			all = append(all, m)
		}
	}
	return all, nil
}

// sources are the files of a target that this system compiles, without tests and generated files.
func (t target) sources() (paths []string) {
	patterns := t.files
	if len(patterns) == 0 {
		patterns = []string{"*.go"}
	}
	for _, pattern := range patterns {
		found, _ := filepath.Glob(filepath.Join(t.pkg, pattern)) // the patterns are constants
		for _, path := range found {
			compiled, err := build.Default.MatchFile(t.pkg, filepath.Base(path))
			if err == nil && compiled && !strings.HasSuffix(path, "_test.go") {
				paths = append(paths, path)
			}
		}
	}
	return paths
}

func conditionsOf(t target, path string) ([]mutant, error) {
	source, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, path, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil || ast.IsGenerated(parsed) {
		return nil, err
	}
	s := scan{target: t, path: path, source: source, files: files}
	for _, d := range parsed.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
			s.function = name(f)
			ast.Inspect(f.Body, s.visit)
		}
	}
	return s.found, nil
}

// name is Type.Method or the function's name.
func name(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	t := f.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if generic, ok := t.(*ast.IndexExpr); ok {
		t = generic.X
	}
	if ident, ok := t.(*ast.Ident); ok {
		return ident.Name + "." + f.Name.Name
	}
	return f.Name.Name
}

// scan collects the mutants of a file.
type scan struct {
	target   target
	path     string
	source   []byte
	files    *token.FileSet
	function string
	found    []mutant
}

// others are the operators that take the place of one: the boundary moves, equality is
// inverted, "and" and "or" are exchanged.
func others() map[token.Token]token.Token {
	return map[token.Token]token.Token{
		token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
		token.EQL: token.NEQ, token.NEQ: token.EQL, token.LAND: token.LOR, token.LOR: token.LAND,
	}
}

func (s *scan) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		if op, ok := others()[n.Op]; ok && !isFailure(n) {
			x, y := s.text(n.X), s.text(n.Y)
			s.add(n, "("+x+") "+op.String()+" ("+y+")", oneLine(x)+" "+op.String()+" "+oneLine(y))
		}
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			s.add(n, s.text(n.X), oneLine(s.text(n.X)))
		}
	case *ast.IfStmt:
		s.never(n.Cond)
	case *ast.SwitchStmt:
		if n.Tag == nil {
			for _, c := range n.Body.List {
				for _, condition := range c.(*ast.CaseClause).List {
					s.never(condition)
				}
			}
		}
	}
	return true
}

// never makes the condition of an if, or of a case, false, and keeps what it uses.
func (s *scan) never(condition ast.Expr) {
	if !isFailure(condition) {
		s.add(condition, "false && ("+s.text(condition)+")", "false")
	}
}

// isFailure reports whether a condition is only that something failed, or did not: what
// follows is that the failure is passed on, which is no guard.
func isFailure(e ast.Expr) bool {
	b, ok := e.(*ast.BinaryExpr)
	if !ok || b.Op != token.EQL && b.Op != token.NEQ {
		return false
	}
	x, isIdent := b.X.(*ast.Ident)
	y, isNil := b.Y.(*ast.Ident)
	return isIdent && isNil && x.Name == "err" && y.Name == "nil"
}

func (s *scan) text(n ast.Node) string {
	return string(s.source[s.files.Position(n.Pos()).Offset:s.files.Position(n.End()).Offset])
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func (s *scan) add(n ast.Node, text, shown string) {
	at := s.files.Position(n.Pos())
	s.found = append(s.found, mutant{
		target: s.target, file: s.path, line: at.Line, function: s.function, old: oneLine(s.text(n)), new: shown,
		from: at.Offset, to: s.files.Position(n.End()).Offset, text: "(" + text + ")",
	})
}
