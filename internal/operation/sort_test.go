package operation_test

import (
	"testing"

	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
)

func TestSorting(t *testing.T) {
	t.Parallel()
	s := operation.Sorting{Fields: []string{"name", "age"}, Default: "name,desc"}
	for text, want := range map[string]string{
		"": "name desc", "name,asc": "name asc", "age,desc": "age desc",
		"age": "", "age,": "", ",asc": "", "Age,asc": "", "age,ASC": "", "age,up": "", "age,asc,name": "", " age,asc": "", "name;drop,asc": "",
	} {
		field, descending, err := s.Parse(text)
		got := ""
		if err == nil {
			got = field + map[bool]string{true: " desc", false: " asc"}[descending]
		}
		if got != want || err != nil && (fault.CodeOf(err) != fault.InvalidArguments || fault.From(err).Fields[0].Field != "sort") {
			t.Errorf("Parse(%q) = %q, %v, want %q", text, got, err, want)
		}
		var r operation.Rules
		s.Rule(&r, text)
		if (len(r.Faults()) == 0) != (want != "") || len(r.Said()) != 1 {
			t.Errorf("Rule(%q): %v", text, r.Faults())
		}
	}
}
