package house

import (
	"go/ast"
	"go/token"
	"go/types"
)

// writes finds every statement of production code that changes a package-level
// variable of the module: assignments to it or into it, ++ and --, delete,
// clear and copy, range assignments, and taking its address. Keys are
// "directory.Name". What happens through a pointer to an element, or to a slice
// or map handed elsewhere, is not seen: tables are read that way, too.
func (r *report) writes() map[string]token.Pos {
	found := make(map[string]token.Pos)
	for _, p := range r.tree.packages {
		if _, l := room(p.dir); l == trial {
			continue
		}
		for _, f := range p.production() {
			ast.Inspect(f.File, func(n ast.Node) bool {
				for _, target := range targets(n) {
					if key := r.variable(f, target); key != "" && !found[key].IsValid() {
						found[key] = target.Pos()
					}
				}
				return true
			})
		}
	}
	return found
}

// targets lists the expressions that a node writes to.
func targets(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			return n.Lhs
		}
	case *ast.IncDecStmt:
		return []ast.Expr{n.X}
	case *ast.RangeStmt:
		if n.Tok == token.ASSIGN {
			return []ast.Expr{n.Key, n.Value}
		}
	case *ast.UnaryExpr:
		if _, element := ast.Unparen(n.X).(*ast.IndexExpr); n.Op == token.AND && !element {
			return []ast.Expr{n.X}
		}
	case *ast.CallExpr:
		if id, ok := n.Fun.(*ast.Ident); ok && len(n.Args) > 0 && (id.Name == "delete" || id.Name == "clear" || id.Name == "copy") {
			return n.Args[:1]
		}
	}
	return nil
}

// variable is the key of the package-level variable that an expression lies
// in, however deep, or "".
func (r *report) variable(f *file, e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		v, ok := f.pkg.info.Uses[e].(*types.Var)
		if ok && f.pkg.types != nil && v.Parent() == f.pkg.types.Scope() {
			return f.pkg.dir + "." + e.Name
		}
	case *ast.SelectorExpr:
		if importPath, member := f.selects(e); importPath != "" {
			if dir, ok := r.tree.inModule(importPath); ok {
				return dir + "." + member
			}
			return ""
		}
		return r.variable(f, e.X)
	case *ast.IndexExpr:
		return r.variable(f, e.X)
	case *ast.SliceExpr:
		return r.variable(f, e.X)
	case *ast.ParenExpr:
		return r.variable(f, e.X)
	case *ast.StarExpr:
		return r.variable(f, e.X)
	}
	return ""
}
