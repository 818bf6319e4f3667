package operation

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/phrase"
	"github.com/musterhq/muster/internal/validate"
)

// rule is a compiled rule tag. Limits of 0 do not bind.
type rule struct {
	required, notblank, visible, trimmed, email, pkg, secret bool
	time, day                                                bool // a text that is one

	controls controls

	minChars, maxChars int // Unicode code points
	maxBytes           int // bytes of UTF-8
	minItems, maxItems int
	min, max           *int64
	fallback           string // default, as text
	hasFallback        bool
	enum               []string
}

// parseRule reads a rule tag and panics on a word that it does not know.
func parseRule(owner, tag string) rule {
	var r rule
	flags := map[string]*bool{"required": &r.required, "notblank": &r.notblank, "email": &r.email, "trimmed": &r.trimmed,
		"visible": &r.visible, "secret": &r.secret, "time": &r.time, "day": &r.day}
	lengths := map[string]*int{"minchars": &r.minChars, "maxchars": &r.maxChars, "maxbytes": &r.maxBytes, "minitems": &r.minItems,
		"maxitems": &r.maxItems}
	bounds := map[string]**int64{"min": &r.min, "max": &r.max}
	for word := range strings.FieldsSeq(tag) {
		key, value, _ := strings.Cut(word, "=")
		switch {
		case flags[key] != nil:
			*flags[key] = true
		case lengths[key] != nil:
			*lengths[key] = int(number(owner, word, value))
		case bounds[key] != nil:
			*bounds[key] = new(number(owner, word, value))
		case key == "package":
			r.pkg, r.maxChars = true, validate.MaxPackage
		case key == "line":
			r.controls = noControls
		case key == "lines":
			r.controls = lineBreaks
		case key == "default":
			r.fallback, r.hasFallback = value, true
		case key == "enum":
			r.enum = strings.Split(value, "|")
		default:
			panic("operation " + owner + ": unknown rule " + word)
		}
	}
	return r
}

func number(owner, word, value string) int64 {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		panic("operation " + owner + ": rule " + word + " needs a number")
	}
	return n
}

// mustFit panics on a rule that says nothing about a value of the shape.
func (r rule) mustFit(owner string, s shape) {
	value := s
	if s.kind == reflect.Slice {
		value = *s.elem
	}
	text := r.time || r.day || r.notblank || r.visible || r.trimmed || r.controls != anyControls || r.email || r.pkg || r.secret ||
		r.enum != nil || r.minChars+r.maxChars+r.maxBytes > 0
	switch {
	case text && value.kind != reflect.String:
		panic("operation " + owner + ": a rule for text on something else")
	case (r.min != nil || r.max != nil) && value.kind != reflect.Int64:
		panic("operation " + owner + ": min and max are for integers")
	case r.minItems+r.maxItems > 0 && s.kind != reflect.Slice:
		panic("operation " + owner + ": minitems and maxitems are for lists")
	case r.required && r.hasFallback:
		panic("operation " + owner + ": required, yet it has a default")
	case r.hasFallback && (s.pointer || s.kind == reflect.Slice || s.kind == reflect.Struct || s.kind == reflect.Map):
		panic("operation " + owner + ": only a plain value has a default")
	}
	if r.hasFallback {
		if fault := s.parse(reflect.New(s.typ).Elem(), r.fallback, &r); fault != "" {
			panic("operation " + owner + ": its default " + fault)
		}
	}
}

// visibleWords say which texts people see as they are.
const visibleWords = "a character that can be seen, and none that changes the direction of text"

// text says what is wrong with a string. The message never quotes the value: it
// may be a secret.
func (r *rule) text(s string) string {
	switch {
	case r.notblank && validate.Blank(s):
		return "must not be blank"
	case r.minChars == 1 && s == "":
		return "must not be empty"
	case r.minChars > 1 && utf8.RuneCountInString(s) < r.minChars:
		return fmt.Sprintf("must be at least %d characters", r.minChars)
	case r.maxChars > 0 && len(s) > r.maxChars && utf8.RuneCountInString(s) > r.maxChars:
		return fmt.Sprintf("must be at most %d characters", r.maxChars)
	case r.maxBytes > 0 && len(s) > r.maxBytes:
		return fmt.Sprintf("must be at most %d bytes of UTF-8", r.maxBytes)
	case r.controls.in(s):
		return "must not contain " + r.controls.words()
	case r.visible && !validate.Visible(s):
		return "must have " + visibleWords
	case r.trimmed && strings.TrimSpace(s) != s:
		return "must not begin or end with a space"
	case r.email && !validate.Email(s):
		return "must be a valid e-mail address"
	case r.pkg && !validate.Package(s):
		return "must be a package name such as com.example.app"
	case r.time && !isTime(s):
		return "must be a time such as 2026-10-01T00:00:00Z"
	case r.day && !isDay(s):
		return "must be a day such as 2026-10-01"
	case r.enum != nil && !slices.Contains(r.enum, s):
		return "must be one of " + strings.Join(r.enum, ", ")
	}
	return ""
}

func isTime(s string) bool {
	_, ok := validate.Time(s)
	return ok
}

func isDay(s string) bool {
	_, err := time.Parse(time.DateOnly, s)
	return err == nil
}

// integer says what is wrong with n.
func (r *rule) integer(n int64) string {
	switch {
	case r.min != nil && r.max != nil && (n < *r.min || n > *r.max):
		return fmt.Sprintf("must be from %d to %d", *r.min, *r.max)
	case r.min != nil && n < *r.min:
		return fmt.Sprintf("must be at least %d", *r.min)
	case r.max != nil && n > *r.max:
		return fmt.Sprintf("must be at most %d", *r.max)
	}
	return ""
}

// items says what is wrong with the length of a list.
func (r *rule) items(n int) string {
	switch {
	case r.minItems > 0 && n < r.minItems:
		return "must have at least " + phrase.Count(r.minItems, "entry", "entries")
	case r.maxItems > 0 && n > r.maxItems:
		return "must have at most " + phrase.Count(r.maxItems, "entry", "entries")
	}
	return ""
}

// parse sets v, a value of the shape without its pointer, from text, and says
// what is wrong with it.
func (s *shape) parse(v reflect.Value, text string, r *rule) string {
	switch s.kind {
	case reflect.Bool:
		if text != "true" && text != "false" {
			return "must be true or false"
		}
		v.SetBool(text == "true")
	case reflect.Int64:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || v.OverflowInt(n) || strconv.FormatInt(n, 10) != text {
			return "must be an integer"
		}
		v.SetInt(n)
		return r.integer(n)
	default:
		v.SetString(text)
		return r.text(text)
	}
	return ""
}

// controls says which control characters (Unicode's class Cc) a text may hold.
type controls int

const (
	anyControls controls = iota
	noControls           // rule "line"
	lineBreaks           // rule "lines": line feed and carriage return alone
)

// in reports whether the text has a control character that it must not have.
func (c controls) in(text string) bool {
	return c != anyControls && strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsControl(r) && (c != lineBreaks || r != '\n' && r != '\r')
	})
}

func (c controls) words() string {
	if c == lineBreaks {
		return "control characters other than line breaks"
	}
	return "control characters"
}

// class is the refused characters as the inside of a regular expression's class.
func (c controls) class() string {
	switch c {
	case noControls:
		return `\x00-\x1f\x7f-\x9f`
	case lineBreaks:
		return `\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f`
	default:
		return ""
	}
}

// pattern says in one regular expression (ECMA 262, as JSON Schema has it) which
// characters a text may hold, and where; empty: any.
func (r *rule) pattern() string {
	refused := r.controls.class()
	ink, any := `[^\s`+refused+`]`, `[^`+refused+`]`
	if refused == "" {
		ink, any = `\S`, `[\s\S]`
	}
	switch {
	case r.pkg:
		return validate.PackagePattern
	case r.trimmed:
		return `^(` + ink + `(` + any + `*` + ink + `)?)?$`
	case r.notblank && refused == "":
		return ink
	case r.notblank:
		return `^` + any + `*` + ink + any + `*$`
	case refused != "":
		return `^` + any + `*$`
	}
	return ""
}
