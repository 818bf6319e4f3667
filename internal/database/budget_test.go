package database_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestBudget_TenOfAHundredPass(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		one, two := e.open(t), e.open(t)
		var passed atomic.Int32
		var all sync.WaitGroup
		for n := range 100 {
			db := one
			if n%2 == 1 {
				db = two
			}
			all.Go(func() {
				used, spent, closes, err := db.Spend(t.Context(), "API_KEY:k", 10, time.Minute, e.clock.Now())
				if err != nil || !closes.Equal(e.clock.Now().Add(time.Minute)) || used < 1 || used > 10 {
					t.Errorf("Spend = %d, %v, %v", used, closes, err)
				}
				if spent {
					passed.Add(1)
				}
			})
		}
		all.Wait()
		if passed.Load() != 10 {
			t.Fatalf("%d passed, want 10", passed.Load())
		}
	})
}

func TestBudget_SurvivesARestart(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		for range 10 {
			db := e.open(t)
			if _, spent, _, err := db.Spend(t.Context(), "k", 10, time.Minute, e.clock.Now()); err != nil || !spent {
				t.Fatalf("Spend = %v, %v", spent, err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if used, spent, _, err := e.open(t).Spend(t.Context(), "k", 10, time.Minute, e.clock.Now()); err != nil || spent || used != 10 {
			t.Fatalf("Spend = %d, %v, %v, want the tenth to have been the last", used, spent, err)
		}
	})
}

// The store agrees with a fixed window that a person can read.
func TestBudget_IsAFixedWindow(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		db, round := e.open(t), 0
		rapid.Check(t, func(r *rapid.T) {
			round++
			type window struct {
				used   int
				closes time.Time
			}
			model := map[string]*window{}
			for range rapid.IntRange(1, 40).Draw(r, "calls") {
				e.clock.Advance(time.Duration(rapid.IntRange(0, 30_000).Draw(r, "pause")) * time.Millisecond)
				now, key := e.clock.Now(), fmt.Sprint(round, rapid.SampledFrom([]string{"a", "b"}).Draw(r, "key"))
				w := model[key]
				if w == nil || !now.Before(w.closes) {
					w = &window{0, now.Add(time.Minute)}
					model[key] = w
				}
				want := w.used < 3
				if want {
					w.used++
				}
				used, spent, closes, err := db.Spend(t.Context(), key, 3, time.Minute, now)
				if err != nil || used != w.used || spent != want || !closes.Equal(w.closes) {
					r.Fatalf("Spend = %d, %v, %v, %v, want %+v, %v", used, spent, closes, err, *w, want)
				}
			}
		})
	})
}
