package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	firstCell  = regexp.MustCompile(`(?m)^\| (.+?) \|`)
	codeQuoted = regexp.MustCompile("`([^`]+)`")
	// formatVerb is what a message has where the page has …
	formatVerb = regexp.MustCompile(`%[-+#0-9.*]*[a-zA-Z]`)
)

// TestTroubleshooting_MessagesExist checks that each message of the page is one of the
// program: the parts between … are in one text of the sources, in this order.
func TestTroubleshooting_MessagesExist(t *testing.T) {
	t.Parallel()
	texts := literals(t)
	found := 0
	for _, row := range firstCell.FindAllStringSubmatch(read(t, "docs/how-to/troubleshooting.md"), -1) {
		for _, quoted := range codeQuoted.FindAllStringSubmatch(row[1], -1) {
			message := quoted[1]
			if !strings.Contains(message, " ") {
				continue // a state or the name of a command
			}
			if strings.HasPrefix(message, "muster ") {
				continue
			}
			found++
			if !containsParts(texts, strings.Split(message, "…")) {
				t.Errorf("no text of the program has %q: correct docs/how-to/troubleshooting.md", message)
			}
		}
	}
	if found < 40 {
		t.Errorf("found %d messages, want at least 40: the search no longer fits the page", found)
	}
}

// literals are the texts of the program's sources, without the tests.
func literals(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, s := range append(sources(t, ".go"), sources(t, ".templ")...) {
		if strings.HasSuffix(s.path, "_test.go") || !strings.HasPrefix(s.path, "internal/") && !strings.HasPrefix(s.path, "cmd/") {
			continue
		}
		if strings.HasSuffix(s.path, ".templ") {
			all = append(all, s.text)
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), s.path, s.text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			if ok && e != nil {
				all = append(all, textOf(e))
			}
			return true
		})
	}
	return all
}

// textOf is the text of a literal or of a sum of texts, which has a verb for each other value.
func textOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return text
		}
	case *ast.BinaryExpr:
		return textOf(e.X) + textOf(e.Y)
	}
	return "%v"
}

// containsParts reports whether a text has the parts in this order, with a value of its own between two.
func containsParts(texts, parts []string) bool {
	for _, text := range texts {
		rest, ok := text, true
		for i, part := range parts {
			at := strings.Index(rest, strings.TrimSpace(part))
			if at < 0 || i > 0 && !formatVerb.MatchString(rest[:at]) && at > 0 {
				ok = false
				break
			}
			rest = rest[at+len(strings.TrimSpace(part)):]
		}
		if ok {
			return true
		}
	}
	return false
}
