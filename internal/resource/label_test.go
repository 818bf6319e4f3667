package resource_test

import (
	"testing"

	"github.com/musterhq/muster/internal/resource"
)

func TestIsLabel(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"a": true, "Ünï & 日本": true, "12345": true, "": false, "123456789": false, "ääääääää": true,
		" a": false, "a ": false, "a\tb": false, "a\x00": false, "\xff": false, "a\u202eb": false, "\u00a0a": false, "a\nb": false,
		"\u3164": false, "\u2800": false,
	} {
		t.Run(text, func(t *testing.T) {
			if got := resource.IsLabel(text, 8); got != want {
				t.Errorf("IsLabel(%q) = %v", text, got)
			}
		})
	}
}
