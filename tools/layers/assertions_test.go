package main

import (
	"go/parser"
	"go/token"
	"slices"
	"testing"
)

func TestJoinedAssertions_FindsFiveConditions(t *testing.T) {
	t.Parallel()
	const text = `package p

func TestX(t *testing.T) {
	if a || b || c || d {
		t.Error("four")
	}
	if a || b && c || !(d || e) {
		t.Error("five")
	}
	if a || b || c || d || e {
		return
	}
	if got := f(); a && b && c && d && e && got {
		t.Log(got)
		s.t.Fatalf("six: %v", got)
	}
	if a || b || c || d || e {
		http.Error(w, "not a failed test", 400)
	}
	if a || b || c || d || e {
		for range 2 {
			t.Error("in a loop")
		}
		if f {
			return
		}
	}
	if a || b || c || d || e {
		if f {
			t.Error("under a condition of its own")
		}
	}
	switch {
	case a && (b || c || d || e):
		t.FailNow()
	}
}
`
	positions := token.NewFileSet()
	file, err := parser.ParseFile(positions, "p_test.go", text, 0)
	if err != nil {
		t.Fatal(err)
	}
	var lines []int
	for _, assertion := range joinedAssertions(file) {
		lines = append(lines, positions.Position(assertion.Pos()).Line)
	}
	if want := []int{7, 13, 20, 34}; !slices.Equal(lines, want) {
		t.Errorf("assertions in lines %v, want %v", lines, want)
	}
}
