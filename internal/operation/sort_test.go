package operation_test

import (
	"testing"

	"github.com/musterhq/muster/internal/operation"
)

func TestSortOrder(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"name,asc": false, "name,desc": true} {
		t.Run(text, func(t *testing.T) {
			if field, descending := operation.SortOrder(text); field != "name" || descending != want {
				t.Errorf("SortOrder(%q) = %q, %v, want name, %v", text, field, descending, want)
			}
		})
	}
}
