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
				findings = append(findings,
					fmt.Sprintf("%s/%s:%d: the assertion joins %d conditions, more than %d: compare one value or split it",
						p.ImportPath, name, positions.Position(assertion.Pos()).Line, operands(assertion), maxConditions))
			}
		}
	}
	return findings
}

// joinedAssertions returns the conditions of a file that join more than maxConditions before they fail a test.
func joinedAssertions(file *ast.File) (found []ast.Expr) {
	check := func(condition ast.Expr, body []ast.Stmt) {
		if operands(condition) > maxConditions && slices.ContainsFunc(body, failsTest) {
			found = append(found, condition)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt:
			check(n.Cond, n.Body.List)
		case *ast.CaseClause:
			for _, condition := range n.List {
				check(condition, n.Body)
			}
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

// failsTest reports whether a statement fails a test, also in a loop or a block, but not under a condition of its own.
func failsTest(statement ast.Stmt) (fails bool) {
	ast.Inspect(statement, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt, *ast.SwitchStmt, *ast.TypeSwitchStmt, *ast.SelectStmt:
			return false
		case *ast.CallExpr:
			fails = fails || isFailure(n)
		}
		return true
	})
	return fails
}

// isFailure reports whether a call is one of a test's failures, and not http.Error.
func isFailure(call *ast.CallExpr) bool {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	of, _ := method.X.(*ast.Ident)
	return (of == nil || of.Name != "http") && slices.Contains([]string{"Error", "Errorf", "Fail", "FailNow", "Fatal", "Fatalf"},
		method.Sel.Name)
}
