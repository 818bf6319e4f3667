package resource_test

import (
	"testing"

	"github.com/musterhq/muster/internal/resource"
)

func TestIsLabel_OneVisibleLine(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		rule, text string
		want       bool
	}{
		{"one letter", "a", true},
		{"letters of any script, signs and spaces", "Ünï & 日本", true},
		{"digits", "12345", true},
		{"as many characters as allowed", "ääääääää", true},
		{"one more", "123456789", false},
		{"empty", "", false},
		{"a space before", " a", false},
		{"a space after", "a ", false},
		{"a no-break space before", "\u00a0a", false},
		{"a tab", "a\tb", false},
		{"a line break", "a\nb", false},
		{"a control character", "a\x00", false},
		{"no UTF-8", "\xff", false},
		{"a character that turns the direction of the text", "a\u202eb", false},
		{"a letter that shows nothing", "\u3164", false},
		{"a sign that shows nothing", "\u2800", false},
	} {
		t.Run(row.rule, func(t *testing.T) {
			if got := resource.IsLabel(row.text, 8); got != row.want {
				t.Errorf("IsLabel(%q, 8) = %t, want %t", row.text, got, row.want)
			}
		})
	}
}
