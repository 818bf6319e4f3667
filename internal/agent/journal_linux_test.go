package agent_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/musterhq/muster/test/needs"
)

// A full disk stops a write in the middle of a line. What is written once there is
// room again must not follow that half.
func TestJournal_FullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		needs.Mount().Missing(t, err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	path := filepath.Join(dir, "journal")
	j := openJournal(t, path)
	if err := j.Write(done("before")); err != nil { // it begins a page, which the rest fills
		t.Fatal(err)
	}
	filler := filepath.Join(dir, "filler")
	fill(t, filler)
	kept := []string{"before"}
	failed := 0
	for i := range 100 {
		id := "full-" + string(rune('a'+i%26)) + string(rune('a'+i/26))
		if err := j.Write(done(id)); err != nil {
			failed++
			continue
		}
		kept = append(kept, id)
	}
	if failed == 0 {
		t.Fatal("the disk never became full")
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if err := j.Write(done("after")); err != nil {
		t.Fatal(err)
	}
	again := openJournal(t, path)
	for _, id := range append(kept, "after") {
		if _, known := again.Entry(id); !known {
			t.Errorf("command %s was written and is lost", id)
		}
	}
	if again.Skipped() != 0 {
		t.Errorf("%d lines are damaged", again.Skipped())
	}
}

// fill leaves no room but that of the pages which are begun.
func fill(t *testing.T, path string) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for err == nil {
		_, err = file.Write(make([]byte, 4096))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
}
