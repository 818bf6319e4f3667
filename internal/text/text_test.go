package text_test

import (
	"testing"

	"github.com/musterhq/muster/internal/text"
)

func TestCell_Formulas(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"": "", "a=1": "a=1", "=1": "'=1", "+1": "'+1", "-1": "'-1", "@a": "'@a", "\ta": "'\ta", "\ra": "'\ra",
		"\na": "'\na", "|a": "'|a", "%a": "'%a", "ä": "ä", "'a": "'a"} {
		t.Run(in, func(t *testing.T) {
			if got := text.Cell(in); got != want {
				t.Errorf("Cell(%q) is %q, want %q", in, got, want)
			}
		})
	}
}
