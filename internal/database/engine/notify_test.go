package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/musterhq/muster/internal/database/engine"
)

// hintCollector collects the hints of a topic until a condition holds.
type hintCollector struct {
	mu    sync.Mutex
	ids   map[string]bool
	all   int
	woken chan struct{}
}

func listen(tb testing.TB, db *engine.DB, topic string) *hintCollector {
	h := &hintCollector{ids: map[string]bool{}, woken: make(chan struct{}, 1)}
	tb.Cleanup(db.Listen(topic, func(ids []string) {
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, id := range ids {
			h.ids[id] = true
		}
		if ids == nil {
			h.all++
		}
		select {
		case h.woken <- struct{}{}:
		default:
		}
	}))
	return h
}

// until waits for a condition on the hints that were received.
func (h *hintCollector) until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	limit, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		h.mu.Lock()
		done := condition()
		h.mu.Unlock()
		if done {
			return
		}
		select {
		case <-h.woken:
		case <-limit.Done():
			t.Fatalf("waited too long until %s", what)
		}
	}
}

func TestHints_ReachTheSameReplica(t *testing.T) {
	each(t, func(t *testing.T, e place) {
		db := e.open(t)
		h, other := listen(t, db, "agent"), listen(t, db, "other")
		db.Notify("agent", "a", "b")
		select {
		case <-h.woken:
		default:
			t.Fatal("Notify returned before its own replica was told")
		}
		h.until(t, "both ids came", func() bool { return h.ids["a"] && h.ids["b"] })
		other.until(t, "nothing came", func() bool { return len(other.ids) == 0 })
	})
}

func TestHints_ReachOtherReplicas(t *testing.T) {
	t.Parallel()
	e := onPostgres(t)
	one, two := e.open(t), e.open(t)
	mine, theirs := listen(t, one, "agent"), listen(t, two, "agent")
	theirs.until(t, "the replica listens", func() bool { return theirs.all == 1 })

	// More than one payload holds, from many goroutines.
	const many = 2000
	var all sync.WaitGroup
	for n := range many {
		all.Go(func() { one.Notify("agent", fmt.Sprintf("device-%026d", n)) })
	}
	all.Wait()
	theirs.until(t, "all hints came", func() bool { return len(theirs.ids) == many })
	if len(mine.ids) != many {
		t.Fatalf("the sender received %d, want %d", len(mine.ids), many)
	}
	one.Notify("agent")
	theirs.until(t, "a hint about everything came", func() bool { return theirs.all == 2 })
}

func TestHints_SurviveTheConnection(t *testing.T) {
	t.Parallel()
	e := onPostgres(t)
	one, two := e.open(t), e.open(t)
	h := listen(t, two, "agent")
	h.until(t, "the replica listens", func() bool { return h.all == 1 })

	c, err := pgx.Connect(t.Context(), e.url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(context.Background()) }()
	if _, err := c.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND query LIKE 'LISTEN%'`); err != nil {
		t.Fatal(err)
	}
	h.until(t, "it connects again and is told to look", func() bool { return h.all == 2 })
	one.Notify("agent", "a")
	h.until(t, "a hint came again", func() bool { return h.ids["a"] })
}

func TestHints_QuietConnectionIsChecked(t *testing.T) {
	t.Parallel()
	e := onPostgres(t)
	one, two := e.open(t), e.open(t)
	two.SetQuiet(time.Millisecond)
	h := listen(t, two, "agent")
	h.until(t, "the replica listens", func() bool { return h.all == 1 })
	for n := range 20 {
		one.Notify("agent", fmt.Sprint(n))
		h.until(t, "a hint came", func() bool { return h.ids[fmt.Sprint(n)] })
	}
	h.until(t, "the connection never broke", func() bool { return h.all == 1 })
}

func TestHints_EndWithTheListener(t *testing.T) {
	each(t, func(t *testing.T, e place) {
		db := e.open(t)
		var received []string
		stop := db.Listen("agent", func(ids []string) { received = append(received, ids...) })
		db.Notify("agent", "a")
		stop()
		db.Notify("agent", "b")
		if !slices.Equal(received, []string{"a"}) {
			t.Fatalf("received %s, want a only", strings.Join(received, ", "))
		}
	})
}
