package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/musterhq/muster/internal/surface/cli"
	"github.com/musterhq/muster/test/poll"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"muster": main})
}

func TestMuster_Scripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(e *testscript.Env) error {
			e.Setenv("GORACE", os.Getenv("GORACE")) // scripts/test.sh
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"json":     jsonCommand,
			"oneline":  oneLine,
			"mode":     fileMode,
			"wait-for": waitFor,
			"address":  address,
			"sigterm":  sigterm,
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

// jsonCommand: json PATH [WANT | -> VARIABLE]. It reads standard output, which
// must be one JSON value and nothing else, and compares or keeps the member at
// a dotted path.
func jsonCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: json PATH WANT | json PATH -> VARIABLE")
	}
	decoder := json.NewDecoder(strings.NewReader(ts.ReadFile("stdout")))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		ts.Fatalf("standard output is not JSON: %v", err)
	}
	if decoder.More() {
		ts.Fatalf("standard output holds more than one JSON value")
	}
	for _, step := range strings.Split(args[0], ".") {
		value = member(ts, value, step)
	}
	text := fmt.Sprint(value)
	if _, scalar := value.(string); !scalar {
		encoded, err := json.Marshal(value)
		ts.Check(err)
		text = string(encoded)
	}
	if args[1] == "->" {
		ts.Setenv(args[2], text)
		return
	}
	if want := strings.Join(args[1:], " "); text != want {
		ts.Fatalf("%s is %s, want %s", args[0], text, want)
	}
}

// member takes one step: a name, an index, "len" for the length.
func member(ts *testscript.TestScript, value any, step string) any {
	switch v := value.(type) {
	case map[string]any:
		inner, ok := v[step]
		if !ok {
			ts.Fatalf("there is no member %q", step)
		}
		return inner
	case []any:
		if step == "len" {
			return json.Number(fmt.Sprint(len(v)))
		}
		var i int
		if _, err := fmt.Sscan(step, &i); err != nil || i >= len(v) {
			ts.Fatalf("no element %q in an array of %d", step, len(v))
		}
		return v[i]
	}
	ts.Fatalf("%q leads nowhere", step)
	return nil
}

// oneLine fails unless standard error is exactly one line and standard output
// is empty.
func oneLine(ts *testscript.TestScript, _ bool, _ []string) {
	if out := ts.ReadFile("stdout"); out != "" {
		ts.Fatalf("a failure prints on standard output: %q", out)
	}
	if text := ts.ReadFile("stderr"); strings.Count(text, "\n") != 1 || !strings.HasSuffix(text, "\n") {
		ts.Fatalf("a failure is not one line: %q", text)
	}
}

// fileMode: mode FILE 0600.
func fileMode(ts *testscript.TestScript, _ bool, args []string) {
	info, err := os.Stat(ts.MkAbs(args[0]))
	ts.Check(err)
	if got := fmt.Sprintf("%04o", info.Mode().Perm()); got != args[1] {
		ts.Fatalf("%s has mode %s, want %s", args[0], got, args[1])
	}
}

// waitFor: wait-for FILE. It waits until a background command made the file.
func waitFor(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(poll.For(time.Minute, func() error {
		_, err := os.Stat(ts.MkAbs(args[0]))
		return err
	}))
}

// address: address LOG VARIABLE. It waits until a service in the background has
// logged where it is reached, and keeps that.
func address(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(poll.For(time.Minute, func() error {
		text, err := os.ReadFile(ts.MkAbs(args[0]))
		if err != nil {
			return err
		}
		for _, before := range []string{"publicURL=", "answers at "} { // of the service, of the emulator
			if _, after, ok := strings.Cut(string(text), before); ok && strings.Contains(after, "\n") {
				ts.Setenv(args[1], strings.Fields(after)[0])
				return nil
			}
		}
		return fmt.Errorf("%s names no address", args[0])
	}))
}

// sigterm sends SIGTERM to every command in the background.
func sigterm(ts *testscript.TestScript, _ bool, _ []string) {
	for _, command := range ts.BackgroundCmds() {
		ts.Check(command.Process.Signal(syscall.SIGTERM))
	}
}

// TestGoldenHelp compares the help of every command with the golden file, so that a
// change of the command line shows as a diff.
func TestGoldenHelp(t *testing.T) {
	t.Parallel()
	var all bytes.Buffer
	for _, path := range commandPaths(t) {
		fmt.Fprintf(&all, "$ muster %s\n", strings.Join(append(path, "--help"), " "))
		var errOut bytes.Buffer
		if code := run(append(path, "--help"), strings.NewReader(""), &all, &errOut); code != cli.ExitOK || errOut.Len() > 0 {
			t.Errorf("help of %v ends with %d and says %q", path, code, errOut.String())
		}
		all.WriteByte('\n')
	}
	golden := filepath.Join("testdata", "help.txt")
	if *update {
		if err := os.WriteFile(golden, all.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(all.Bytes(), want) {
		t.Errorf("the help has changed; look at it, then run go test ./cmd/muster -run Golden -update\n%s", all.Bytes())
	}
}

// commandPaths walks the tree of commands.
func commandPaths(t *testing.T) [][]string {
	t.Helper()
	parser, err := grammar()
	if err != nil {
		t.Fatal(err)
	}
	paths := [][]string{nil}
	var walk func(node *kong.Node, path []string)
	walk = func(node *kong.Node, path []string) {
		for _, child := range node.Children {
			if child.Type == kong.CommandNode {
				inner := append(path[:len(path):len(path)], child.Name)
				paths = append(paths, inner)
				walk(child, inner)
			}
		}
	}
	walk(parser.Model.Node, nil)
	return paths
}

// The page of a sign-up returns to where the service last started, if the command does not say.
func TestConnect_ReturnsToTheService(t *testing.T) {
	t.Parallel()
	returns := make(chan string, 10)
	vendor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if to, err := url.Parse(r.URL.Query().Get("callbackUrl")); err == nil && to.Host != "" {
			returns <- to.Scheme + "://" + to.Host
		}
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(vendor.Close)
	p := processes{t: t, dir: t.TempDir()}
	p.run("company", "create", "acme")
	connect := []string{"company", "connect", "acme", "--platform-endpoint", vendor.URL}
	expect := func(want string, flags ...string) {
		t.Helper()
		p.refused("the platform refuses", nil, append(connect[:len(connect):len(connect)], flags...)...)
		select {
		case to := <-returns:
			if to != want {
				t.Errorf("the page returns to %s, want %s", to, want)
			}
		default:
			t.Error("no page was asked for")
		}
	}
	expect("http://127.0.0.1:8080")
	s := p.startUntil("publicURL=", "serve", "--public-url", "https://Muster.example.com:443/")
	s.end()
	expect("https://muster.example.com")
	expect("https://other.example.com", "--public-url", "https://other.example.com/")
}

// An argument that is not UTF-8 is named, and not used with other characters.
func TestRun_ArgumentsAreUTF8(t *testing.T) {
	t.Parallel()
	var out, says strings.Builder
	code := run([]string{"activity", "verify", "--export", "caf\xe9"}, strings.NewReader(""), &out, &says)
	if code != cli.ExitUsage || !strings.Contains(says.String(), `the argument "caf\xe9" is not UTF-8`) {
		t.Errorf("exit %d: %s", code, says.String())
	}
}
