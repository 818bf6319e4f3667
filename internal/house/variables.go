package house

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// tableMark, on the line above a package-level variable, vouches for a value
// that this checker cannot see through. A reason must follow it.
const tableMark = "//house:table "

// checkVariables finds package-level variables that may change: those written
// to anywhere in the module, and those whose first value can be changed from
// within. Sentinel errors, embedded files and tables without writes are
// welcome.
func (r *report) checkVariables() {
	written := r.writes()
	for _, p := range r.tree.packages {
		if _, l := room(p.dir); l == trial || p.types == nil {
			continue
		}
		for _, f := range p.production() {
			for _, decl := range f.Decls {
				if d, ok := decl.(*ast.GenDecl); ok && d.Tok == token.VAR {
					r.checkVariable(f, d, written)
				}
			}
		}
	}
}

func (r *report) checkVariable(f *file, decl *ast.GenDecl, written map[string]token.Pos) {
	for _, spec := range decl.Specs {
		spec, ok := spec.(*ast.ValueSpec)
		if !ok {
			continue
		}
		comments := []*ast.CommentGroup{decl.Doc, spec.Doc}
		for i, name := range spec.Names {
			if name.Name == "_" || marked(comments, "//go:embed ") {
				continue
			}
			if pos, ok := written[f.pkg.dir+"."+name.Name]; ok {
				r.add(pos, "package variable %s is changed here: keep state in a value with an owner", name.Name)
				continue
			}
			if !marked(comments, tableMark) && !isSentinel(name.Name) && !f.immutable(spec, i) {
				r.add(name.Pos(), "package variable %s may change: keep it in a value with an owner, make it a literal table, or say why not after %s",
					name.Name, strings.TrimSpace(tableMark))
			}
		}
	}
}

func marked(groups []*ast.CommentGroup, mark string) bool {
	return slices.ContainsFunc(groups, func(g *ast.CommentGroup) bool {
		return g != nil && slices.ContainsFunc(g.List, func(c *ast.Comment) bool {
			return strings.HasPrefix(c.Text, mark) && strings.TrimSpace(c.Text[len(mark):]) != ""
		})
	})
}

// isSentinel tells error values by their name, errNone or ErrNone.
func isSentinel(name string) bool {
	rest, ok := strings.CutPrefix(strings.ToLower(name[:1])+name[1:], "err")
	return ok && rest != "" && rest[0] >= 'A' && rest[0] <= 'Z'
}

// harmless lists packages of the standard library whose functions return values
// that are immutable, or fresh ones.
var harmless = []string{
	"bytes", "cmp", "encoding/base32", "encoding/base64", "encoding/hex", "errors", "fmt", "html/template", "maps",
	"net/netip", "reflect", "regexp", "slices", "strconv", "strings", "text/template", "time", "unicode",
}

// immutable tells whether the i-th variable of spec holds a value that stays
// as it is without an assignment.
func (f *file) immutable(spec *ast.ValueSpec, i int) bool {
	if i >= len(spec.Values) {
		return false // no value yet: it waits to be changed
	}
	switch value := ast.Unparen(spec.Values[i]).(type) {
	case *ast.CompositeLit:
		t := f.pkg.info.Types[value].Type
		return t == nil || !statefulType(t, nil)
	case *ast.UnaryExpr:
		return value.Op != token.AND
	case *ast.CallExpr:
		return f.immutableCall(value)
	default:
		return true
	}
}

func (f *file) immutableCall(call *ast.CallExpr) bool {
	switch fun := ast.Unparen(call.Fun).(type) {
	case *ast.ArrayType:
		return true // a conversion, []byte("…")
	case *ast.SelectorExpr:
		importPath, member := f.selects(fun)
		if importPath == "" {
			inner, ok := ast.Unparen(fun.X).(*ast.CallExpr)
			return ok && f.immutableCall(inner) // base32.NewEncoding(…).WithPadding(…)
		}
		return slices.Contains(harmless, importPath) && member != "NewBuffer" && member != "NewTimer" && member != "NewTicker" ||
			importPath == "sync" && strings.HasPrefix(member, "OnceValue") || importPath == "sync" && member == "OnceFunc"
	}
	// A function or a type of the package itself: what it returns decides.
	switch result := f.pkg.info.Types[call].Type.(type) {
	case nil, *types.Pointer, *types.Tuple:
		return false
	case *types.Basic:
		return result.Kind() != types.Invalid
	default:
		return !statefulType(result, nil)
	}
}

// statefulType tells whether a type is, or has in a struct of this package, a
// channel, a lock or the like: something that changes without assignment.
func statefulType(t types.Type, seen []types.Type) bool {
	if slices.Contains(seen, t) {
		return false
	}
	switch u := t.Underlying().(type) {
	case *types.Chan:
		return true
	case *types.Struct:
		for field := range u.Fields() {
			if statefulType(field.Type(), append(seen, t)) {
				return true
			}
		}
	}
	return false
}
