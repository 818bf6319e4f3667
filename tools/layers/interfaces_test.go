package main

import (
	"go/parser"
	"go/token"
	"slices"
	"testing"
)

func TestBareMethods_FindsUnexplainedMethodsAndErrors(t *testing.T) {
	t.Parallel()
	const text = `package p

// One is explained by its own comment.
type One interface{ Do() }

// Fails says that it fails.
type Fails interface{ Do() error }

// Silent returns when it is done.
type Silent interface{ Do() error }

// Store fails as the database does.
type Store interface {
	// Covered returns a number.
	Covered() (int, error)
}

type Each interface {
	// Found returns a number, or fault.NotFound.
	Found() (int, error)
	// Named is ErrGone without one.
	Named() error
	// Refused refuses an empty name.
	Refused() error
	// Counted returns a number.
	Counted() int
	// Unsaid returns a failsafe number in terror.
	Unsaid() (int, error)
	Trailing() error // an error if it is closed
}

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
	if want := []string{"Do", "Unsaid", "Go", "C"}; !slices.Equal(found, want) {
		t.Errorf("methods %q, want %q", found, want)
	}
}
