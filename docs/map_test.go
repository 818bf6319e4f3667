package docs

import (
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	fileNamed    = regexp.MustCompile("`([a-z]+/[a-zA-Z0-9/_.-]+\\.[a-z]+)`")
	link         = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	packageNamed = regexp.MustCompile("(?m)^\\| `([a-z][a-z0-9/-]*)` \\|")
)

func TestArchitecture_NamedFilesExist(t *testing.T) {
	t.Parallel()
	for _, page := range []string{"docs/architecture.md", "CONTRIBUTING.md"} {
		named := fileNamed.FindAllStringSubmatch(read(t, page), -1)
		if len(named) < 10 {
			t.Errorf("%s names %d files, want at least 10", page, len(named))
		}
		for _, found := range named {
			name := found[1]
			if _, err := os.Stat(path.Join(root, name)); err != nil && !strings.Contains(name, "NNNN") {
				t.Errorf("%s: %s does not exist", page, name)
			}
		}
	}
}

func TestContributing_MapsAllPackages(t *testing.T) {
	t.Parallel()
	_, table, _ := strings.Cut(read(t, "CONTRIBUTING.md"), "\n## Packages\n")
	table, _, _ = strings.Cut(table, "\n## ")
	var mapped []string
	for _, found := range packageNamed.FindAllStringSubmatch(table, -1) {
		mapped = append(mapped, found[1])
	}
	var all []string
	for _, f := range sources(t, ".go") {
		dir := path.Dir(f.path)
		if slices.Contains(all, dir) || strings.HasPrefix(dir, "tools") || strings.Contains(dir, "testdata") {
			continue
		}
		all = append(all, dir)
		if !slices.Contains(mapped, dir) {
			t.Errorf("CONTRIBUTING.md does not list the package %s", dir)
		}
	}
	for _, dir := range mapped {
		if !slices.Contains(all, dir) {
			t.Errorf("CONTRIBUTING.md lists %s, which is not a package", dir)
		}
	}
}

func TestScreenshots_Size(t *testing.T) {
	t.Parallel()
	pictures, err := os.ReadDir("screenshots")
	if err != nil {
		t.Fatal(err)
	}
	var size int64
	for _, p := range pictures {
		info, err := p.Info()
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	const limit = 2 << 20
	if size > limit {
		t.Errorf("docs/screenshots has %d bytes, want at most %d: take fewer pictures, or with fewer colors", size, limit)
	}
}

func TestLinks_FilesExist(t *testing.T) {
	t.Parallel()
	for _, f := range sources(t, ".md") {
		for _, found := range link.FindAllStringSubmatch(f.text, -1) {
			if target, _, _ := strings.Cut(found[1], "#"); target != "" && !strings.Contains(target, ":") {
				if _, err := os.Stat(path.Join(root, path.Dir(f.path), target)); err != nil {
					t.Errorf("%s: link to %s, which does not exist", f.path, found[1])
				}
			}
		}
	}
}

// TestLinks_HeadingsExist checks that what a link names after # is a heading of the page,
// as GitHub writes its anchor.
func TestLinks_HeadingsExist(t *testing.T) {
	t.Parallel()
	heading, punctuation := regexp.MustCompile(`(?m)^#+ (.+)$`), regexp.MustCompile(`[^\p{L}\p{N}\- _]`)
	pages := sources(t, ".md")
	anchors := map[string]bool{}
	for _, f := range pages {
		for _, found := range heading.FindAllStringSubmatch(f.text, -1) {
			anchors[f.path+"#"+strings.ReplaceAll(punctuation.ReplaceAllString(strings.ToLower(found[1]), ""), " ", "-")] = true
		}
	}
	for _, f := range pages {
		for _, found := range link.FindAllStringSubmatch(f.text, -1) {
			target, anchor, ok := strings.Cut(found[1], "#")
			if !ok || strings.Contains(target, ":") || target != "" && !strings.HasSuffix(target, ".md") {
				continue
			}
			page := f.path
			if target != "" {
				page = path.Join(path.Dir(f.path), target)
			}
			if !anchors[page+"#"+anchor] {
				t.Errorf("%s: link to %s: %s has no such heading", f.path, found[1], page)
			}
		}
	}
}
