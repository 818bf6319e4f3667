package house

import (
	"cmp"
	"fmt"
	"go/token"
	"io/fs"
	"slices"
)

// Finding is one broken rule, with what to do about it.
type Finding struct {
	File string // slash-separated, from the module's root
	Line int
	Text string
}

// String is the finding as compilers write them, so that editors can jump.
func (f Finding) String() string { return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Text) }

// Check reads the module that lies at the root of fsys and returns what breaks
// the rules, in order of file and line. The error is for sources or a go.mod
// that cannot be read or parsed.
func Check(fsys fs.FS) ([]Finding, error) {
	tree, err := load(fsys)
	if err != nil {
		return nil, err
	}
	r := &report{tree: tree}
	for _, p := range tree.packages {
		r.checkLayer(p)
		for _, f := range p.files {
			r.checkImports(f)
			if f.test || f.generated {
				continue
			}
			r.checkCalls(f)
			r.checkText(f)
			r.checkSizes(f)
		}
	}
	r.checkVariables()
	if err := r.checkDependencies(fsys); err != nil {
		return nil, err
	}
	slices.SortFunc(r.findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Text, b.Text))
	})
	return slices.Compact(r.findings), nil
}

// Vacant lists the rooms of the layer table for which there is no package: a
// rule about a room that has moved protects nothing.
func Vacant(fsys fs.FS) ([]string, error) {
	tree, err := load(fsys)
	if err != nil {
		return nil, err
	}
	var vacant []string
	for path := range rooms {
		inhabited := slices.ContainsFunc(tree.packages, func(p *pkg) bool { return within(p.dir, path) })
		if !inhabited {
			vacant = append(vacant, path)
		}
	}
	slices.Sort(vacant)
	return vacant, nil
}

// report collects findings while the checks walk the tree.
type report struct {
	tree     *tree
	findings []Finding
}

func (r *report) add(pos token.Pos, format string, args ...any) {
	at := r.tree.fset.Position(pos)
	r.findings = append(r.findings, Finding{File: at.Filename, Line: at.Line, Text: fmt.Sprintf(format, args...)})
}
