package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// selector is the environment variable with the number of the mutant that a test binary is; empty: none.
const selector = "MUTANT"

// selects is a file of each changed package. The number is read once.
const selects = `package %s

import (
	"os"
	"strconv"
)

var mutantNumber, _ = strconv.Atoi(os.Getenv(%q))
`

// writeOverlay writes the changed files of all mutants to a folder, and returns the path of the file for the go command's
// -overlay that puts them in the place of the originals. Each condition becomes a function that looks which mutant is
// selected, so that a test binary is compiled once for all of them.
func writeOverlay(folder string, all []mutant) (string, error) {
	byFile := map[string][]mutant{}
	for _, m := range all {
		byFile[m.file] = append(byFile[m.file], m)
	}
	replace := map[string]string{}
	put := func(original string, text []byte) error {
		original, err := filepath.Abs(original)
		if err != nil || replace[original] != "" {
			return err
		}
		replace[original] = filepath.Join(folder, fmt.Sprintf("%d.go", len(replace)))
		return os.WriteFile(replace[original], text, 0o600)
	}
	for file, mutants := range byFile {
		source, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		dir := filepath.Dir(file)
		if err := put(file, selectable(source, mutants)); err != nil {
			return "", err
		}
		if err := put(filepath.Join(dir, "mutant_number.go"), fmt.Appendf(nil, selects, filepath.Base(dir), selector)); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(folder, "overlay.json")
	return path, os.WriteFile(path, text, 0o600)
}

// selectable is the source with each condition of mutants of one file as a function.
func selectable(source []byte, mutants []mutant) []byte {
	outerFirst := slices.Clone(mutants)
	slices.SortStableFunc(outerFirst, func(a, b mutant) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to)) })
	r := renderer{source: source, left: outerFirst}
	return r.render(0, len(source))
}

type renderer struct {
	source []byte
	left   []mutant // sorted: those of a condition, then those of the conditions in it
}

// render returns a part of the source with the mutants that are left of it.
func (r *renderer) render(from, to int) []byte {
	var out bytes.Buffer
	for len(r.left) > 0 && r.left[0].to <= to {
		m := r.left[0]
		out.Write(r.source[from:m.from])
		var cases strings.Builder
		for len(r.left) > 0 && r.left[0].from == m.from && r.left[0].to == m.to {
			fmt.Fprintf(&cases, "case %d: return %s; ", r.left[0].number, r.left[0].text)
			r.left = r.left[1:]
		}
		fmt.Fprintf(&out, "func() bool { switch mutantNumber { %s}; return (%s) }()", &cases, r.render(m.from, m.to))
		from = m.to
	}
	out.Write(r.source[from:to])
	return out.Bytes()
}
