package house

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

const dependenciesFile = "docs/dependencies.md"

// requirement is a module that go.mod names without "// indirect".
type requirement struct {
	path string
	line int
}

var errNoModule = errors.New("go.mod names no module")

// loadModule reads the module's path and its direct requirements. go.mod is
// written by the go command, so line by line is enough.
func (t *tree) loadModule(fsys fs.FS) error {
	source, err := fs.ReadFile(fsys, "go.mod")
	if err != nil {
		return fmt.Errorf("cannot read the module: %w", err)
	}
	line, inBlock := 0, false
	for text := range strings.Lines(string(source)) {
		line++
		fields := strings.Fields(text)
		switch {
		case len(fields) == 0:
		case fields[0] == "module" && len(fields) == 2:
			t.module = fields[1]
		case fields[0] == "require" && fields[len(fields)-1] == "(":
			inBlock = true
		case fields[0] == ")":
			inBlock = false
		case strings.Contains(text, "// indirect"):
		case fields[0] == "require" && len(fields) > 2:
			t.direct = append(t.direct, requirement{fields[1], line})
		case inBlock && len(fields) > 1:
			t.direct = append(t.direct, requirement{fields[0], line})
		}
	}
	if t.module == "" {
		return errNoModule
	}
	return nil
}

// checkDependencies finds direct requirements without a reason on the list of
// dependencies, and rows for modules that are no longer required.
func (r *report) checkDependencies(fsys fs.FS) error {
	list, err := fs.ReadFile(fsys, dependenciesFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	required := make(map[string]bool)
	for _, m := range r.tree.direct {
		required[m.path] = true
		if !bytes.Contains(list, []byte("| `"+m.path+"` |")) {
			r.findings = append(r.findings, Finding{"go.mod", m.line,
				fmt.Sprintf("%s has no row in %s: say why it is there and what it replaces", m.path, dependenciesFile)})
		}
	}
	line := 0
	for text := range strings.Lines(string(list)) {
		line++
		row, ok := strings.CutPrefix(text, "| `")
		module, _, closed := strings.Cut(row, "` |")
		if ok && closed && !required[module] {
			r.findings = append(r.findings, Finding{dependenciesFile, line, module + " is not a direct requirement of go.mod: remove its row"})
		}
	}
	return nil
}
