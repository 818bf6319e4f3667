package docs

import (
	"regexp"
	"strings"
	"testing"

	"github.com/musterhq/muster/test/blocks"
)

// TestBlocks_RunOrSayWhyNot checks that each shell block of the README and of the
// documentation either runs in a test or says why it does not.
func TestBlocks_RunOrSayWhyNot(t *testing.T) {
	t.Parallel()
	var tests strings.Builder
	for _, s := range sources(t, ".go", ".txtar", ".sh") {
		if strings.HasSuffix(s.path, "_test.go") || strings.HasSuffix(s.path, ".txtar") || strings.HasPrefix(s.path, "scripts/prove") {
			tests.WriteString(s.text)
		}
	}
	run, not := 0, 0
	for _, page := range sources(t, ".md") {
		if !strings.HasPrefix(page.path, "docs/") && page.path != "README.md" && page.path != "SECURITY.md" {
			continue
		}
		names := map[string]bool{}
		for _, b := range blocks.Of(page.text) {
			switch {
			case b.Language == "":
				t.Errorf("%s:%d: the block has no language: write ```sh or ```text", page.path, b.Line)
			case !b.Shell() && (b.Run != "" || b.NotRun != ""):
				t.Errorf("%s:%d: a block of %s is not run: remove the comment, or write ```sh", page.path, b.Line, b.Language)
			case b.Run != "":
				run++
				if names[b.Run] {
					t.Errorf("%s:%d: the page has two blocks %s", page.path, b.Line, b.Run)
				}
				names[b.Run] = true
				// In a script, also of make prove: block FILE PAGE NAME, or block PAGE NAME. In Go: blocks.Must(t, root, "PAGE", "NAME").
				uses := regexp.MustCompile(regexp.QuoteMeta(page.path) + `["']?,?\s+["']?` + regexp.QuoteMeta(b.Run) + `(["'\s]|$)`)
				if !uses.MatchString(tests.String()) {
					t.Errorf("%s:%d: no test runs the block %s: add it to a script in cmd/muster/testdata/docs", page.path, b.Line, b.Run)
				}
			case b.NotRun != "":
				not++
			case b.Shell():
				t.Errorf("%s:%d: write <!-- run: NAME --> in the line before the block and run it in cmd/muster/testdata/docs, or <!-- "+
					"not run: REASON -->", page.path, b.Line)
			}
		}
	}
	t.Logf("%d shell blocks run in tests, %d do not", run, not)
	if run < 20 {
		t.Errorf("only %d blocks run: the search no longer fits the pages", run)
	}
}
