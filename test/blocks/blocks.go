// Package blocks reads the shell blocks of the documentation, so that tests can run what
// readers copy. A comment in the line before a block, which Markdown does not show, says
// what becomes of it:
//
//	<!-- run: NAME -->         a test or a script of make prove runs the block; NAME is unique on its page
//	<!-- not run: REASON -->   no test runs it
package blocks

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Block is a fenced block of a page.
type Block struct {
	Line     int    // of the fence, from 1
	Language string // as the fence has it; may be empty
	Run      string // the block's name, if a test runs it
	NotRun   string // why no test runs it
	Text     string
}

// Shell tells if the block has commands for a shell.
func (b Block) Shell() bool {
	return b.Language == "sh" || b.Language == "shell" || b.Language == "bash" || b.Language == "console"
}

var mark = regexp.MustCompile(`^<!-- (run|not run): (.+) -->$`)

// Of returns the blocks of a page's text.
func Of(text string) []Block {
	var all []Block
	var open *Block
	before := ""
	for i, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case open == nil && strings.HasPrefix(trimmed, "```"):
			open = &Block{Line: i + 1, Language: strings.TrimPrefix(trimmed, "```")}
			if m := mark.FindStringSubmatch(before); m != nil && m[1] == "run" {
				open.Run = m[2]
			} else if m != nil {
				open.NotRun = m[2]
			}
		case open != nil && trimmed == "```":
			all = append(all, *open)
			open = nil
		case open != nil:
			open.Text += line + "\n"
		}
		before = trimmed
	}
	return all
}

// Named returns the text of a block that tests run. The page is a path from the
// repository's root. Each pair of changes replaces a value that is the reader's own,
// which must be there.
func Named(root, page, name string, changes ...string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(page)))
	if err != nil {
		return "", err
	}
	for _, b := range Of(string(text)) {
		if b.Run != name {
			continue
		}
		for i := 0; i+1 < len(changes); i += 2 {
			if !strings.Contains(b.Text, changes[i]) {
				return "", fmt.Errorf("%s:%d: the block %s has no %q to replace", page, b.Line, name, changes[i])
			}
			b.Text = strings.ReplaceAll(b.Text, changes[i], changes[i+1])
		}
		return b.Text, nil
	}
	return "", fmt.Errorf("%s has no block with <!-- run: %s -->", page, name)
}

// Must is Named, for a test of Go.
func Must(tb testing.TB, root, page, name string, changes ...string) string {
	tb.Helper()
	text, err := Named(root, page, name, changes...)
	if err != nil {
		tb.Fatal(err)
	}
	return text
}
