package database_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/database"
)

// A program that is killed while it copies the log into the file leaves a file that is smaller
// than its header says. With its log it is whole: it is opened, and not called damaged.
func TestOpen_KilledWhileTheLogIsCopied(t *testing.T) {
	t.Parallel()
	const page = 4096
	path := filepath.Join(t.TempDir(), "m.db")
	db, err := database.Open(t.Context(), database.Options{URL: "sqlite:" + path, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	raw, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	raw.SetMaxOpenConns(1)
	run := func(statement string) {
		t.Helper()
		if _, err := raw.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	file := func(name string) []byte {
		t.Helper()
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	run(`PRAGMA wal_autocheckpoint=0`)
	run(`INSERT INTO operator_acts (name, at) VALUES (hex(randomblob(1000000)), 1)`)
	before, log := file(path), file(path+"-wal")
	run(`PRAGMA wal_checkpoint(TRUNCATE)`)
	after := file(path)
	if len(after) <= len(before) {
		t.Fatalf("the file did not grow: %d and %d bytes", len(before), len(after))
	}
	if err := raw.Close(); err != nil {
		t.Fatal(err)
	}

	killed := filepath.Join(t.TempDir(), "m.db")
	for name, content := range map[string][]byte{killed: append(after[:page:page], before[page:]...), killed + "-wal": log} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := database.Inspect(t.Context(), "sqlite:"+killed); err != nil {
		t.Errorf("looked at: %v", err)
	}
	db, err = database.Open(t.Context(), database.Options{URL: "sqlite:" + killed, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if got := len(file(killed)); got != len(after) {
		t.Errorf("the file has %d bytes, want %d", got, len(after))
	}
}
