package shell_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agent/shell"
)

// A tool that never stops talking does not fill the device's memory.
func TestRun_OutputIsBounded(t *testing.T) {
	t.Parallel()
	text, err := shell.Exec{Dirs: "/usr/bin:/bin"}.Run(t.Context(), "head", "-c", "3000000", "/dev/zero")
	if err != nil || len(text) != 2<<20 {
		t.Errorf("%d bytes were kept, %v", len(text), err)
	}
}

// The error of a tool that did not end in time says so.
func TestRun_TimeIsOver(t *testing.T) {
	t.Parallel()
	_, err := shell.Exec{Dirs: "/usr/bin:/bin", Time: 10 * time.Millisecond}.Run(t.Context(), "sleep", "60")
	if _, ended := errors.AsType[*shell.ToolError](err); ended || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the tool ended with %v, want %v", err, context.DeadlineExceeded)
	}
}
