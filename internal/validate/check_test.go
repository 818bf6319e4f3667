package validate_test

import (
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/validate"
)

func TestEmail(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"ops@acme.example":                      true,
		"first.last+tag@sub.acme.example":       true,
		"zoë@exämple.org":                       true,
		"x@localhost":                           true,
		strings.Repeat("a", 64) + "@b.example":  true,
		strings.Repeat("a", 65) + "@b.example":  false,
		"a@" + strings.Repeat("b", 64) + ".org": false,
		"a@" + strings.Repeat("b.", 130) + "cc": false,
		"":                                      false,
		"ops":                                   false,
		"ops@":                                  false,
		"@acme.example":                         false,
		"a@-b.c":                                false,
		"a@b-.c":                                false,
		"a@b..c":                                false,
		"a@[127.0.0.1]":                         false,
		"Ops <ops@acme.example>":                false,
		"<ops@acme.example>":                    false,
		" ops@acme.example":                     false,
		"ops@acme.example ":                     false,
		"a b@acme.example":                      false,
		"a@b.example, c@d.example":              false,
		"\"a b\"@acme.example":                  false,
		"a@acme.example\n":                      false,
		"a\u0085b@acme.example":                 false,
		"a\u202eb@acme.example":                 false, // turns what follows
		"a\u200bb@acme.example":                 false, // is not seen
	} {
		t.Run(address, func(t *testing.T) {
			if got := validate.Email(address); got != want {
				t.Errorf("Email(%q) = %v, want %v", address, got, want)
			}
		})
	}
}

func TestPackage(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"com.example.app":                     true,
		"com.Example.my_app2":                 true,
		"a.b":                                 true,
		"a." + strings.Repeat("b", 253):       true,
		"a." + strings.Repeat("b", 254):       false,
		"":                                    false,
		"android":                             false,
		"com..app":                            false,
		".com.app":                            false,
		"com.app.":                            false,
		"com.2app":                            false,
		"com.exa-mple":                        false,
		"com.example.app\n":                   false,
		"com.example app":                     false,
		"com.\u0435xample":                    false, // a Cyrillic letter
		"com.example/../../etc":               false,
		"com.example.app; rm -rf /":           false,
		"enterprises/acme/policies/whatever":  false,
		"_com.example":                        false,
		"com._example":                        false,
		"com.example.app\x00":                 false,
		"com.example.\xff":                    false,
		"com.example.app.with.many.more.dots": true,
	} {
		t.Run(name, func(t *testing.T) {
			if got := validate.Package(name); got != want {
				t.Errorf("Package(%q) = %v, want %v", name, got, want)
			}
		})
	}
}

func TestBlank(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"": true, " ": true, "\t\r\n\u00a0\u2003": true, "a": false, " a ": false, " \u200b\u2060": true,
		"\u00ad": true, "\u2800\u3164": true, "\u200ba": false, "\U0001fae9": false, "\u202ea": false,
	} {
		t.Run(text, func(t *testing.T) {
			if got := validate.Blank(text); got != want {
				t.Errorf("Blank(%q) = %v, want %v", text, got, want)
			}
		})
	}
}

func TestVisible(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"": false, " ": false, "\u200b": false, "\u2800": false, "\u0301": false, "a": true, "Front desk": true, "\u65e5\u672c": true,
		"\U0001f469\u200d\U0001f4bb": true, "a\u200b": true, "a\u202eb": false, "\u2066a": false,
	} {
		if got := validate.Visible(text); got != want {
			t.Errorf("Visible(%q) = %v, want %v", text, got, want)
		}
	}
}
