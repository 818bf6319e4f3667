package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each command has a page, which lists its flags, and each shell its completion.
func TestMan_HasEveryCommand(t *testing.T) {
	t.Parallel()
	p := processes{t: t, dir: t.TempDir()}
	pages := filepath.Join(p.dir, "man")
	p.run("man", pages)
	files, err := os.ReadDir(pages)
	if err != nil || len(files) < 60 {
		t.Fatalf("%d files were written, want one for each command: %v", len(files), err)
	}
	for _, name := range []string{"muster.bash", "_muster", "muster.fish"} {
		if _, err := os.Stat(filepath.Join(pages, name)); err != nil {
			t.Error(err)
		}
	}
	for name, want := range map[string][]string{
		"muster.1":                {".SH COMMANDS", `.BR muster\-serve (1)`, `.BR muster\-company\-create (1)`},
		"muster-serve.1":          {`.B \-\-public\-url=URL`, ".B MUSTER_SMTP_URL_FILE", ".B muster serve\n[flags]"},
		"muster-company-create.1": {`muster\-company\-create \- `, `\-\-slug`},
	} {
		text, err := os.ReadFile(filepath.Join(pages, name))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, part := range want {
			if !strings.Contains(string(text), part) {
				t.Errorf("%s lacks %q", name, part)
			}
		}
	}
}
