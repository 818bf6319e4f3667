package engine_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/database/engine"
	"github.com/musterhq/muster/internal/database/pgtest"
)

func TestOpen_TwiceAtOnce(t *testing.T) {
	each(t, func(t *testing.T, e place) {
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

// A change of the tables is logged once it is committed.
func TestOpen_ChangeThatIsNotCommitted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var log bytes.Buffer
	db, err := engine.Open(ctx, engine.Options{URL: "sqlite:" + t.TempDir() + "/muster.db", Now: now,
		Logger: slog.New(slog.NewTextHandler(&log, nil)), Changed: func(context.Context, engine.Tx) error {
			cancel()
			return nil
		}})
	if err == nil {
		_ = db.Close()
	}
	if err == nil || strings.Contains(log.String(), "database changed") {
		t.Errorf("error = %v, and logged is\n%s", err, log.String())
	}
}

func TestOpen_Refuses(t *testing.T) {
	t.Parallel()
	const wrong = "postgres://user:secret@127.0.0.1:1/x?sslmode="
	for url, says := range map[string]string{"": "", "sqlite:": "", "mysql://x": "", "muster.db": "", wrong: "connection refused",
		"postgres://user:secret@%zz": "not a valid postgres:// URL", wrong + "sure&password=secret": "sslmode is invalid",
		wrong + "require&sslrootcert=/none": "/none"} {
		db, err := engine.Open(t.Context(), engine.Options{URL: url, Now: now})
		if err == nil {
			_ = db.Close()
			t.Errorf("Open(%q) = nil, want an error", url)
			continue
		}
		if strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), says) {
			t.Errorf("Open(%q) = %q, want %q without the password", url, err, says)
		}
	}
}

// A server that accepts a connection and says nothing is not waited for without end.
func TestOpen_ConnectTimeout(t *testing.T) {
	for url, want := range map[string]time.Duration{
		"postgres://m:p@db/muster":                     10 * time.Second,
		"postgres://m:p@db1,db2/m?connect_timeout=120": 2 * time.Minute,
	} {
		if got, err := engine.ConnectTimeout(url); err != nil || got != want {
			t.Errorf("%s: %v, %v; want %v", url, got, err, want)
		}
	}
}
