package validate_test

import (
	"testing"

	"github.com/musterhq/muster/internal/validate"
)

func TestCell_Formulas(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"": "", "a=1": "a=1", "=1": "'=1", "+1": "'+1", "-1": "'-1", "@a": "'@a",
		"\ta": "'\ta", "\ra": "'\ra",
		"\na": "'\na", "|a": "'|a", "%a": "'%a", "ä": "ä", "'a": "'a",
		"\uff1d1": "'\uff1d1", "\uff0b1": "'\uff0b1", "\uff0d1": "'\uff0d1", "\uff20a": "'\uff20a", " =1": "' =1", "\u00a0=1": "'\u00a0=1",
		"\u3000\u200b\ufeff@a": "'\u3000\u200b\ufeff@a", "kiosk;=1": "kiosk;'=1", "a; -1;b": "a;' -1;b", "a\n\uff0b1": "a\n'\uff0b1",
		"a\t=1": "a\t'=1", "\t=1": "'\t'=1", ";=1": ";'=1", "a=1;b": "a=1;b", "front-desk": "front-desk", "50 %": "50 %"} {
		t.Run(in, func(t *testing.T) {
			if got := validate.Cell(in); got != want {
				t.Errorf("Cell(%q) is %q, want %q", in, got, want)
			}
		})
	}
}

// A text comes back from its cell, and other apostrophes stay.
func TestUncell(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "a=1", "=1", "+1", " -1", "'a", "\uff1d1", "kiosk;=1", "a; -1;b", "front-desk",
		"O'Neill;'a", "'", ";'"} {
		if got := validate.Uncell(validate.Cell(text)); got != text {
			t.Errorf("Uncell(Cell(%q)) is %q", text, got)
		}
	}
}
