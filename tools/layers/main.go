// Command layers checks the rules of rules.go on the module in the working directory: what
// packages may import, how they are named, how long files are, that assertions of tests join few
// conditions, that comments of interfaces say how methods fail, and that docs/dependencies.md has a
// reason for each direct dependency. It ends with status 1 if something breaks a rule.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// pkg is what `go list -json` says of a package. Paths in the module are relative to its root.
type pkg struct {
	ImportPath, Dir, Name              string
	GoFiles, IgnoredGoFiles            []string
	TestGoFiles, XTestGoFiles          []string
	Imports, TestImports, XTestImports []string
}

func main() {
	findings, err := run()
	if err != nil {
		findings = append(findings, err.Error())
	}
	for _, f := range findings {
		fmt.Println(f)
	}
	if len(findings) > 0 {
		os.Exit(1)
	}
}

func run() ([]string, error) {
	var module struct {
		Module  struct{ Path string }
		Require []struct {
			Path     string
			Indirect bool
		}
	}
	text, err := exec.Command("go", "mod", "edit", "-json").Output()
	if err := errors.Join(err, json.Unmarshal(text, &module)); err != nil {
		return nil, fmt.Errorf("cannot read go.mod: %w", err)
	}
	var direct []string
	for _, r := range module.Require {
		if !r.Indirect {
			direct = append(direct, r.Path)
		}
	}
	packages, listed := list(module.Module.Path)
	reasons, err := os.ReadFile("docs/dependencies.md")
	findings := slices.Concat(checkImports(packages, layers(), confinedImports()), checkDependencies(direct, string(reasons)),
		checkLengths(packages), checkInterfaces(packages), checkAssertions(packages))
	slices.Sort(findings)
	return slices.Compact(findings), errors.Join(listed, err)
}

// list reads all packages of the module, with -e also those that do not compile.
func list(module string) (packages []pkg, err error) {
	text, err := exec.Command("go", "list", "-e",
		"-json=ImportPath,Dir,Name,GoFiles,IgnoredGoFiles,TestGoFiles,XTestGoFiles,Imports,TestImports,XTestImports", "./...").Output()
	text = bytes.ReplaceAll(text, []byte(`"`+module+"/"), []byte(`"`))
	for decoder := json.NewDecoder(bytes.NewReader(text)); err == nil && decoder.More(); {
		packages = append(packages, pkg{})
		err = decoder.Decode(&packages[len(packages)-1])
	}
	return packages, err
}

// checkLengths finds files that are too long, apart from tests and generated files.
func checkLengths(packages []pkg) (findings []string) {
	for _, p := range packages {
		for _, name := range slices.Concat(p.GoFiles, p.IgnoredGoFiles) {
			text, _ := os.ReadFile(filepath.Join(p.Dir, name)) // the compiler reports one that cannot be read
			lines, exempt := bytes.Count(text, []byte("\n")), bytes.HasPrefix(text, []byte("// Code generated ")) ||
				strings.HasSuffix(name, "_test.go")
			if lines > maxLines && !exempt {
				findings = append(findings, fmt.Sprintf("%s/%s: %d lines, more than %d: split it by subject", p.ImportPath,
					name, lines, maxLines))
			}
		}
	}
	return findings
}

// within reports whether a package is in one of the given folders.
func within(dir string, folders ...string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool {
		return dir == folder || strings.HasPrefix(dir, folder+"/")
	})
}

// find returns the layer of a package, and the longest entry that contains it.
func find(all []layer, dir string) (found layer, entry string) {
	for _, l := range all {
		for _, folder := range l.packages {
			if within(dir, folder) && len(folder) > len(entry) {
				found, entry = l, folder
			}
		}
	}
	return found, entry
}

// checkImports compares packages with the tables of layers and confined imports.
func checkImports(packages []pkg, all []layer, rules []confined) (findings []string) {
	used := map[string]bool{}
	for _, p := range packages {
		own, entry := find(all, p.ImportPath)
		used[entry] = true
		add := func(text string) { findings = append(findings, p.ImportPath+": "+text) }
		if entry == "" {
			add("the package has no layer: add it to tools/layers/rules.go")
			continue
		}
		if slices.Contains(vagueNames[:], path.Base(p.ImportPath)) || slices.Contains(vagueNames[:], p.Name) {
			add("its name does not say what it provides")
		}
		if own.name == testSupport {
			continue
		}
		for _, imported := range p.Imports {
			theirs, to := find(all, imported)
			switch {
			case strings.HasSuffix(imported, "test") || within(imported, "testing"):
				add("imports " + imported + ", which is for tests")
			case to != "" && to != entry && !slices.Contains(strings.Fields(own.below), theirs.name):
				add(fmt.Sprintf("a package of layer %s may not import %s of layer %s: declare an interface in the consumer", own.name,
					imported, theirs.name))
			}
		}
		for _, rule := range rules {
			imports := p.Imports
			if rule.tests {
				imports = slices.Concat(imports, p.TestImports, p.XTestImports)
			}
			for _, imported := range imports {
				if within(imported, rule.imports...) && !within(p.ImportPath, rule.packages...) {
					add("imports " + imported + ": " + rule.remedy)
				}
			}
		}
	}
	for _, l := range all {
		for _, entry := range l.packages {
			if !used[entry] {
				findings = append(findings, entry+": there is no such package: remove it from tools/layers/rules.go")
			}
		}
	}
	return findings
}

// checkDependencies finds direct requirements without a row in the list of reasons, and rows
// of modules that are not required.
func checkDependencies(direct []string, reasons string) (findings []string) {
	var rows []string
	for line := range strings.Lines(reasons) {
		row, ok := strings.CutPrefix(line, "| `")
		if module, _, closed := strings.Cut(row, "` |"); ok && closed {
			rows = append(rows, module)
		}
	}
	for _, module := range direct {
		if !slices.Contains(rows, module) {
			findings = append(findings, "go.mod: "+module+" has no row in docs/dependencies.md: say why it is required and what "+
				"it replaces")
		}
	}
	for _, module := range rows {
		if !slices.Contains(direct, module) {
			findings = append(findings, "docs/dependencies.md: "+module+" is not a direct requirement of go.mod: remove its row")
		}
	}
	return findings
}
