package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
)

// maxConditions is how many operands of && and || an assertion of a test joins at most.
const maxConditions = 4

// checkAssertions finds assertions that join too many conditions in tests and test support.
func checkAssertions(packages []pkg) (findings []string) {
	for _, p := range packages {
		names := slices.Concat(p.TestGoFiles, p.XTestGoFiles)
		if own, _ := find(layers(), p.ImportPath); own.name == testSupport {
			names = append(names, p.GoFiles...)
		}
		for _, name := range names {
			positions := token.NewFileSet()
			file, err := parser.ParseFile(positions, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				continue // the compiler reports the error
			}
			for _, assertion := range joinedAssertions(file) {
				findings = append(findings, fmt.Sprintf("%s/%s:%d: the assertion joins %d conditions, more than %d: compare one value or split it",
					p.ImportPath, name, positions.Position(assertion.Pos()).Line, operands(assertion.Cond), maxConditions))
			}
		}
	}
	return findings
}

// joinedAssertions returns the if statements of a file that join more than maxConditions and fail a test.
func joinedAssertions(file *ast.File) (found []*ast.IfStmt) {
	ast.Inspect(file, func(n ast.Node) bool {
		if statement, ok := n.(*ast.IfStmt); ok && operands(statement.Cond) > maxConditions && slices.ContainsFunc(statement.Body.List, failsTest) {
			found = append(found, statement)
		}
		return true
	})
	return found
}

// operands counts what && and || join in a condition, also within parentheses and negations.
func operands(condition ast.Expr) int {
	switch e := condition.(type) {
	case *ast.ParenExpr:
		return operands(e.X)
	case *ast.UnaryExpr:
		return operands(e.X)
	case *ast.BinaryExpr:
		if e.Op == token.LAND || e.Op == token.LOR {
			return operands(e.X) + operands(e.Y)
		}
	}
	return 1
}

// failsTest reports whether a statement calls Error, Errorf, Fatal or Fatalf, but not http.Error.
func failsTest(statement ast.Stmt) bool {
	expression, ok := statement.(*ast.ExprStmt)
	if !ok {
		return false
	}
	call, ok := expression.X.(*ast.CallExpr)
	if !ok {
		return false
	}
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	of, _ := method.X.(*ast.Ident)
	return (of == nil || of.Name != "http") && slices.Contains([]string{"Error", "Errorf", "Fatal", "Fatalf"}, method.Sel.Name)
}
