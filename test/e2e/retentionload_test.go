package e2e_test

import (
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/database/benchtest"
	"github.com/musterhq/muster/internal/database/pgtest"
	"github.com/musterhq/muster/internal/service/ops"
)

// What callers notice while the commands that are kept no longer are deleted:
//
//	go test ./test/e2e -run '^$' -bench Retention -old-commands 100000 -timeout 60m
//
// The goal is that no request takes longer than 100 ms.
var oldCommands = flag.Int("old-commands", 5000, "old commands that BenchmarkRetention lets the service delete")

const (
	pace      = 10 * time.Millisecond // between two requests
	undeleted = 10 * time.Second      // measured while nothing is deleted
)

func BenchmarkRetention(b *testing.B) {
	b.Run("sqlite", func(b *testing.B) {
		retentionEngine(b, "sqlite:"+filepath.Join(b.TempDir(), "load.db"))
	})
	b.Run("postgres", func(b *testing.B) { retentionEngine(b, pgtest.DSN(b)) })
}

// retentionEngine sends requests at a steady pace: first while the old commands are kept,
// then, to the service started again, while it deletes them.
func retentionEngine(b *testing.B, database string) {
	fleet := benchtest.Load(b, database, *loadAssets, time.Now().Add(-time.Hour), false)
	keys := prepareLoad(b, fleet, database)
	floor, err := benchtest.Open(database)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = floor.Close() }()
	before := time.Now().Add(-company.DefaultKeepCommands - 24*time.Hour)
	fleet.WithHistory(b, floor, *oldCommands, before.Add(-30*24*time.Hour))
	mix := mixed(fleet, keys)
	keyFile := filepath.Join(b.TempDir(), "keys") // of both services
	if err := ops.MakeKeyFile(keyFile, time.Now()); err != nil {
		b.Fatal(err)
	}
	b.Setenv("MUSTER_KEY_FILE", keyFile)

	b.ResetTimer()
	kept := startUnderLoad(b, "service", database)
	began := time.Now()
	report(b, "kept", kept.steadily(b, mix, func() bool { return time.Since(began) > undeleted }))
	if err := kept.stop(); err != nil {
		b.Fatal(err)
	}
	fleet.Forget(b, floor)
	deletes := startUnderLoad(b, "service", database)
	began = time.Now()
	took := deletes.steadily(b, mix, func() bool {
		ended, left, err := floor.Forgotten(b.Context(), before)
		if err != nil || left > 0 {
			b.Fatalf("%d old commands are left, %v", left, err)
		}
		return ended
	})
	b.ReportMetric(time.Since(began).Seconds(), "deletion-s")
	report(b, "deleting", took)
}

// mixed are reads and commands in turn.
func mixed(fleet *benchtest.Fleet, keys []string) request {
	commands := spending(fleet, keys)
	return func(n int) (method, path, key, body string) {
		asset := "/api/v1/assets/" + fleet.Some[n%len(fleet.Some)]
		switch n % 5 {
		case 0:
			return commands(n)
		case 1:
			path = "/api/v1/assets?status=ACTIVE&sort=syncedAt,desc&page=3"
		case 2:
			path = "/api/v1/assets/count?status=ACTIVE"
		case 3:
			path = asset + "/commands?size=50"
		default:
			path = asset
		}
		return "GET", path, keys[n%len(keys)], ""
	}
}

// steadily sends a request at each step of the pace, whether or not those before were
// answered, until ended says so. What it returns is from the step to the answer.
func (u *underLoad) steadily(b *testing.B, r request, ended func() bool) (took []time.Duration) {
	b.Helper()
	for n := range 50 { // connections, statements, plans
		if err := u.do(r, n); err != nil {
			b.Fatal(err)
		}
	}
	var mu sync.Mutex
	var sent sync.WaitGroup
	steps := time.NewTicker(pace)
	defer steps.Stop()
	for n := 0; n%100 != 0 || !ended(); n++ {
		step := <-steps.C
		sent.Go(func() {
			err := u.do(r, n)
			mu.Lock()
			defer mu.Unlock()
			if took = append(took, time.Since(step)); err != nil {
				b.Error(err)
			}
		})
	}
	sent.Wait()
	return took
}

func report(b *testing.B, when string, took []time.Duration) {
	b.Helper()
	slices.Sort(took)
	for name, at := range map[string]int{"p50": len(took) / 2, "p99": len(took) * 99 / 100, "slowest": len(took) - 1} {
		b.ReportMetric(took[at].Seconds()*1e3, fmt.Sprintf("%s-%s-ms", when, name))
	}
}
