package shell

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// The limits of one tool.
const (
	toolTime  = 30 * time.Second
	toolBytes = 2 << 20
)

// Exec starts the real tools. It implements Runner.
type Exec struct {
	Dirs string        // where tools are looked for, in order, separated by ":"
	Time time.Duration // the limit of one tool; 0: 30 seconds
}

// AndroidDirs is where Android keeps its tools below root, for Exec.
func AndroidDirs(root string) string {
	return filepath.Join(root, "system/bin") + ":" + filepath.Join(root, "system/xbin") + ":" + filepath.Join(root, "vendor/bin")
}

// Run implements Runner: it starts the program itself, with these arguments. The error
// of one that was ended is also that of the context, or context.DeadlineExceeded.
func (e Exec) Run(ctx context.Context, tool string, args ...string) (string, error) {
	path, err := e.look(tool)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(e.Time, toolTime))
	defer cancel()
	var out, complaint limited
	command := exec.CommandContext(ctx, path, args...)
	command.Env, command.Dir = []string{"PATH=" + e.Dirs, "ANDROID_ROOT=/system", "ANDROID_DATA=/data"}, "/"
	command.Stdout, command.Stderr, command.WaitDelay = &out, &complaint, time.Second
	err = command.Run()
	if ended, ok := errors.AsType[*exec.ExitError](err); ok && ctx.Err() == nil {
		return out.String(), &ToolError{Tool: tool, Code: ended.ExitCode(), Text: oneLine(complaint.String() + " " + out.String())}
	}
	if err != nil {
		return "", fmt.Errorf("cannot run %s: %w", tool, errors.Join(ctx.Err(), err))
	}
	return out.String(), nil
}

// look finds a tool by its bare name.
func (e Exec) look(tool string) (string, error) {
	if strings.ContainsRune(tool, '/') {
		return "", fmt.Errorf("%q is not the bare name of a tool", tool)
	}
	for dir := range strings.SplitSeq(e.Dirs, ":") {
		if path, err := exec.LookPath(dir + "/" + tool); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("this device has no %s: is this Android?", tool)
}

// limited keeps the beginning of what is written to it. The buffer is not
// embedded: copying would find its ReadFrom, which has no limit.
type limited struct{ kept bytes.Buffer }

// String is what was kept.
func (l *limited) String() string { return l.kept.String() }

// Write implements io.Writer; what is too much is dropped.
func (l *limited) Write(p []byte) (int, error) {
	if room := toolBytes - l.kept.Len(); room > 0 {
		l.kept.Write(p[:min(len(p), room)])
	}
	return len(p), nil
}
