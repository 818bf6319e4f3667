// Package executable writes programs that a test runs.
package executable

import (
	"os"
	"syscall"
	"testing"
)

// Write writes an executable file, which can be run at once. No process is started while it writes:
// it would inherit the open file until it runs its own program, and the system refuses to run a
// file that is open for writing ("text file busy").
func Write(tb testing.TB, path string, content []byte) {
	tb.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, content, 0o755); err != nil {
		tb.Fatal(err)
	}
}
