package house

import (
	"go/ast"
	"go/types"
)

// Alarms, not targets: the usual file has 70 to 200 lines, the usual function
// 10 to 30, the usual interface one to three methods.
const (
	maxFileLines     = 500
	maxFunctionLines = 80
	maxMethods       = 12
)

// checkSizes finds files, functions and interfaces that have grown too big.
// The lines of tables (literals without code in them) don't count.
func (r *report) checkSizes(f *file) {
	if n := f.lines - r.tableLines(f.File); n > maxFileLines {
		r.add(f.Package, "file has %d lines, tables aside, more than %d: split it by subject", n, maxFileLines)
	}
	for _, decl := range f.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			r.checkFunction(decl, decl.Name.Name)
		case *ast.GenDecl:
			r.checkDeclared(f, decl)
		}
	}
}

// checkDeclared looks at what a var or type declaration holds: functions kept
// in variables, interfaces.
func (r *report) checkDeclared(f *file, decl *ast.GenDecl) {
	ast.Inspect(decl, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			r.checkFunction(n, "literal")
			return false
		case *ast.TypeSpec:
			r.checkInterface(f, n)
		}
		return true
	})
}

func (r *report) checkFunction(n ast.Node, name string) {
	if lines := r.lines(n) - r.tableLines(n); lines > maxFunctionLines {
		r.add(n.Pos(), "function %s has %d lines, tables aside, more than %d: name its parts", name, lines, maxFunctionLines)
	}
}

// checkInterface counts embedded methods as well, as far as the embedded
// interface is of the same package.
func (r *report) checkInterface(f *file, spec *ast.TypeSpec) {
	object := f.pkg.info.Defs[spec.Name]
	if object == nil {
		return
	}
	if itf, ok := object.Type().Underlying().(*types.Interface); ok && itf.NumMethods() > maxMethods {
		r.add(spec.Pos(), "interface %s has %d methods, more than %d: cut it by use case", spec.Name.Name, itf.NumMethods(), maxMethods)
	}
}

func (r *report) lines(n ast.Node) int {
	return r.tree.fset.Position(n.End()).Line - r.tree.fset.Position(n.Pos()).Line + 1
}

// tableLines counts the inner lines of the outermost composite literals below n
// in which there is no function.
func (r *report) tableLines(n ast.Node) int {
	sum := 0
	ast.Inspect(n, func(n ast.Node) bool {
		lit, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		if holdsFunction(lit) {
			return true
		}
		sum += max(r.lines(lit)-2, 0)
		return false
	})
	return sum
}

func holdsFunction(n ast.Node) bool {
	found := false
	ast.Inspect(n, func(n ast.Node) bool {
		if _, ok := n.(*ast.FuncLit); ok {
			found = true
		}
		return !found
	})
	return found
}
