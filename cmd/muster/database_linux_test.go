package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/musterhq/muster/test/needs"
)

// On a full disk the doctor and every program say so, and what was stored is not lost.
func TestDoctor_FullDisk(t *testing.T) {
	t.Parallel()
	s := newStored(t, "sqlite")
	s.run("migrate")
	before := s.whole()
	small := t.TempDir()
	if err := syscall.Mount("tmpfs", small, "tmpfs", 0, "size=4m"); err != nil {
		needs.Mount().Missing(t, err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(small, syscall.MNT_DETACH) })
	content, err := os.ReadFile(s.path)
	if err == nil {
		s.path = filepath.Join(small, "muster.db")
		s.url = "sqlite:" + s.path
		s.processes = s.with("MUSTER_DATABASE="+s.url, "MUSTER_KEY_FILE="+s.keys)
		err = os.WriteFile(s.path, content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	filler, err := os.Create(filepath.Join(small, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = filler.Write(make([]byte, 4096))
	}
	if err := filler.Close(); err != nil {
		t.Fatal(err)
	}
	if f := s.doctor("full")["disk"]; f.Status != "failed" || !strings.HasPrefix(f.Detail, "0 MiB are free for "+s.path) ||
		!strings.HasPrefix(f.Remedy, "make room") {
		t.Errorf("the doctor says %+v", f)
	}
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Symlink(s.path, link); err != nil {
		t.Fatal(err)
	}
	linked := s.with("MUSTER_DATABASE=sqlite:"+link, "MUSTER_KEY_FILE="+s.keys)
	if f := linked.doctor("full, by a link")["disk"]; f.Status != "failed" || !strings.HasPrefix(f.Detail, "0 MiB are free for "+link) {
		t.Errorf("by a link, the doctor says %+v", f)
	}
	for _, args := range [][]string{{"serve"}, {"migrate"}, {"company", "create", "--slug", "late"}} {
		s.refused("full", []string{s.path, "the disk is full or failing: make room"}, args...)
	}
	if err := os.Remove(filler.Name()); err != nil {
		t.Fatal(err)
	}
	if after := s.whole(); after != before {
		t.Error("the database is not what it was")
	}
	if f := s.doctor("room")["integrity"]; f.Status != "ok" {
		t.Errorf("with room again the doctor says %+v", f)
	}
}
