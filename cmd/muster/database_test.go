package main

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/database/firsttest"
	"github.com/musterhq/muster/internal/database/pgtest"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/surface/cli"
)

// stored is a database that the first version made, with the program on it.
type stored struct {
	processes
	old  firsttest.Fixture
	url  string
	path string // of the file; empty: it is on PostgreSQL
	keys string
}

// onEachEngine runs a test on such a database of each engine.
func onEachEngine(t *testing.T, test func(t *testing.T, s *stored)) {
	t.Helper()
	t.Parallel()
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			test(t, newStored(t, engine))
		})
	}
}

func newStored(t *testing.T, engine string) *stored {
	t.Helper()
	dir := t.TempDir()
	s := &stored{keys: filepath.Join(dir, "keys")}
	if engine == "sqlite" {
		s.path = filepath.Join(dir, "muster.db")
		s.url = "sqlite:" + s.path
	} else {
		s.url = pgtest.DSN(t)
	}
	s.old = firsttest.Load(t, s.url, false)
	s.old.Keys(t, s.keys)
	s.processes = processes{t: t, dir: dir, env: []string{"MUSTER_DATABASE=" + s.url, "MUSTER_KEY_FILE=" + s.keys}}
	return s
}

// untouched runs what must not change the database.
func (s *stored) untouched(title string, work func()) {
	s.t.Helper()
	look := func() (files []string, file []byte, rows string) {
		if s.path == "" {
			return nil, nil, firsttest.Digest(s.t, s.url)
		}
		files, err := filepath.Glob(s.path + "*")
		if err == nil {
			file, err = os.ReadFile(s.path)
		}
		if err != nil {
			s.t.Fatal(err)
		}
		return files, file, ""
	}
	files, file, rows := look()
	work()
	filesNow, fileNow, rowsNow := look()
	if rows != rowsNow || !bytes.Equal(file, fileNow) || strings.Join(files, " ") != strings.Join(filesNow, " ") {
		s.t.Errorf("%s: the database was changed; files %v, before %v", title, filesNow, files)
	}
}

// whole is the rows' checksum, whatever the file looks like.
func (s *stored) whole() string {
	s.t.Helper()
	return firsttest.Digest(s.t, s.url)
}

// answers asks a service for the number of assets.
func (s *stored) answers(address string) {
	s.t.Helper()
	servertest.Client{TB: s.t, URL: address, Key: s.old.Key}.Get("/assets/count").Want(s.t, http.StatusOK)
}

// Only migrate and serve change an older database; every other command refuses it
// and says what to do.
func TestMigrate_OlderDatabase(t *testing.T) {
	onEachEngine(t, func(t *testing.T, s *stored) {
		s.untouched("commands", func() {
			s.refused("older", []string{"made by an older Muster", "run `muster migrate` or start `muster serve`"}, "company", "list")
			s.refused("older", []string{"made by an older Muster"}, "company", "create", "--slug", "late")
		})
		stop := make(chan struct{})
		speaking := make(chan struct{})
		go func() {
			defer close(speaking)
			s.speak(stop)
		}()
		before := s.whole()
		s.refused("an older program serves", []string{"stop every older `muster serve`"}, "serve")
		s.refused("an older program serves", []string{"stop every older `muster serve`"}, "migrate")
		close(stop)
		<-speaking
		if s.whole() != before {
			t.Error("refused, and yet written")
		}
		firsttest.Exec(t, s.url, `DELETE FROM leases`)
		var done struct{ From, To, Corrected int64 }
		s.json(&done, "migrate")
		if done.From != 1 || done.To <= 1 || done.Corrected != 0 {
			t.Errorf("migrated: %+v", done)
		}
		if output := s.run("migrate"); !strings.Contains(output, "already") {
			t.Errorf("a second migration says %q", output)
		}
		if output := s.run("company", "list"); !strings.Contains(output, "acme") {
			t.Errorf("the companies are %q", output)
		}
	})
}

// speak is a replica of the first version, which says that it is present.
func (s *stored) speak(stop chan struct{}) {
	firsttest.Exec(s.t, s.url,
		`DELETE FROM leases; INSERT INTO leases (name, holder, expires_at) VALUES ('replica/r1', 'r1', 4000000000000)`)
	for {
		select {
		case <-stop:
			return
		case <-time.After(50 * time.Millisecond):
			firsttest.Exec(s.t, s.url, `UPDATE leases SET expires_at = expires_at + 1`)
		}
	}
}

// What does not belong to a service, or is not sound, is refused in one line, and
// nothing is written.
func TestServe_RefusesWhatItCannotServe(t *testing.T) {
	onEachEngine(t, func(t *testing.T, s *stored) {
		service := s.with("MUSTER_TRUSTED_PROXY=10.0.0.0/8").serve()
		s.answers(service.address)
		service.end()
		if !strings.Contains(service.log.String(), "MUSTER_TRUSTED_PROXY is not a setting of muster serve") {
			t.Errorf("a misspelled setting is not in the log\n%s", service.log)
		}
		foreign, missing := filepath.Join(s.dir, "foreign"), filepath.Join(s.dir, "missing")
		s.run("doctor", "--make-key-file", foreign)

		s.untouched("foreign keys", func() {
			s.with("MUSTER_KEY_FILE="+foreign).refused("foreign keys",
				[]string{foreign, "lacks keys that the database names", "restore the key file", "--accept-lost-keys"}, "serve")
		})
		before := s.whole()
		for _, args := range [][]string{{"key", "create", "--company", "acme", "--name", "k", "--preset", "read-only"},
			{"company", "stop", "--company", "acme", "--reason", "x"}, {"activity", "verify", "--company", "acme"},
			{"activity", "verify", "--company", "acme", "--key-file", foreign}} {
			s.with("MUSTER_KEY_FILE="+foreign).refused("foreign keys",
				[]string{foreign, "lacks keys that the database names", "set MUSTER_KEY_FILE"}, args...)
		}
		if s.whole() != before {
			t.Error("refused for its keys, and yet written")
		}
		s.untouched("lost keys", func() {
			s.with("MUSTER_KEY_FILE="+missing).refused("lost keys",
				[]string{missing, "does not exist", "restore the key file", "--accept-lost-keys"}, "serve")
			if _, err := os.Stat(missing); err == nil {
				t.Error("a key file was made for a database that needs another")
			}
		})
		firsttest.Exec(t, s.url, `UPDATE versions SET schema_number = schema_number + 1, lowest_writer = schema_number + 1`)
		s.checkpoint()
		s.untouched("downgrade", func() {
			for _, args := range [][]string{{"serve"}, {"migrate"}, {"company", "list"}, {"company", "create", "--slug", "late"}} {
				s.refused("downgrade", []string{"changed by a newer Muster", "use the newer program, or restore a backup"}, args...)
			}
		})
		if s.path == "" {
			return
		}
		firsttest.Exec(t, s.url, `UPDATE versions SET schema_number = schema_number - 1, lowest_writer = 1`)
		s.checkpoint()
		s.damaged()
	})
}

// checkpoint leaves a SQLite file without a log beside it.
func (s *stored) checkpoint() {
	s.t.Helper()
	if s.path != "" {
		firsttest.Exec(s.t, s.url, `PRAGMA wal_checkpoint(TRUNCATE)`)
	}
}

// damaged has the service refuse a file of which a part was overwritten, and one
// that is no database.
func (s *stored) damaged() {
	s.t.Helper()
	file, err := os.ReadFile(s.path)
	if err != nil {
		s.t.Fatal(err)
	}
	torn := bytes.Clone(file)
	copy(torn[len(torn)/2:], bytes.Repeat([]byte{0xff}, 16<<10))
	for title, content := range map[string][]byte{"damaged": torn, "no database": []byte(strings.Repeat("a letter. ", 1000)),
		"cut off": file[:len(file)/2]} {
		if err := os.WriteFile(s.path, content, 0o600); err != nil {
			s.t.Fatal(err)
		}
		s.untouched(title, func() {
			s.refused(title, []string{s.path, "damaged", "muster restore FILE"}, "serve")
		})
	}
}

// A service whose database a newer program changed under it ends with an error.
func TestServe_EndsWhenItIsOutdated(t *testing.T) {
	onEachEngine(t, func(t *testing.T, s *stored) {
		service := s.serve()
		s.answers(service.address)
		firsttest.Exec(t, s.url, `UPDATE versions SET schema_number = schema_number + 1, lowest_writer = schema_number + 1`)
		if code := service.wait(); code != cli.ExitFailed {
			t.Errorf("it ends with %d, want %d", code, cli.ExitFailed)
		}
		lines := strings.Split(strings.TrimSpace(service.log.String()), "\n")
		if last := lines[len(lines)-1]; !strings.HasPrefix(last, "muster: a newer Muster changed the database") ||
			!strings.HasSuffix(last, "start the newer program instead") {
			t.Errorf("its last line is %q", last)
		}
		if n := strings.Count(service.log.String(), "muster: "); n != 1 {
			t.Errorf("%d lines say why:\n%s", n, service.log)
		}
	})
}

// A large file is checked while the service runs, which ends if it is damaged.
func TestServe_ChecksALargeFileLater(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p, path := processes{t: t, dir: dir}, filepath.Join(dir, "muster.db")
	p.run("company", "create", "acme")
	firsttest.Exec(t, "sqlite:"+path, `PRAGMA synchronous=OFF;
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300) INSERT INTO operator_acts (name, at) SELECT i
			|| hex(zeroblob(262144)), 0 FROM n;
		PRAGMA wal_checkpoint(TRUNCATE)`) // each row is in the table and in its index
	p.serve().end()
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err == nil {
		_, err = file.WriteAt(bytes.Repeat([]byte{0xff}, 64<<10), 140<<20)
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	service := p.serve()
	if code := service.wait(); code != cli.ExitFailed || !strings.Contains(service.log.String(), "muster restore FILE") {
		t.Errorf("it ends with %d\n%s", code, service.log)
	}
}
