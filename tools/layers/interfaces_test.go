package main

import (
	"go/parser"
	"go/token"
	"slices"
	"testing"
)

func TestBareMethods_FindsWhatNoCommentExplains(t *testing.T) {
	t.Parallel()
	const text = `package p

// One is explained by its own comment.
type One interface{ Do() }

type Bare interface{ Go() }

type (
	Many interface {
		error
		// A has a comment.
		A()
		B() // has one, too
		C()
	}
)
`
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, method := range bareMethods(file) {
		found = append(found, method.Names[0].Name)
	}
	if want := []string{"Go", "C"}; !slices.Equal(found, want) {
		t.Errorf("methods %q, want %q", found, want)
	}
}
