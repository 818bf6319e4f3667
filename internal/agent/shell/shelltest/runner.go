package shelltest

import (
	"bytes"
	"context"
	"strings"

	"github.com/musterhq/muster/internal/agent/shell"
)

// Runner plays the tools in the caller's own process.
type Runner struct{ *Machine }

// Run implements shell.Runner.
func (r Runner) Run(_ context.Context, tool string, args ...string) (string, error) {
	var out, errOut bytes.Buffer
	if code := r.Machine.Run(tool, args, &out, &errOut); code != 0 {
		return out.String(), &shell.ToolError{Tool: tool, Code: code, Text: strings.TrimSpace(errOut.String())}
	}
	return out.String(), nil
}
