package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// equivalents are the reasons of mutants that change nothing that a test could see, by key.
type equivalents map[string]string

// readEquivalent reads a list of them. Entries are separated by empty lines: the package with
// the function, "old -> new", and the reason, which may have several lines. Lines that begin
// with # are comments.
func readEquivalent(path string) (equivalents, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	known := equivalents{}
	var lines []string
	for _, line := range append(strings.Split(string(text), "\n"), "") {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "#"):
		case line != "":
			lines = append(lines, line)
		case len(lines) >= 3:
			known[lines[0]+"\n"+lines[1]] = strings.Join(lines[2:], " ")
			lines = nil
		case len(lines) > 0:
			return nil, fmt.Errorf("%s: %q lacks a condition or a reason", path, lines[0])
		}
	}
	return known, nil
}

// match gives the mutants their reasons and returns, of the packages that are drawn from, the
// keys that name no mutant.
func (known equivalents) match(perTarget [][]mutant) (stale []string) {
	used, read := map[string]bool{}, map[string]bool{}
	for _, all := range perTarget {
		for i := range all {
			all[i].reason = known[all[i].key()]
			used[all[i].key()], read[all[i].target.pkg] = true, true
		}
	}
	for key := range known {
		if pkg, _, _ := strings.Cut(key, " "); read[pkg] && !used[key] {
			stale = append(stale, key)
		}
	}
	slices.Sort(stale)
	return stale
}
