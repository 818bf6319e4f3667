package main

import (
	"testing"

	"github.com/musterhq/muster/internal/agent/simulated"
)

// The push service that enroll was given is the one that run listens to.
func TestPush_IsRemembered(t *testing.T) {
	t.Parallel()
	c := common{State: t.TempDir(), Driver: "simulated"}
	listensTo := func(given, want string) {
		t.Helper()
		c.Push = given
		_, push, err := c.device()
		got, _ := push.(simulated.Push)
		if err != nil || got.Emulator != want || (push == nil) != (want == "") {
			t.Errorf("--push=%q: listens to %+v, want %q, error %v", given, push, want, err)
		}
	}
	listensTo("", "")
	listensTo("http://127.0.0.1:1", "http://127.0.0.1:1")
	listensTo("", "http://127.0.0.1:1")
	listensTo("http://127.0.0.1:2", "http://127.0.0.1:2")
	listensTo("", "http://127.0.0.1:2")
}
