package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/database/pgtest"
)

// What sets up PostgreSQL is recorded with proofs, or not done.
func TestCompanyCreate_EmptyPostgresNeedsTheKeyFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	keys := filepath.Join(dir, "muster.keys")
	p := processes{t: t, dir: dir, env: []string{"MUSTER_DATABASE=" + pgtest.DSN(t)}}
	create := []string{"company", "create", "--slug", "acme"}
	remedy := []string{"muster doctor --make-key-file FILE", "set MUSTER_KEY_FILE"}
	p.refused("no key file", remedy, create...)
	with := p.with("MUSTER_KEY_FILE=" + keys)
	with.refused("a key file that is missing", append(remedy, keys), create...)
	p.refused("nothing was set up", []string{"the database is empty"}, "company", "list")
	with.run("doctor", "--make-key-file", keys)
	with.run(create...)
	if says := with.run("activity", "verify", "--company", "acme"); strings.Contains(says, "no proof") {
		t.Errorf("the log of the company: %s", says)
	}
	p.run("company", "create", "--slug", "beta") // it warns
}
