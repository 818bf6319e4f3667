// Package docs checks that the documentation and the sources agree: numbers,
// files and packages that one names exist in the other.
package docs

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// root is the repository, seen from this package.
const root = ".."

// source is a text file of the repository.
type source struct {
	path string // slash-separated, from the root
	text string
}

// sources reads the files with one of the endings: an extension, or a whole
// name. It leaves out what is not written here: other people's packages, build
// output and generated pages.
func sources(t *testing.T, endings ...string) []source {
	t.Helper()
	var found []source
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := path.Base(name)
		if d.IsDir() {
			if name != "." && (base == "node_modules" || base == "bin" || base == "dist" || base == "build" ||
				base == ".git" || base == ".cache") {
				return fs.SkipDir
			}
			return nil
		}
		if !slices.Contains(endings, path.Ext(name)) && !slices.Contains(endings, base) || strings.HasSuffix(name, "_templ.go") {
			return nil
		}
		found = append(found, source{name, read(t, name)})
		return nil
	})
	if err != nil {
		t.Fatalf("cannot read the sources: %v", err)
	}
	return found
}

// read returns a file's text; name is from the root.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(path.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// line returns the number of the line in which an offset lies.
func line(text string, offset int) int { return 1 + strings.Count(text[:offset], "\n") }

var (
	sectionHeading = regexp.MustCompile(`(?m)^##+ (\d+(?:\.\d+)?)\b`)
	// A citation may go on in the next line of a comment and name several sections.
	contractCited = regexp.MustCompile(
		`(?i)\bcontract(?:\.md)?,?\s+(?://\s*)?(?:section\s+)?(\d+(?:\.\d+)?(?:(?:,| and| to)\s+(?://\s*)?\d+\.\d+\b)*)`)
	sectionNumber = regexp.MustCompile(`\d+(?:\.\d+)?`)
	fileCited     = regexp.MustCompile(`\bdocs/[a-z0-9/_-]+\.[a-z]+\b`)
	recordCited   = regexp.MustCompile(`\bADR (\d+)\b`)
)

func TestContract_CitedSectionsExist(t *testing.T) {
	t.Parallel()
	sections := map[string]bool{}
	for _, found := range sectionHeading.FindAllStringSubmatch(read(t, "docs/contract.md"), -1) {
		sections[found[1]] = true
	}
	cited := 0
	for _, s := range sources(t, ".go", ".templ", ".md", ".sql", ".java", ".sh") {
		for _, at := range contractCited.FindAllStringSubmatchIndex(s.text, -1) {
			for _, number := range sectionNumber.FindAllString(s.text[at[2]:at[3]], -1) {
				cited++
				if !sections[number] {
					t.Errorf("%s:%d: contract %s: docs/contract.md has no such section", s.path, line(s.text, at[0]), number)
				}
			}
		}
	}
	if cited < 100 {
		t.Errorf("found %d citations of the contract, want at least 100: the search no longer fits the comments", cited)
	}
}

func TestCitations_DocumentsExist(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t, ".go", ".templ", ".md", ".sql", ".java", ".sh", ".yml") {
		for _, at := range fileCited.FindAllStringIndex(s.text, -1) {
			name := s.text[at[0]:at[1]]
			if _, err := os.Stat(path.Join(root, name)); err != nil && !strings.Contains(s.path, "testdata/") {
				t.Errorf("%s:%d: %s does not exist", s.path, line(s.text, at[0]), name)
			}
		}
		for _, at := range recordCited.FindAllStringSubmatchIndex(s.text, -1) {
			number := "0000"[:max(0, 4-(at[3]-at[2]))] + s.text[at[2]:at[3]]
			if found, _ := fs.Glob(os.DirFS(root), "docs/adr/"+number+"-*.md"); len(found) != 1 {
				t.Errorf("%s:%d: ADR %s does not exist", s.path, line(s.text, at[0]), number)
			}
		}
	}
}
