package house

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// reserved lists members of the standard library that belong to certain rooms.
var reserved = []struct {
	importPath string
	members    []string // a trailing * stands for any ending
	rooms      []string
	text       string
}{
	{
		importPath: "time",
		members:    []string{"Now", "Since", "Until", "Sleep"},
		rooms:      []string{"cmd"},
		text:       "the clock belongs to cmd: take now func() time.Time, wait on a timer or a signal",
	},
	{
		importPath: "os",
		members:    []string{"Getenv", "LookupEnv", "Environ", "ExpandEnv", "Setenv", "Unsetenv"},
		rooms:      []string{"cmd"},
		text:       "the environment belongs to cmd: take the value as a parameter",
	},
	{
		importPath: "os",
		members:    []string{"Exit"},
		rooms:      []string{"cmd", "internal/house/cmd", "internal/platform/discovery/cmd"},
		text:       "only a program ends itself: return an error",
	},
	{
		importPath: "net/http",
		members:    []string{"Status*", "Error", "NotFound"},
		rooms:      httpRooms,
		text:       httpText,
	},
}

// httpRooms speak HTTP: the surfaces as servers, the others as clients of the
// vendor or of the service (and the emulator in the vendor's place).
var httpRooms = []string{"internal/surface", "internal/platform", "internal/emulator", "internal/fcm", "internal/agent", "internal/fleetsim", "cmd"}

const httpText = "HTTP status numbers belong to the surfaces: return a fault and let the surface choose"

// checkCalls finds uses of what belongs to other rooms, also as a value (a
// field set to time.Now is the same slip as a call), and functions called init.
func (r *report) checkCalls(f *file) {
	if _, l := room(f.pkg.dir); l == trial {
		return
	}
	ast.Inspect(f.File, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			r.checkReserved(f, n)
		case *ast.CallExpr:
			r.checkStatusNumber(f, n)
		case *ast.FuncDecl:
			if n.Recv == nil && n.Name.Name == "init" {
				r.add(n.Pos(), "no init functions: let a constructor do it")
			}
		}
		return true
	})
}

func (r *report) checkReserved(f *file, s *ast.SelectorExpr) {
	importPath, member := f.selects(s)
	for _, c := range reserved {
		matches := func(name string) bool {
			stem, open := strings.CutSuffix(name, "*")
			return member == name || open && strings.HasPrefix(member, stem)
		}
		if importPath == c.importPath && slices.ContainsFunc(c.members, matches) && !within(f.pkg.dir, c.rooms...) {
			r.add(s.Pos(), "%s.%s: %s", importPath, member, c.text)
		}
	}
}

// checkStatusNumber finds w.WriteHeader(404).
func (r *report) checkStatusNumber(f *file, call *ast.CallExpr) {
	s, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != "WriteHeader" || len(call.Args) != 1 || within(f.pkg.dir, httpRooms...) {
		return
	}
	if lit, ok := call.Args[0].(*ast.BasicLit); ok && lit.Kind == token.INT {
		r.add(call.Pos(), "WriteHeader(%s): %s", lit.Value, httpText)
	}
}
