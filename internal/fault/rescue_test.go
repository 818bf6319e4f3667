package fault_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/fault"
)

var errEnded = errors.New("ended on purpose")

// rescued runs f and returns the panic that went on, and what Rescue made of it.
func rescued(f func()) (passed any, failed error) {
	defer func() { passed = recover() }()
	func() {
		defer fault.Rescue(func(err error) { failed = err }, errEnded)
		f()
	}()
	return nil, failed
}

func TestRescue_PanicIsAnError(t *testing.T) {
	t.Parallel()
	passed, failed := rescued(func() { panic(fault.New(fault.NotFound, "dreadful cause")) })
	if passed != nil || failed == nil {
		t.Fatalf("failed with %v, and %v went on", failed, passed)
	}
	if text := failed.Error(); !strings.Contains(text, "dreadful cause") || !strings.Contains(text, "rescue_test.go") {
		t.Errorf("the cause or the stack is missing: %s", text)
	}
	if code := fault.CodeOf(failed); code != fault.Internal {
		t.Errorf("a panic's value became the answer: %s", code)
	}
}

func TestRescue_LeavesAlone(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		run  func()
		want any
	}{
		"no panic":         {func() {}, nil},
		"ended on purpose": {func() { panic(errEnded) }, errEnded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if passed, failed := rescued(row.run); failed != nil || passed != row.want {
				t.Errorf("failed with %v, and %v went on", failed, passed)
			}
		})
	}
}
