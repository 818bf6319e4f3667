package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// style is the lists of docs/style.md.
type style struct {
	words    *regexp.Regexp // to avoid everywhere
	spelling *regexp.Regexp // British; a name in the code may keep it
	names    []fixed        // that stay
	advice   map[string]string
}

// fixed is a name that stays.
type fixed struct {
	name  string
	files []string // to which it is limited; none: everywhere
}

// readStyle reads the lists.
func readStyle(t *testing.T) style {
	t.Helper()
	page := read(t, "docs/style.md")
	s := style{advice: map[string]string{}}
	s.words = s.pattern(t, rows(t, page, "Words to avoid"))
	s.spelling = s.pattern(t, rows(t, page, "Spelling"))
	for _, row := range rows(t, page, "Names that stay") {
		s.names = append(s.names, fixed{strings.Trim(row[0], "`"), strings.FieldsFunc(row[2], func(r rune) bool { return r == ',' || r == ' ' })})
	}
	// A longer name goes first, so that a shorter one does not leave half of it.
	slices.SortFunc(s.names, func(a, b fixed) int { return len(b.name) - len(a.name) })
	return s
}

// code is a block or span of code in Markdown, which holds names.
var code = regexp.MustCompile("(?ms)^```.*?^```|`[^`\n]*`")

// rows returns the cells of the table in a section of a page, without its head.
func rows(t *testing.T, page, section string) [][]string {
	t.Helper()
	_, text, found := strings.Cut(page, "\n## "+section+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	var all [][]string
	for row := range strings.Lines(text) {
		if !strings.HasPrefix(row, "|") {
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(row), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		all = append(all, cells)
	}
	if !found || len(all) < 3 {
		t.Fatalf("docs/style.md has no table in section %q", section)
	}
	return all[2:]
}

func (s style) pattern(t *testing.T, table [][]string) *regexp.Regexp {
	t.Helper()
	var forms []string
	for _, row := range table {
		avoided, instead := strings.Split(row[0], ", "), strings.Split(row[1], ", ")
		for i, form := range avoided {
			s.advice[form] = row[1]
			if len(instead) == len(avoided) {
				s.advice[form] = instead[i]
			}
			// The words of a phrase may stand in two lines of a comment.
			forms = append(forms, strings.ReplaceAll(regexp.QuoteMeta(form), " ", `(?:\s|//|#)+`))
		}
	}
	return regexp.MustCompile(`(?i)\b(?:` + strings.Join(forms, "|") + `)\b`)
}

// check returns a finding for each word of a text that is to be avoided. The
// text begins in line first of the file; known are identifiers of the file.
func (s style) check(file string, first int, text string, known map[string]bool) []string {
	for _, n := range s.names {
		if len(n.files) == 0 || slices.Contains(n.files, file) {
			text = strings.ReplaceAll(text, n.name, strings.Repeat("_", len(n.name)))
		}
	}
	var found []string
	add := func(at []int) {
		word := text[at[0]:at[1]]
		advice := s.advice[strings.ToLower(strings.Join(strings.Fields(strings.NewReplacer("//", " ", "#", " ").Replace(word)), " "))]
		found = append(found, fmt.Sprintf("%s:%d: avoid %q: write %s", file, first+strings.Count(text[:at[0]], "\n"), word, advice))
	}
	for _, at := range s.words.FindAllStringIndex(text, -1) {
		add(at)
	}
	if path.Ext(file) == ".md" {
		text = code.ReplaceAllStringFunc(text, func(span string) string {
			return strings.Repeat("_", len(span)) + strings.Repeat("\n", strings.Count(span, "\n"))
		})
	}
	for _, at := range s.spelling.FindAllStringIndex(text, -1) {
		if !known[text[at[0]:at[1]]] {
			add(at)
		}
	}
	return found
}

// commentNames are the words of a comment that can be names: the first word, one that a
// call or a dot follows, and one in quotation marks or brackets.
var commentNames = regexp.MustCompile("^//\\s*(\\w+)|(\\w+)[.(][\\w)]|[`\"'\\[*](\\w+)[`\"'\\]*]")

// leading returns the identifiers of a file that a comment uses as names.
func leading(text string, known map[string]bool) map[string]bool {
	names := map[string]bool{}
	for _, found := range commentNames.FindAllStringSubmatch(text, -1) {
		for _, name := range found[1:] {
			names[name] = known[name]
		}
	}
	return names
}

// checkGo checks the comments and strings of a Go file. A word that is spelled
// like an identifier of the file is taken for its name where it stands like one.
func (s style) checkGo(t *testing.T, f source) []string {
	t.Helper()
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, f.path, f.text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	if ast.IsGenerated(parsed) {
		return nil
	}
	known, paths := map[string]bool{}, map[*ast.BasicLit]bool{}
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			known[n.Name] = true
		case *ast.ImportSpec:
			paths[n.Path] = true
			known[path.Base(strings.Trim(n.Path.Value, `"`))] = true
		}
		return true
	})
	var found []string
	for _, group := range parsed.Comments {
		first := fset.Position(group.Pos()).Line
		text := f.text[fset.Position(group.Pos()).Offset:fset.Position(group.End()).Offset]
		found = append(found, s.check(f.path, first, text, leading(text, known))...)
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING && !paths[literal] {
			text := literal.Value
			if text[0] == '"' {
				text, _ = strconv.Unquote(text)
				text = strings.ReplaceAll(text, "\n", " ")
			}
			found = append(found, s.check(f.path, fset.Position(literal.Pos()).Line, text, nil)...)
		}
		return true
	})
	return found
}

func TestStyle_WordsToAvoid(t *testing.T) {
	t.Parallel()
	s := readStyle(t)
	for _, f := range sources(t, ".go", ".templ", ".md", ".sh", ".java", ".yml", ".yaml", "Makefile") {
		var found []string
		switch {
		case f.path == "docs/style.md" || f.path == "docs/style_test.go":
		case path.Ext(f.path) == ".go":
			found = s.checkGo(t, f)
		default:
			found = s.check(f.path, 1, f.text, nil)
		}
		for _, finding := range found {
			t.Error(finding)
		}
	}
}

// The check finds what it should in comments and strings, and nothing in names.
func TestStyle_FindsWords(t *testing.T) {
	t.Parallel()
	s := readStyle(t)
	const text = "package p\n\n// Keys: whoever calls\n// of its\n// own accord authorises, not authorise().\nconst nobody = \"Somebody\\nelse\" // /enrol\n\nfunc authorise() {} // authorise returns\n"
	want := []string{
		`p.go:3: avoid "whoever": write the caller, the component's name`,
		`p.go:4: avoid "of its\n// own accord": write by itself, without a request`,
		`p.go:5: avoid "authorises": write authorizes`,
		`p.go:6: avoid "Somebody": write the person's role, the component's name`,
	}
	if got := s.checkGo(t, source{"p.go", text}); !slices.Equal(got, want) {
		t.Errorf("findings:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
