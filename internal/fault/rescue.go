package fault

import (
	"fmt"
	"runtime/debug"
	"slices"
)

// Rescue, when it is deferred, hands a panic to fail as an unexpected error with the
// stack. A panic with one of the errors in passing goes on: it is no failure, but the
// way to end something early.
//
// It is deferred where a failure becomes an answer: in the kernel, which REST, MCP and
// the portal share, and around what these do beside the kernel. There is one more
// recover on the way of a command: where the command is sent, because only there it is
// known that its effect is not.
func Rescue(fail func(error), passing ...error) {
	cause := recover()
	if cause == nil {
		return
	}
	if err, ok := cause.(error); ok && slices.Contains(passing, err) {
		panic(cause)
	}
	fail(fmt.Errorf("panic: %v\n%s", cause, debug.Stack()))
}
