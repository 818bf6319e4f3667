package engine

import (
	"crypto/rand"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/fault"
)

// noText takes the place of an argument that no column can hold, in a statement that
// reads: no row has it.
var noText = "no row has this text: " + rand.Text() //nolint:gochecknoglobals // never written to

// arguments returns a statement's arguments as both engines take them. PostgreSQL refuses
// a text that is not UTF-8 or has the character NUL, which SQLite would keep. A statement
// that reads finds nothing by such a text; one that writes is not run, and the error is
// fault.Invalid.
func arguments(query string, args []any) ([]any, error) {
	reads := strings.HasPrefix(strings.TrimLeft(query, "("), "SELECT")
	taken := args
	for i, arg := range args {
		if text, is := textOf(arg); !is || isText(text) {
			continue
		}
		if !reads {
			return nil, fault.Invalid("a text must be UTF-8 and must not have the character NUL")
		}
		if &taken[0] == &args[0] {
			taken = slices.Clone(args)
		}
		taken[i] = noText
	}
	return taken, nil
}

// Texter is an argument that is a text without being a string, such as a document in JSON.
type Texter interface {
	// Text returns what the column is to hold.
	Text() string
}

// textOf returns an argument that is a text, also behind a pointer or in a named type.
func textOf(arg any) (string, bool) {
	if d, is := arg.(Texter); is {
		return d.Text(), true
	}
	v := reflect.Indirect(reflect.ValueOf(arg))
	if v.Kind() != reflect.String {
		return "", false
	}
	return v.String(), true
}

// isText reports whether both engines keep a text as it is.
func isText(s string) bool { return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 }
