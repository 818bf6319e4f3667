package agent_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/musterhq/muster/internal/agent"
)

// A write that fails is made again in the place of the reserve, which is made
// again once there is room.
func TestReserve(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	full := errors.New("no space left on device")
	tries := 0
	write := func() error {
		tries++
		if _, err := os.Lstat(filepath.Join(dir, "reserve")); err == nil {
			return full
		}
		return nil
	}
	agent.KeepReserve(dir)
	if err := agent.WithReserve(dir, write); err != nil || tries != 2 {
		t.Errorf("after %d tries: %v", tries, err)
	}
	agent.KeepReserve(dir)
	if info, err := os.Lstat(filepath.Join(dir, "reserve")); err != nil || info.Size() < 4096 || info.Mode().Perm() != 0o600 {
		t.Errorf("the reserve is %+v, %v", info, err)
	}
	if err := os.Remove(filepath.Join(dir, "reserve")); err != nil {
		t.Fatal(err)
	}
	if err := agent.WithReserve(dir, func() error { return full }); !errors.Is(err, full) {
		t.Errorf("without a reserve: %v", err)
	}
}
