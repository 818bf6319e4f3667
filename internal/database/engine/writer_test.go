package engine_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/musterhq/muster/internal/database/engine"
	"github.com/musterhq/muster/internal/database/firsttest"
)

const (
	addLease   = `INSERT INTO leases (name, holder, expires_at) VALUES ('%s', 'h', 1)`
	breakLease = `INSERT INTO leases (name, holder, expires_at) VALUES (NULL, 'h', 1)`
)

func leases(t *testing.T, db *engine.DB) int64 {
	t.Helper()
	n, err := engine.Value[int64](t.Context(), db.Read(), `SELECT COUNT(*) FROM leases`)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestWrite_FailureLeavesNothing(t *testing.T) {
	each(t, func(t *testing.T, e place) {
		db, wrong := e.open(t), errors.New("on purpose")
		if err := write(t.Context(), db, wrong, fmt.Sprintf(addLease, "a")); !errors.Is(err, wrong) {
			t.Fatalf("Write = %v, want its own error", err)
		}
		if err := write(t.Context(), db, nil, fmt.Sprintf(addLease, "b"), breakLease); err == nil {
			t.Fatal("a broken statement did not fail its transaction")
		}
		if got := leases(t, db); got != 0 {
			t.Fatalf("%d rows stayed", got)
		}
	})
}

// One caller's failure is its own, although callers share commits.
func TestWrite_FailuresDoNotSpread(t *testing.T) {
	each(t, func(t *testing.T, e place) {
		db, wrong := e.open(t), errors.New("on purpose")
		var all sync.WaitGroup
		for n := range 90 {
			all.Go(func() {
				statement := fmt.Sprintf(addLease, fmt.Sprint("lease", n))
				switch n % 3 {
				case 0:
					if err := write(t.Context(), db, nil, statement); err != nil {
						t.Errorf("an innocent failed: %v", err)
					}
				case 1:
					if err := write(t.Context(), db, wrong, statement); !errors.Is(err, wrong) {
						t.Errorf("Write = %v, want its own error", err)
					}
				case 2:
					if err := write(t.Context(), db, nil, statement, breakLease); err == nil {
						t.Error("a broken statement did not fail its transaction")
					}
				}
			})
		}
		all.Wait()
		if got := leases(t, db); got != 30 {
			t.Fatalf("%d rows, want 30", got)
		}
	})
}

// asked counts how often it is asked whether its caller waits.
type asked struct {
	context.Context
	times chan struct{}
}

func (a asked) Err() error {
	select {
	case a.times <- struct{}{}:
	default:
	}
	return a.Context.Err()
}

// While another process writes, a write waits for longer than SQLite does, but not without end.
func TestWrite_WaitsForAnotherProcess(t *testing.T) {
	t.Parallel()
	p := place{"sqlite", "sqlite:" + filepath.Join(t.TempDir(), "m.db")}
	db := p.open(t)
	if err := write(t.Context(), db, nil, `PRAGMA busy_timeout=100`); err != nil {
		t.Fatal(err)
	}
	release := firsttest.Hold(t, p.url, "BEGIN IMMEDIATE")
	if err := write(t.Context(), db, nil, fmt.Sprintf(addLease, "a")); err == nil ||
		!strings.Contains(err.Error(), "another program has locked the file") {
		t.Errorf("error = %v, want that another program has locked the file", err)
	}
	ctx, done := asked{engine.Long(t.Context()), make(chan struct{})}, make(chan error)
	go func() { done <- write(ctx, db, nil, fmt.Sprintf(addLease, "b")) }()
	for range 5 {
		<-ctx.times
	}
	release()
	if err := <-done; err != nil || leases(t, db) != 1 {
		t.Errorf("error = %v, %d rows, want the second", err, leases(t, db))
	}
}

func TestWrite_PanicReachesOnlyItsCaller(t *testing.T) {
	each(t, func(t *testing.T, e place) {
		db := e.open(t)
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the caller did not panic")
				}
			}()
			_ = db.Write(t.Context(), func(ctx context.Context, tx engine.Tx) error {
				if err := tx.Exec(ctx, fmt.Sprintf(addLease, "a")); err != nil {
					return err
				}
				panic("on purpose")
			}, false)
		}()
		if err := write(t.Context(), db, nil, fmt.Sprintf(addLease, "b")); err != nil {
			t.Fatal(err)
		}
		if got := leases(t, db); got != 1 {
			t.Fatalf("%d rows, want the second caller's only", got)
		}
	})
}

func TestWrite_NestedIsRefused(t *testing.T) {
	each(t, func(t *testing.T, e place) {
		db := e.open(t)
		inside := func(ctx context.Context, _ engine.Tx) error { return write(ctx, db, nil) }
		if err := db.Write(t.Context(), inside, false); err == nil {
			t.Fatal("want an error instead of a deadlock")
		}
	})
}

func TestWrite_CanceledCallerWritesNothing(t *testing.T) {
	each(t, func(t *testing.T, e place) {
		db := e.open(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := write(ctx, db, nil, fmt.Sprintf(addLease, "a")); !errors.Is(err, context.Canceled) {
			t.Fatalf("Write = %v, want context.Canceled", err)
		}
		if got := leases(t, db); got != 0 {
			t.Fatalf("%d rows stayed", got)
		}
	})
}

func TestClose_WaitsForWrites(t *testing.T) {
	each(t, func(t *testing.T, e place) {
		db := e.open(t)
		var all sync.WaitGroup
		written := make([]bool, 50)
		for n := range written {
			all.Go(func() { written[n] = write(t.Context(), db, nil, fmt.Sprintf(addLease, fmt.Sprint("lease", n))) == nil })
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
		all.Wait()
		want := int64(0)
		for _, ok := range written {
			if ok {
				want++
			}
		}
		if got := leases(t, e.open(t)); got != want {
			t.Fatalf("%d rows, want the %d that were acknowledged", got, want)
		}
		if err := write(t.Context(), db, nil, fmt.Sprintf(addLease, "late")); err == nil {
			t.Fatal("a closed database was written to")
		}
	})
}
