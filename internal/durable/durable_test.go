package durable_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/musterhq/muster/internal/durable"
)

func TestWrite_ReplacesWholeOrNot(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "state.json")
	for _, text := range []string{"first", "the second"} {
		if err := durable.Write(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != text {
			t.Errorf("it holds %q, want %q; %v", got, text, err)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v, want 0600; %v", info.Mode(), err)
	}
	if err := durable.Write(dir, []byte("x")); err == nil {
		t.Error("a directory was replaced by a file")
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("%d files are left, want 1; %v", len(left), err)
	}
}
