package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/musterhq/muster/test/blocks"
	"github.com/musterhq/muster/test/needs"
)

// TestDocs_Commands runs the shell blocks of the README and the documentation that say so,
// on a service of their own. Each script of testdata/docs prepares what the reader has,
// replaces what is the reader's own, and looks at what the commands did.
func TestDocs_Commands(t *testing.T) {
	t.Parallel()
	needs.Curl().Of(t)
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "docs"),
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"json":     jsonCommand,
			"wait-for": waitFor,
			"address":  address,
			"sigterm":  sigterm,
			"block":    func(ts *testscript.TestScript, _ bool, args []string) { block(ts, root, args) },
		},
		Setup: func(e *testscript.Env) error {
			e.Setenv("ROOT", root)
			e.Setenv("GORACE", os.Getenv("GORACE")) // scripts/test.sh
			e.Setenv("no_proxy", "127.0.0.1,localhost")
			return nil
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

// block: block FILE PAGE NAME [OLD=>NEW]... writes a block of a page to a file, for
// `exec sh -eu FILE`. OLD is what is the reader's own and must be in the block.
func block(ts *testscript.TestScript, root string, args []string) {
	if len(args) < 3 {
		ts.Fatalf("usage: block FILE PAGE NAME [OLD=>NEW]...")
	}
	var changes []string
	for _, change := range args[3:] {
		before, after, ok := strings.Cut(change, "=>")
		if !ok || before == "" {
			ts.Fatalf("%q is not OLD=>NEW", change)
		}
		changes = append(changes, before, after)
	}
	text, err := blocks.Named(root, args[1], args[2], changes...)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
}
