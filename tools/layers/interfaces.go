package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
)

// checkInterfaces finds methods of interfaces without a comment, apart from test support
// and generated files. The comment of an interface with one
// method may explain the method.
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
				findings = append(findings, fmt.Sprintf("%s/%s:%d: %s has no comment: say what it does and which errors it returns",
					p.ImportPath, name, positions.Position(method.Pos()).Line, method.Names[0].Name))
			}
		}
	}
	return findings
}

// bareMethods returns the methods of a file's interfaces that no comment explains.
func bareMethods(file *ast.File) (bare []*ast.Field) {
	for _, declaration := range file.Decls {
		group, ok := declaration.(*ast.GenDecl)
		if !ok || group.Tok != token.TYPE {
			continue
		}
		for _, spec := range group.Specs {
			named := spec.(*ast.TypeSpec)
			methods, ok := named.Type.(*ast.InterfaceType)
			if !ok || methods.Methods.NumFields() == 1 && strings.TrimSpace(named.Doc.Text()+group.Doc.Text()) != "" {
				continue
			}
			for _, method := range methods.Methods.List {
				if _, ok := method.Type.(*ast.FuncType); ok && method.Doc == nil && method.Comment == nil {
					bare = append(bare, method)
				}
			}
		}
	}
	return bare
}
