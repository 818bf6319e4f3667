package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/database/firsttest"
	"github.com/musterhq/muster/internal/database/pgtest"
	"github.com/musterhq/muster/test/blocks"
	"github.com/musterhq/muster/test/needs"
)

// podman stands in for the container engine: it runs the programs of PostgreSQL, and notes all else.
const podman = `#!/bin/sh
case "$*" in
"compose exec -T postgres "*) shift 4; exec "$@" ;;
*) echo "$*" >>calls ;;
esac
`

// site is the directory of a compose file, whose database is one of this test.
type site struct {
	processes
	database *url.URL
}

func newSite(t *testing.T) *site {
	t.Helper()
	dir, dsn := t.TempDir(), pgtest.DSN(t)
	programs, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	if _, err := exec.LookPath("pg_dump"); err != nil && len(programs) == 0 {
		needs.PostgreSQL().Missing(t, err)
	}
	path := strings.Join(slices.Concat([]string{dir, os.Getenv("PATH")}, programs), string(filepath.ListSeparator))
	at, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	password, _ := at.User.Password()
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "podman"), []byte(podman), 0o700),
		os.Mkdir(filepath.Join(dir, "secrets"), 0o700)); err != nil {
		t.Fatal(err)
	}
	return &site{database: at, processes: processes{t: t, dir: dir, env: []string{"MUSTER_DATABASE=" + dsn, "MUSTER_KEY_FILE=secrets/keys",
		"PATH=" + path, "PGHOST=" + at.Hostname(), "PGPORT=" + at.Port(), "PGPASSWORD=" + password}}}
}

// does runs a block of the page.
func (s *site) does(block string) {
	s.t.Helper()
	if err := s.try(block); err != nil {
		s.t.Fatal(err)
	}
}

// try runs a block of the page up to the first line that fails.
func (s *site) try(block string) error {
	c := s.command()
	c.Path, c.Args = "/bin/sh", []string{"sh", "-euc", block}
	if output, err := c.Output(); err != nil {
		return fmt.Errorf("%w: %s: %s", err, block, output)
	}
	return nil
}

// calls are what was asked of the engine since the last time.
func (s *site) calls() string {
	s.t.Helper()
	file := filepath.Join(s.dir, "calls")
	text, err := os.ReadFile(file)
	if err == nil {
		err = os.Remove(file)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

// What was changed after a backup is gone when that is restored, and programs that read events are told. A backup that
// fails leaves no dump, and a dump that is cut off changes nothing.
func TestDocs_ComposeBackup(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	name, role := strings.TrimPrefix(s.database.Path, "/"), "-U "+s.database.User.Username()
	s.run("doctor", "--make-key-file", "secrets/keys")
	s.run("company", "create", "--slug", "acme")
	firsttest.Exec(t, s.database.String(), `INSERT INTO event_history (one, id) VALUES (1, 'before') ON CONFLICT DO NOTHING`)
	backup := func(database string) error {
		return s.try(blocks.Must(t, "../..", "docs/install.md", "compose-backup", "-U muster", role, "-Fc muster", "-Fc "+database,
			"/elsewhere/", "copy"))
	}
	if err := backup(name); err != nil {
		t.Fatal(err)
	}
	if backup(name+"_absent") == nil {
		t.Error("a backup that fails does not say so")
	}
	s.run("company", "create", "--slug", "late")
	dumps, err := filepath.Glob(filepath.Join(s.dir, "muster-*.dump"))
	if err != nil || len(dumps) != 1 {
		t.Fatalf("the backups are %v, %v", dumps, err)
	}
	restore := func(dump string) string {
		return blocks.Must(t, "../..", "docs/install.md", "compose-restore", "-U muster", role, "--force muster", "--force "+name,
			role+" muster", role+" "+name, "-d muster", "-d "+name, "muster-2026-11-22-093000.dump", dump)
	}
	if whole, err := os.ReadFile(dumps[0]); err != nil || os.WriteFile(filepath.Join(s.dir, "half"), whole[:len(whole)/2], 0o600) != nil {
		t.Fatal("cannot cut the dump off", err)
	}
	if err := s.try(restore("half")); err == nil || !strings.Contains(s.run("company", "list"), "late") {
		t.Errorf("a dump that is cut off: %v", err)
	}
	s.does(restore(filepath.Base(dumps[0])))
	if all := s.run("company", "list"); !strings.Contains(all, "acme") || strings.Contains(all, "late") {
		t.Errorf("the companies are %s", all)
	}
	if rows := pgtest.Dump(t, s.database.String())["event_history"]; len(rows) > 0 {
		t.Errorf("programs that read events are not told: %v", rows)
	}
	s.doctor("restored")
	if calls, want := s.calls(), "compose stop muster1 muster2\ncompose start muster1 muster2\n"; calls != want {
		t.Errorf("asked of the engine: %s, want %s", calls, want)
	}
}

// One replica after the other gets the new image, the second when the first is ready, also where .env names no image yet.
func TestDocs_ComposeUpgrade(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	settings, upgrade := filepath.Join(s.dir, ".env"), blocks.Must(t, "../..", "docs/install.md", "compose-upgrade",
		"NEW-VERSION", "1.1.0", "sleep 5", "sleep 0")
	for _, before := range []string{"MUSTER_HOST=muster.example.com\n",
		"MUSTER_IMAGE=localhost/muster:1.0.0\nMUSTER_HOST=muster.example.com\n"} {
		if err := os.WriteFile(settings, []byte(before), 0o600); err != nil {
			t.Fatal(err)
		}
		s.does(upgrade)
		text, err := os.ReadFile(settings)
		if want := "MUSTER_HOST=muster.example.com\nMUSTER_IMAGE=localhost/muster:1.1.0\n"; err != nil || string(text) != want {
			t.Errorf("the settings are %s, %v, want %s", text, err, want)
		}
		want := "load -i muster-1.1.0-image.tar\n"
		for _, name := range []string{"muster1", "muster2"} {
			want += "compose up -d --no-deps " + name + "\ncompose exec -T caddy wget -qO /dev/null http://" + name + ":8080/readyz\n"
		}
		if calls := s.calls(); calls != want {
			t.Errorf("asked of the engine: %s, want %s", calls, want)
		}
	}
}
