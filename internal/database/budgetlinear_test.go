package database_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/database/dbtest"
)

// spending is one attempt at a time, with what came of it. lost: the caller
// was gone before he heard; it may have counted or not.
type spending struct {
	key string
	at  int64 // milliseconds
}

type spent struct {
	lost, within bool
	used         int
	closes       int64
}

// budgetState is the budget as one sequence of attempts makes it.
type budgetState struct {
	used   int
	closes int64
}

const (
	room  = 10
	width = 120 // milliseconds
)

// spend returns the window after an attempt, and its answer.
func (w budgetState) spend(at int64) (budgetState, spent) {
	if w.closes <= at {
		w = budgetState{0, at + width}
	}
	if w.used == room {
		return w, spent{used: room, closes: w.closes}
	}
	w.used++
	return w, spent{within: true, used: w.used, closes: w.closes}
}

func budgets() porcupine.Model {
	return (&porcupine.NondeterministicModel{
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			parts := map[string][]porcupine.Operation{}
			for _, o := range history {
				key := o.Input.(spending).key
				parts[key] = append(parts[key], o)
			}
			var all [][]porcupine.Operation
			for _, part := range parts {
				all = append(all, part)
			}
			return all
		},
		Init: func() []any { return []any{budgetState{}} },
		Step: func(state, input, output any) []any {
			next, answer := state.(budgetState).spend(input.(spending).at)
			switch got := output.(spent); {
			case got.lost:
				return []any{state, next}
			case got == answer:
				return []any{next}
			default:
				return nil
			}
		},
		DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v: %+v", input, output) },
	}).ToModel()
}

// Many callers on two replicas spend from two budgets over several windows,
// some of them cut off in the middle: there is one order of everything that
// they were told, in which no window ever holds more than ten.
func TestBudget_Linearizable(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]func(testing.TB) string{
		"sqlite":   func(tb testing.TB) string { return dbtest.SQLite(tb, filepath.Join(tb.TempDir(), "muster.db")) },
		"postgres": dbtest.Postgres,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			history := spendAll(t, url(t))
			if result := porcupine.CheckOperationsTimeout(budgets(), history, time.Minute); result != porcupine.Ok {
				t.Errorf("%s: there is no order of %d attempts", result, len(history))
			}
		})
	}
}

func spendAll(t *testing.T, url string) []porcupine.Operation {
	t.Helper()
	var clock atomic.Int64
	clock.Store(1_800_000_000_000)
	var replicas [2]*database.DB
	for i := range replicas {
		db, err := database.Open(t.Context(), database.Options{URL: url, Now: func() time.Time { return time.UnixMilli(clock.Load()) }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
		replicas[i] = db
	}
	began := time.Now()
	var mu sync.Mutex
	var history []porcupine.Operation
	var callers sync.WaitGroup
	for caller := range 8 {
		random := rand.New(rand.NewPCG(7, uint64(caller)))
		callers.Go(func() {
			for range 30 {
				in := spending{fmt.Sprint("key ", random.IntN(2)), clock.Add(int64(random.IntN(5)))}
				ctx, cancel := context.WithCancel(t.Context())
				if random.IntN(8) == 0 {
					time.AfterFunc(time.Duration(random.IntN(1500))*time.Microsecond, cancel)
				}
				called := int64(time.Since(began))
				used, within, closes, err := replicas[random.IntN(2)].Spend(ctx, in.key, room, width*time.Millisecond,
					time.UnixMilli(in.at))
				out, returned := spent{within: within, used: used, closes: closes.UnixMilli()}, int64(time.Since(began))
				cancel()
				if err != nil { // its effect may come at any time from now on
					out, returned = spent{lost: true}, int64(time.Hour)
				}
				mu.Lock()
				history = append(history, porcupine.Operation{ClientId: caller, Input: in, Output: out, Call: called, Return: returned})
				mu.Unlock()
			}
		})
	}
	callers.Wait()
	return history
}
