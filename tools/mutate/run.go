package main

import (
	"bytes"
	"context"
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
)

// runner runs tests on mutants, one at a time.
type runner struct {
	folder   string                   // temporary, with the changed files and the test binaries
	overlay  string                   // of all mutants; see writeOverlay
	binaries map[string]string        // of tests, by package
	limits   map[string]time.Duration // by tests.String; see limit
	ownOnly  bool                     // skip tests of other packages
}

func newRunner(all []mutant) (*runner, error) {
	folder, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return nil, err
	}
	overlay, err := writeOverlay(folder, all)
	return &runner{folder: folder, overlay: overlay, binaries: map[string]string{}, limits: map[string]time.Duration{}}, err
}

func (r *runner) close() { _ = os.RemoveAll(r.folder) }

// judge tests a mutant. by is the test that failed, or "time limit"; empty: none.
func (r *runner) judge(m mutant) (v verdict, by string, err error) {
	if m.reason != "" {
		return equivalent, "", nil
	}
	run := []tests{m.target.own(filepath.Base(m.file))}
	if !r.ownOnly {
		run = append(run, m.target.wide...)
	}
	for i, t := range run {
		failed, err := r.fails(t, m.number)
		switch {
		case err != nil:
			return "", "", err
		case failed != "" && i == 0:
			return killed, failed, nil
		case failed != "":
			return elsewhere, failed, nil
		}
	}
	return survived, "", nil
}

// fails runs tests on a mutant and returns what runTests does for the first that fails; empty: all pass. A test that
// fails runs again alone and counts only if it fails again, because some tests fail now and then without a change.
func (r *runner) fails(t tests, number int) (string, error) {
	limit, err := r.limit(t)
	if err != nil {
		return "", err
	}
	for _, pkg := range t.packages {
		failed, _ := r.runTests(pkg, t.run, t.skip, number, limit)
		if strings.HasPrefix(failed, "Test") || strings.HasPrefix(failed, "Fuzz") {
			failed, _ = r.runTests(pkg, "^"+failed+"$", "", number, limit)
		}
		if failed != "" {
			return failed, nil
		}
	}
	return "", nil
}

// limit returns how long tests of a package may take: three times as long as without a mutant, and 30 seconds more because
// other programs may use the machine. It fails if the tests do not pass without a mutant in one of three runs.
func (r *runner) limit(t tests) (time.Duration, error) {
	key := t.String()
	if limit, known := r.limits[key]; known {
		return limit, nil
	}
	for _, pkg := range t.packages {
		if err := r.compile(pkg); err != nil {
			return 0, err
		}
		var failed, out string
		began := time.Now()
		for range 3 {
			began = time.Now()
			if failed, out = r.runTests(pkg, t.run, t.skip, 0, 20*time.Minute); failed == "" {
				break
			}
		}
		if failed != "" {
			return 0, fmt.Errorf("the tests of %s fail without a change: %s\n%s", pkg, failed, out)
		}
		r.limits[key] = max(r.limits[key], 3*time.Since(began)+30*time.Second)
	}
	return r.limits[key], nil
}

// compile makes the test binary of a package, once.
func (r *runner) compile(pkg string) error {
	if r.binaries[pkg] != "" {
		return nil
	}
	binary := filepath.Join(r.folder, fmt.Sprintf("%d.test", len(r.binaries)))
	out, err := exec.Command("go", "test", "-c", "-vet=off", "-overlay", r.overlay, "-o", binary, pkg).CombinedOutput()
	if err != nil {
		return fmt.Errorf("cannot compile the tests of %s with the changes: %w\n%s", pkg, err, out)
	}
	r.binaries[pkg] = binary
	return nil
}

// runTests runs tests of a compiled package on a mutant until one fails; 0: on none. failed is its name, "time limit", or a
// line of the output if no test is named there; empty: all pass.
func (r *runner) runTests(pkg, run, skip string, number int, limit time.Duration) (failed, output string) {
	ctx, cancel := context.WithTimeout(context.Background(), limit+time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, r.binaries[pkg], "-test.failfast", "-test.timeout="+limit.String(), "-test.run="+run, "-test.skip="+skip)
	c.Dir, c.WaitDelay = pkg, 10*time.Second
	c.Env = append(os.Environ(), fmt.Sprintf("%s=%d", selector, number))
	out, err := c.CombinedOutput()
	if err == nil {
		return "", ""
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) || bytes.Contains(out, []byte("panic: test timed out")) {
		return "time limit", string(out)
	}
	return firstFailure(string(out)), string(out)
}

// firstFailure returns the name of the first test that failed in the output of a test binary; else its first line with a
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
