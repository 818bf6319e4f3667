package database_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/database/pgtest"
)

func TestOpen_TwiceAtOnce(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		if e.name == "postgres" {
			e.url = pgtest.DSN(t) // empty
		}
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				db := e.open(t)
				if err := db.Ping(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	})
}

func TestOpen_Refuses(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"", "sqlite:", "mysql://x", "muster.db", "postgres://user:secret@127.0.0.1:1/x", "postgres://user:secret@%zz"} {
		db, err := database.Open(t.Context(), database.Options{URL: url, Now: newClock().Now})
		if err == nil {
			_ = db.Close()
			t.Errorf("Open(%q) = nil, want an error", url)
			continue
		}
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("Open(%q): the password is in %q", url, err)
		}
	}
}
