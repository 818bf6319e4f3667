package shell_test

import (
	"testing"

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
