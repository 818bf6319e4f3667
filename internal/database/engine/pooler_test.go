package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/musterhq/muster/internal/database/engine"
	"github.com/musterhq/muster/internal/database/pgtest"
)

// busy keeps clients working through a pooler until the test ends.
func busy(t *testing.T, url string, clients int) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range clients {
		c, err := pgx.Connect(ctx, url)
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			for ctx.Err() == nil {
				_ = c.PgConn().Exec(ctx, "SELECT pg_sleep(0.002)").Close()
			}
			_ = c.Close(context.WithoutCancel(ctx))
		})
	}
	t.Cleanup(func() { stop(); all.Wait() })
}

// poolers are the modes that take a server away from its connection. From
// version 1.21 PgBouncer can prepare statements itself, so that they do not fail.
func poolers(t *testing.T, test func(t *testing.T, url string)) {
	t.Parallel()
	prepares := []string{""}
	if pgtest.BouncerPrepares(t) {
		prepares = []string{"max_prepared_statements = 0", "max_prepared_statements = 100"}
	}
	for _, mode := range []string{"transaction", "statement"} {
		for _, prepared := range prepares {
			t.Run(strings.TrimSpace(mode+" "+prepared), func(t *testing.T) {
				t.Parallel()
				test(t, pgtest.Bouncer(t, pgtest.DSN(t), "pool_mode = "+mode, "default_pool_size = 40", "max_client_conn = 400", prepared))
			})
		}
	}
}

// Every start is refused, whatever other clients do with the pooler's servers.
func TestOpen_PoolerThatKeepsNoSession(t *testing.T) {
	poolers(t, func(t *testing.T, url string) {
		start := func() {
			t.Helper()
			db, err := engine.Open(t.Context(), engine.Options{URL: url, Now: now, Schema: engine.Upgrade})
			if err == nil {
				err = errors.Join(errors.New("it was opened"), db.Close())
			}
			if !errors.Is(err, engine.ErrPooler) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("error = %v, want one line that names the mode", err)
			}
		}
		start()
		busy(t, url, 12)
		for range 50 {
			start()
		}
	})
}

// Without another process to be seen, the notification that does not arrive is
// the proof: alone, and beside others.
func TestHears_PoolerThatKeepsNoSession(t *testing.T) {
	poolers(t, func(t *testing.T, url string) {
		for _, clients := range []int{0, 12} {
			busy(t, url, clients)
			if err := engine.Hears(t.Context(), url, time.Second); !errors.Is(err, engine.ErrPooler) {
				t.Errorf("beside %d clients: %v, want a refusal", clients, err)
			}
		}
	})
}

// In session mode everything works: the database opens, writes, and hears what
// another replica says.
func TestOpen_PoolerInSessionMode(t *testing.T) {
	t.Parallel()
	e := onPostgres(t)
	e.url = pgtest.Bouncer(t, e.url, "pool_mode = session", "default_pool_size = 100", "max_client_conn = 400")
	busy(t, e.url, 4)
	for range 5 {
		if err := engine.Hears(t.Context(), e.url, time.Minute); err != nil {
			t.Fatalf("a notification between sessions: %v", err)
		}
	}
	one, other := e.open(t), e.open(t)
	h := listen(t, other, "agent")
	h.until(t, "the replica listens", func() bool { return h.all == 1 })
	if err := write(t.Context(), one, nil, fmt.Sprintf(addLease, "a")); err != nil {
		t.Fatal(err)
	}
	if got := leases(t, other); got != 1 {
		t.Fatalf("the other replica reads %d rows, want 1", got)
	}
	one.Notify("agent", "a")
	h.until(t, "a hint came", func() bool { return h.ids["a"] })
}
