package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// checkInterfaces finds methods of interfaces without a comment, and those that return an error of which
// neither their comment nor their interface's says anything, apart from test support and generated files.
func checkInterfaces(packages []pkg) (findings []string) {
	for _, p := range packages {
		if own, _ := find(layers(), p.ImportPath); own.name == testSupport {
			continue
		}
		for _, name := range p.GoFiles {
			positions := token.NewFileSet()
			file, err := parser.ParseFile(positions, filepath.Join(p.Dir, name), nil, parser.ParseComments)
			if err != nil || ast.IsGenerated(file) {
				continue // the compiler reports the error
			}
			for _, method := range bareMethods(file) {
				findings = append(findings, fmt.Sprintf("%s/%s:%d: the comment of %s does not say what it does, or which errors it returns",
					p.ImportPath, name, positions.Position(method.Pos()).Line, method.Names[0].Name))
			}
		}
	}
	return findings
}

// ofErrors finds what a comment has that names an error, or says when there is one.
var ofErrors = regexp.MustCompile(`(?i:\b(fails?|errors?|refuses)\b)|\bfault\.[A-Z]|\b(Err[A-Z]|[A-Z]\w*Error\b)|\bio\.EOF\b`)

// bareMethods returns the methods of a file's interfaces that no comment explains, or whose
// errors none names. The comment of an interface with one method may explain
// the method, and each interface's may name the errors of all methods.
func bareMethods(file *ast.File) (bare []*ast.Field) {
	for _, declaration := range file.Decls {
		group, ok := declaration.(*ast.GenDecl)
		if !ok || group.Tok != token.TYPE {
			continue
		}
		for _, spec := range group.Specs {
			named := spec.(*ast.TypeSpec)
			methods, ok := named.Type.(*ast.InterfaceType)
			if !ok {
				continue
			}
			all := named.Doc.Text() + group.Doc.Text()
			for _, method := range methods.Methods.List {
				of, ok := method.Type.(*ast.FuncType)
				if !ok {
					continue
				}
				own := method.Doc.Text() + method.Comment.Text()
				if methods.Methods.NumFields() == 1 {
					own += all
				}
				if strings.TrimSpace(own) == "" || returnsError(of) && !ofErrors.MatchString(own+all) {
					bare = append(bare, method)
				}
			}
		}
	}
	return bare
}

// returnsError reports whether one of a function's results is an error.
func returnsError(of *ast.FuncType) bool {
	return of.Results != nil && slices.ContainsFunc(of.Results.List, func(result *ast.Field) bool {
		named, ok := result.Type.(*ast.Ident)
		return ok && named.Name == "error"
	})
}
