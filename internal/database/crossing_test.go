package database_test

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Every statement of a call is confined to one company. Each statement that any test of this
// package runs on PostgreSQL is judged by its text as this package wrote it. What runs on SQLite
// comes from the same functions with nearly the same text, and is not judged again. A statement
// that is not confined must be listed with its reason: by the function that runs it, each table
// that it crosses in, and the columns by which it finds the rows there. What is listed and no
// longer runs fails the run of all tests.
const crossingFile = "testdata/crossing.txt"

var crossList = newCrossing()

// crossings is the list, and what was found so far.
type crossings struct {
	listed map[string]string // the reason of each entry
	judge  *judge
	mu     sync.Mutex
	judged map[string][]string // what each statement crosses
	ran    map[string]bool     // entries
	files  map[string]*parsed
}

type parsed struct {
	*ast.File
	*token.FileSet
}

func newCrossing() *crossings {
	c := &crossings{judged: map[string][]string{}, ran: map[string]bool{}, files: map[string]*parsed{}}
	text, err := os.ReadFile(filepath.FromSlash(crossingFile))
	if err != nil {
		panic(err)
	}
	c.listed = crossingList(string(text))
	if c.judge, err = newJudge(c.listed); err != nil {
		panic(err)
	}
	return c
}

// crossingList reads the list: a line with a reason, and below it, indented, what it is the reason of.
func crossingList(text string) map[string]string {
	listed, reason := map[string]string{}, ""
	for line := range strings.Lines(text) {
		name, what, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch {
		case strings.HasPrefix(line, "#") || name == "":
		case !strings.HasPrefix(line, "  "):
			reason = strings.TrimSpace(line)
		default:
			for entry := range strings.SplitSeq(what, ", ") {
				if _, twice := listed[name+": "+entry]; twice || reason == "" {
					panic(crossingFile + ": twice, or without a reason: " + name + ": " + entry)
				}
				listed[name+": "+entry] = reason
			}
		}
	}
	return listed
}

// entries are what a statement crosses, with the function that runs it; none if it is a test's own.
func (c *crossings) entries(query string) (all []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, known := c.judged[query]
	if !known {
		found = c.judge.crosses(query)
		c.judged[query] = found
	}
	if len(found) == 0 {
		return nil
	}
	function := c.caller()
	if function == "" {
		return nil
	}
	for _, f := range found {
		all = append(all, function+": "+f)
		c.ran[function+": "+f] = true
	}
	return all
}

// general are the functions that run a statement for any other.
var general = []string{"transaction.go", "rows.go", "engine.go", "chain.go", "holds", "permitted"}

// caller is the function of this package that runs a statement; empty if a test runs it itself.
func (c *crossings) caller() string {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		file := filepath.Base(f.File)
		switch {
		case !strings.Contains(f.Function, "/internal/database."), slices.Contains(general, file):
		case strings.HasSuffix(file, "_test.go") && !strings.Contains(f.Function, "OnStatement"):
			return ""
		case strings.HasSuffix(file, "_test.go"):
		default:
			if name := c.declared(f); !slices.Contains(general, name) {
				return name
			}
		}
	}
	return ""
}

// declared is the name of the declared function that a frame is in, whatever the compiler has made of it.
func (c *crossings) declared(f runtime.Frame) string {
	file := c.files[f.File]
	if file == nil {
		set := token.NewFileSet()
		syntax, err := parser.ParseFile(set, filepath.Base(f.File), nil, parser.SkipObjectResolution)
		if err != nil {
			panic(err)
		}
		file = &parsed{syntax, set}
		c.files[f.File] = file
	}
	for _, d := range file.Decls {
		if d, ok := d.(*ast.FuncDecl); ok && file.Line(d.Pos()) <= f.Line && f.Line <= file.Line(d.End()) {
			return d.Name.Name
		}
	}
	return filepath.Base(f.File)
}

func (p *parsed) Line(at token.Pos) int { return p.Position(at).Line }

// whole reports whether all tests ran, on PostgreSQL too.
func (c *crossings) whole() bool {
	for _, chosen := range []string{"test.run", "test.skip", "test.list", "test.fuzz"} {
		if flag.Lookup(chosen).Value.String() != "" {
			return false
		}
	}
	return !testing.Short() && len(c.judged) > 0
}

// gone are the entries that nothing needs.
func (c *crossings) gone() (gone []string) {
	for entry := range c.listed {
		if !c.ran[entry] && !c.judge.used[entry] {
			gone = append(gone, entry)
		}
	}
	slices.Sort(gone)
	return gone
}
