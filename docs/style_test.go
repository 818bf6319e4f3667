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
	"unicode/utf8"
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
		s.names = append(s.names, fixed{strings.Trim(row[0], "`"),
			strings.FieldsFunc(row[2], func(r rune) bool { return r == ',' || r == ' ' })})
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
// text begins in line first of the file; named are identifiers that it documents.
func (s style) check(file string, first int, text string, named map[string]bool) []string {
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
		if !named[text[at[0]:at[1]]] && !quoted(text, at) {
			add(at)
		}
	}
	return found
}

// quoted reports whether text[at[0]:at[1]] is written as an identifier: in
// backquotes, or in brackets as a link to its declaration.
func quoted(text string, at []int) bool {
	if at[0] == 0 || at[1] == len(text) {
		return false
	}
	around := string(text[at[0]-1]) + string(text[at[1]])
	return around == "``" || around == "[]"
}

// documented returns the names that each comment of a Go file documents: those
// of the declaration or field to which it belongs.
func documented(file *ast.File) map[*ast.CommentGroup]map[string]bool {
	names := map[*ast.CommentGroup]map[string]bool{}
	add := func(doc *ast.CommentGroup, idents ...*ast.Ident) {
		if doc == nil {
			return
		}
		if names[doc] == nil {
			names[doc] = map[string]bool{}
		}
		for _, ident := range idents {
			names[doc][ident.Name] = true
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.File:
			add(n.Doc, n.Name)
		case *ast.FuncDecl:
			add(n.Doc, n.Name)
		case *ast.GenDecl:
			for _, spec := range n.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					add(n.Doc, spec.Name)
					add(spec.Doc, spec.Name)
					add(spec.Comment, spec.Name)
				case *ast.ValueSpec:
					add(n.Doc, spec.Names...)
					add(spec.Doc, spec.Names...)
					add(spec.Comment, spec.Names...)
				}
			}
		case *ast.Field:
			add(n.Doc, n.Names...)
			add(n.Comment, n.Names...)
		}
		return true
	})
	return names
}

// checkGo checks the comments and strings of a Go file. In a comment, a word
// may be the name of what the comment documents.
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
	paths := map[*ast.BasicLit]bool{}
	for _, spec := range parsed.Imports {
		paths[spec.Path] = true
	}
	names := documented(parsed)
	var found []string
	for _, group := range parsed.Comments {
		first := fset.Position(group.Pos()).Line
		text := f.text[fset.Position(group.Pos()).Offset:fset.Position(group.End()).Offset]
		found = append(found, s.check(f.path, first, text, names[group])...)
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			for _, arg := range call.Args {
				if literal, ok := arg.(*ast.BasicLit); ok && literal.Value == `"err"` {
					found = append(found, fmt.Sprintf("%s:%d: avoid \"err\": write \"error\", the name of an error's attribute in logs",
						f.path, fset.Position(arg.Pos()).Line))
				}
			}
		}
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

// built reports whether a file is written by a program, or holds statements as an old version wrote them: the migrations, and
// the schema that SQLite keeps of them.
func built(file string) bool {
	base := path.Base(file)
	return base == "app.css" || base == "htmx.js" || base == "axe.min.js" || file == "internal/database/schema.sql" ||
		strings.HasPrefix(file, "internal/database/migrations/") || strings.HasPrefix(file, "internal/database/firsttest/")
}

func TestStyle_WordsToAvoid(t *testing.T) {
	t.Parallel()
	s := readStyle(t)
	for _, f := range sources(t, ".go", ".templ", ".md", ".sh", ".java", ".mk", ".yaml", ".yml", ".js", ".mjs", ".css", ".ts", ".py",
		".sql", "Makefile") {
		var found []string
		switch {
		case f.path == "docs/style.md" || f.path == "docs/style_test.go" || built(f.path):
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

// The check finds what it should in comments and strings, and nothing in names:
// not in that of the declaration below, nor in one that is quoted.
func TestStyle_FindsWords(t *testing.T) {
	t.Parallel()
	s := readStyle(t)
	const text = "package p\n\n// Keys: whoever calls\n// of its\n// own accord authorises.\nconst nobody = \"Somebody\\nelse\" // " +
		"/enrol\n\n// authorise calls `enrol` and [enrolment].\nfunc authorise(metres int) {} // metres to authorise\n" +
		"var _ = slog.Any(\"err\", nil)\n"
	want := []string{
		`p.go:3: avoid "whoever": write the caller, the component's name`,
		`p.go:4: avoid "of its\n// own accord": write by itself, without a request`,
		`p.go:5: avoid "authorises": write authorizes`,
		`p.go:9: avoid "metres": write meter`,
		`p.go:9: avoid "authorise": write authorize`,
		`p.go:6: avoid "Somebody": write the person's role, the component's name`,
		`p.go:10: avoid "err": write "error", the name of an error's attribute in logs`,
	}
	if got := s.checkGo(t, source{"p.go", text}); !slices.Equal(got, want) {
		t.Errorf("findings:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// The linter holds Go to this limit; a tab counts as it does there.
func TestStyle_LinesOfOtherSources(t *testing.T) {
	t.Parallel()
	const most, tab = 140, 4
	found := sources(t, ".templ", ".java", ".sh", ".py", "Makefile")
	if len(found) < 250 {
		t.Errorf("found %d sources, want at least 250: the search no longer fits the tree", len(found))
	}
	for _, f := range found {
		number := 0
		for line := range strings.Lines(f.text) {
			number++
			columns := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) + (tab-1)*strings.Count(line, "\t")
			if columns > most {
				t.Errorf("%s:%d: the line has %d columns, more than %d: break it; in a template put each attribute of an element on "+
					"a line of its own, its text on the next lines, and long classes into class={ ... }", f.path, number, columns, most)
			}
		}
	}
}
