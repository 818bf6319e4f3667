package docs

import (
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"testing"
)

var goBlock = regexp.MustCompile("(?ms)^ *```go\n(.*?)^ *```")

// TestStyle_PairsParse checks that each block of docs/style.md has code to avoid and code
// to prefer, and that both are Go: declarations, or statements of a function.
func TestStyle_PairsParse(t *testing.T) {
	t.Parallel()
	blocks := goBlock.FindAllStringSubmatch(read(t, "docs/style.md"), -1)
	if len(blocks) < 10 {
		t.Errorf("docs/style.md has %d pairs of code, want at least 10", len(blocks))
	}
	for _, block := range blocks {
		avoid, prefer, found := strings.Cut(block[1], "// prefer\n")
		if !found || !strings.Contains(avoid, "// avoid\n") {
			t.Errorf("the block has no pair of \"// avoid\" and \"// prefer\":\n%s", block[1])
			continue
		}
		for _, code := range []string{avoid, prefer} {
			_, declared := parser.ParseFile(token.NewFileSet(), "", "package p\n"+code, 0)
			_, stated := parser.ParseFile(token.NewFileSet(), "", "package p\nfunc f() {\n"+code+"\n}", 0)
			if declared != nil && stated != nil {
				t.Errorf("the code does not parse: %v\n%s", stated, code)
			}
		}
	}
}
