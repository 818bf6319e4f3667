package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// verdict says which tests noticed a mutant, if any.
type verdict string

const (
	killed     verdict = "own tests"
	elsewhere  verdict = "other tests"
	survived   verdict = "SURVIVED"
	equivalent verdict = "equivalent"
	broken     verdict = "not compiled"
)

// runner runs tests on mutants, one at a time.
type runner struct {
	folder  string                   // temporary, with the changed file of the mutant and its overlay
	limits  map[string]time.Duration // by tests.String; see limit
	ownOnly bool                     // skip tests of other packages
}

func newRunner() (*runner, error) {
	folder, err := os.MkdirTemp("", "mutate")
	return &runner{folder: folder, limits: map[string]time.Duration{}}, err
}

func (r *runner) close() { _ = os.RemoveAll(r.folder) }

// judge tests a mutant. by is the test that failed, or "time limit"; empty: none.
func (r *runner) judge(m mutant) (v verdict, by string, err error) {
	if m.reason != "" {
		return equivalent, "", nil
	}
	overlay, err := r.overlay(m)
	if err != nil {
		return "", "", err
	}
	run := []tests{m.target.own(filepath.Base(m.file))}
	if !r.ownOnly {
		run = append(run, m.target.wide...)
	}
	for i, t := range run {
		failed, err := r.fails(t, overlay)
		switch {
		case err != nil:
			return "", "", err
		case failed == doesNotCompile:
			return broken, "", nil
		case failed != "" && i == 0:
			return killed, failed, nil
		case failed != "":
			return elsewhere, failed, nil
		}
	}
	return survived, "", nil
}

// overlay writes the changed file of a mutant, and returns the path of the file for the go command's -overlay that puts it in
// the place of the original.
func (r *runner) overlay(m mutant) (string, error) {
	source, err := os.ReadFile(m.file)
	if err != nil {
		return "", err
	}
	changed := filepath.Join(r.folder, "changed.go")
	text := string(source[:m.from]) + m.text + string(source[m.to:])
	if err := os.WriteFile(changed, []byte(text), 0o600); err != nil {
		return "", err
	}
	original, err := filepath.Abs(m.file)
	if err != nil {
		return "", err
	}
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {original: changed}})
	if err != nil {
		return "", err
	}
	path := filepath.Join(r.folder, "overlay.json")
	return path, os.WriteFile(path, replace, 0o600)
}

// fails runs tests with an overlay and returns what runTests does for the first that fails; empty: all pass. A test that
// fails runs again alone and counts only if it fails again, because some tests fail now and then without a change.
func (r *runner) fails(t tests, overlay string) (string, error) {
	limit, err := r.limit(t)
	if err != nil {
		return "", err
	}
	failed, _ := runTests(t, overlay, limit)
	if strings.HasPrefix(failed, "Test") || strings.HasPrefix(failed, "Fuzz") {
		failed, _ = runTests(tests{run: "^" + failed + "$", packages: t.packages}, overlay, limit)
	}
	return failed, nil
}

// limit returns how long tests may take: three times as long as without a mutant, and 30 seconds more because other programs
// may use the machine. It fails if the tests do not pass without a mutant in one of three runs.
func (r *runner) limit(t tests) (time.Duration, error) {
	key := t.String()
	if limit, known := r.limits[key]; known {
		return limit, nil
	}
	var failed, out string
	for range 3 {
		began := time.Now()
		if failed, out = runTests(t, "", 20*time.Minute); failed == "" {
			r.limits[key] = 3*time.Since(began) + 30*time.Second
			return r.limits[key], nil
		}
	}
	return 0, fmt.Errorf("go test %s fails without a change: %s\n%s", t, failed, out)
}

const doesNotCompile = "does not compile"

// runTests runs tests until one fails. failed is its name, "time limit", doesNotCompile, or a line of the output if no test
// is named there; empty: all pass. An empty overlay means no mutant.
func runTests(t tests, overlay string, limit time.Duration) (failed, output string) {
	args := []string{"test", "-vet=off", "-failfast", "-count=1", "-timeout", limit.String()}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	if t.run != "" {
		args = append(args, "-run", t.run)
	}
	if t.skip != "" {
		args = append(args, "-skip", t.skip)
	}
	// The time limit of the go command is for one package, without its compilation.
	ctx, cancel := context.WithTimeout(context.Background(), 2*limit+5*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, "go", append(args, t.packages...)...)
	c.WaitDelay = 10 * time.Second
	out, err := c.CombinedOutput()
	if err == nil {
		return "", ""
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) || bytes.Contains(out, []byte("panic: test timed out")) {
		return "time limit", string(out)
	}
	if bytes.Contains(out, []byte("[build failed]")) {
		return doesNotCompile, string(out)
	}
	return firstFailure(string(out)), string(out)
}

// firstFailure returns the name of the first test that failed in the output of the go command; else its first line with a
// panic or a failure; else "failed".
func firstFailure(out string) string {
	for line := range strings.Lines(out) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "--- FAIL: "); ok {
			name, _, _ := strings.Cut(rest, " ")
			return name
		}
	}
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "FAIL") {
			return strings.TrimSpace(line)
		}
	}
	return "failed"
}
