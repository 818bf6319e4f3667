package main

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/database/firsttest"
	"github.com/musterhq/muster/internal/database/pgtest"
)

type copied struct {
	Rows   int64
	Tables []struct {
		Name, Checksum string
		Rows           int64
	}
}

// A database goes to the other engine and back, and stays what it was.
func TestCopy_ThereAndBack(t *testing.T) {
	t.Parallel()
	s := newStored(t, "sqlite")
	post, back := pgtest.DSN(t), "sqlite:"+filepath.Join(s.dir, "back.db")
	s.refused("an older source", []string{"the source: ", "made by an older Muster"}, "copy", "--from", s.url, "--to", post)
	service := s.serve() // upgrades it
	s.refused("a source that is served", []string{"a service works on the source", "stop it"}, "copy", "--from", s.url, "--to", post)
	service.end()

	var there, again copied
	s.json(&there, "copy", "--from", s.url, "--to", post)
	var users int64
	for _, table := range there.Tables {
		if table.Name == "users" {
			users = table.Rows
		}
		if len(table.Checksum) != 64 {
			t.Errorf("the checksum of %s is %q", table.Name, table.Checksum)
		}
	}
	if there.Rows < 50 || users != 1 {
		t.Errorf("%d rows and %d users were copied", there.Rows, users)
	}
	full := firsttest.Digest(t, post)
	s.refused("a target that is not empty", []string{"the target is not empty", "name an empty database"}, "copy", "--from",
		s.url, "--to", post)
	s.refused("one engine", []string{"of one engine", "muster backup"}, "copy", "--from", s.url, "--to", back)
	if firsttest.Digest(t, post) != full {
		t.Error("refused, and yet written")
	}
	output := s.run("copy", "--from", post, "--to", back)
	if !strings.Contains(output, "counts and checksums are the same on both sides") || !strings.Contains(output, "users") {
		t.Errorf("it prints %q", output)
	}
	other := pgtest.DSN(t)
	u, err := url.Parse(other)
	if err != nil {
		t.Fatal(err)
	}
	password, _ := u.User.Password()
	u.User = url.User(u.User.Username())
	s.with("PGPASSWORD="+password).json(&again, "copy", "--from", back, "--to", u.String())
	if len(again.Tables) != len(there.Tables) || again.Rows != there.Rows {
		t.Fatalf("%+v came back, want %+v", again, there)
	}
	for i, table := range again.Tables {
		if table != there.Tables[i] {
			t.Errorf("%+v came back, want %+v", table, there.Tables[i])
		}
	}
	service = s.with("MUSTER_DATABASE=" + other).serve()
	s.answers(service.address)
	service.end()
}

// A backup takes the database's place by restore alone.
func TestRestore_AfterACrash(t *testing.T) {
	t.Parallel()
	s := newStored(t, "sqlite")
	s.run("migrate")
	backup := filepath.Join(s.dir, "backup.db")
	s.run("backup", backup)
	service := s.serve()
	s.run("company", "create", "--slug", "late")
	s.untouched("served", func() {
		s.refused("served", []string{"the database is in use", "stop `muster serve`"}, "restore", backup)
	})
	service.kill()
	if info, err := os.Stat(s.path + "-wal"); err != nil || info.Size() == 0 {
		t.Fatalf("the crash left no log: %v", err)
	}

	content, err := os.ReadFile(backup)
	if err != nil {
		t.Fatal(err)
	}
	latest, err := os.ReadFile(s.path)
	if err == nil {
		err = os.WriteFile(s.path, content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.untouched("a backup beside a log", func() {
		for _, args := range [][]string{{"serve"}, {"migrate"}, {"company", "list"}} {
			s.refused("a backup beside a log", []string{"it is a backup", "muster restore FILE"}, args...)
		}
	})
	if err := os.WriteFile(s.path, latest, 0o600); err != nil {
		t.Fatal(err)
	}

	foreign, torn := filepath.Join(s.dir, "foreign"), filepath.Join(s.dir, "torn.db")
	s.run("doctor", "--make-key-file", foreign)
	if err := os.WriteFile(torn, content[:len(content)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	s.with("MUSTER_KEY_FILE="+foreign).refused("foreign keys", []string{foreign, "restore the key file"}, "restore", backup)
	s.refused("damaged", []string{torn, "damaged", "use another one"}, "restore", torn)
	s.refused("missing", []string{"nowhere.db"}, "restore", "nowhere.db")
	if output := s.run("company", "list"); !strings.Contains(output, "late") {
		t.Errorf("after refusals the companies are %q", output)
	}

	var done struct{ Path, Aside string }
	s.json(&done, "restore", backup)
	if output := s.run("company", "list"); !strings.Contains(output, "acme") || strings.Contains(output, "late") {
		t.Errorf("after the restore the companies are %q", output)
	}
	if output := s.run("company", "list", "--database", "sqlite:"+done.Aside); !strings.Contains(output, "late") {
		t.Errorf("the database kept aside as %s has %q", done.Aside, output)
	}
	service = s.serve()
	s.answers(service.address)
	service.end()
}
