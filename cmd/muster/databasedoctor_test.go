package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/database/firsttest"
	"github.com/musterhq/muster/internal/surface/cli"
)

// A file that another process has locked is no database to work on, and the
// doctor says which process it is.
func TestDoctor_LockedDatabase(t *testing.T) {
	t.Parallel()
	s := newStored(t, "sqlite")
	s.run("migrate")
	before := s.whole()
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Symlink(s.path, link); err != nil {
		t.Fatal(err)
	}
	linked := s.with("MUSTER_DATABASE=sqlite:"+link, "MUSTER_KEY_FILE="+s.keys)
	for _, lock := range []string{`BEGIN IMMEDIATE`, `PRAGMA journal_mode=DELETE; BEGIN EXCLUSIVE`} {
		release := firsttest.Hold(t, s.url, lock) // to read the file otherwise would end it
		found := s.doctor(lock)
		want := fmt.Sprintf("process %d has locked %s", os.Getpid(), s.path)
		if f := found["database"]; f.Status != "failed" || !strings.HasPrefix(f.Detail, want) ||
			!strings.HasPrefix(f.Remedy, "end that program") {
			t.Errorf("%s: the doctor says %+v, want %q", lock, f, want)
		}
		want = fmt.Sprintf("process %d has locked %s", os.Getpid(), link)
		if f := linked.doctor(lock + ", by a link")["database"]; !strings.HasPrefix(f.Detail, want) {
			t.Errorf("%s: by a link, the doctor says %+v, want %q", lock, f, want)
		}
		release()
	}
	if s.whole() != before {
		t.Error("the database is not what it was")
	}
	if f := s.doctor("not locked")["database"]; f.Status != "ok" {
		t.Errorf("not locked: the doctor says %+v", f)
	}
}

// What Muster did not make in the file runs inside its statements: the doctor names it, and
// a backup that brings it is not restored.
func TestDoctor_ForeignTrigger(t *testing.T) {
	t.Parallel()
	s := newStored(t, "sqlite")
	s.run("migrate")
	s.run("backup", "sound.db")
	if f := s.doctor("as it was made")["integrity"]; f.Status != "ok" {
		t.Fatalf("as it was made: the doctor says %+v", f)
	}
	firsttest.Exec(t, s.url, `CREATE TRIGGER helper AFTER INSERT ON sessions BEGIN UPDATE users SET rights = 1023; END`)
	s.run("backup", "changed.db")
	if f := s.doctor("with a trigger")["integrity"]; f.Status != "failed" || !strings.Contains(f.Detail, `trigger "helper"`) ||
		!strings.Contains(f.Remedy, "muster restore") {
		t.Errorf("with a trigger: the doctor says %+v", f)
	}
	s.refused("restore of the trigger", []string{"changed.db", `trigger "helper"`}, "restore", "changed.db")
	s.run("restore", "sound.db")
	if f := s.doctor("restored")["integrity"]; f.Status != "ok" {
		t.Errorf("restored: the doctor says %+v", f)
	}
}

type finding struct{ Check, Status, Detail, Remedy string }

// doctor is what the doctor finds, by check.
func (p processes) doctor(title string) map[string]finding {
	p.t.Helper()
	var answer struct {
		OK       bool
		Findings []finding
	}
	c := p.command("doctor", "-o", "json")
	c.Stderr = nil
	text, _ := c.Output() // it fails if anything is wrong
	if err := json.Unmarshal(text, &answer); err != nil {
		p.t.Fatalf("%s: the doctor says %q: %v", title, text, err)
	}
	found, failed := map[string]finding{}, false
	for _, f := range answer.Findings {
		found[f.Check] = f
		failed = failed || f.Status == "failed"
	}
	if code := c.ProcessState.ExitCode(); failed != (code == cli.ExitFailed) || failed == answer.OK {
		p.t.Errorf("%s: the doctor ends with %d and says %s", title, code, text)
	}
	return found
}
