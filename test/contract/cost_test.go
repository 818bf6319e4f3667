package contract_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/test/poll"
)

// costFile has what operations may cost at most. When an operation costs more, correct it;
// when it costs less, write the file again: go test ./test/contract -run Costs_Golden -update
const costFile = "testdata/costs.txt"

const costHead = `# What one call of an operation costs on each engine: round trips to PostgreSQL, statements, commits
# and allocations of the whole process, which may differ by a tenth, or by 24. test/contract/cost_test.go
# compares; it writes this file with -update.
`

// price is what one call costs.
type price struct {
	database.Cost
	allocations uint64
}

func (p price) String() string {
	return fmt.Sprintf("%2d %2d %2d %6d", p.RoundTrips, p.Statements, p.Commits, p.allocations)
}

// till counts what the database does for requests that it serves, and no other work.
type till struct {
	handler http.Handler
	mu      sync.Mutex
	cost    database.Cost
}

// served marks the context of a request that a till serves.
type served struct{}

func (c *till) spent(ctx context.Context, cost database.Cost) {
	if ctx.Value(served{}) == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cost = c.cost.Plus(cost)
}

// serve answers a request, which must be answered with the status.
func (c *till) serve(t *testing.T, r *http.Request, status int) (price, servertest.Answer) {
	t.Helper()
	c.mu.Lock()
	c.cost = database.Cost{}
	c.mu.Unlock()
	recorder, r := httptest.NewRecorder(), r.WithContext(context.WithValue(t.Context(), served{}, true))
	var before, after runtime.MemStats
	atRest()
	runtime.ReadMemStats(&before)
	c.handler.ServeHTTP(recorder, r)
	runtime.ReadMemStats(&after)
	answer := servertest.Answer{Status: recorder.Code, Header: recorder.Header(), Body: recorder.Body.Bytes()}
	answer.Want(t, status)
	c.mu.Lock()
	defer c.mu.Unlock()
	return price{c.cost, after.Mallocs - before.Mallocs}, answer
}

// atRest waits until the process allocates nothing: what the call before set off, such as a hint that
// PostgreSQL sends after the commit, is not counted as the next call's. It does not wait forever.
func atRest() {
	var was, is runtime.MemStats
	_ = poll.For(time.Second, func() error {
		runtime.ReadMemStats(&was)
		poll.Pause(2 * time.Millisecond)
		if runtime.ReadMemStats(&is); is.Mallocs-was.Mallocs > restAllocations {
			return errors.New("something runs")
		}
		return nil
	})
}

// restAllocations is what a wait itself may allocate: a timer, a goroutine of the runtime.
const restAllocations = 4

// The rounds of calls: in the first ones statements are prepared and caches filled.
const warmRounds, costRounds = 3, 12

// TestCosts_Golden compares what operations cost with what they may cost. It does not run
// beside other tests, whose allocations it would count.
func TestCosts_Golden(t *testing.T) {
	kept := readCosts(t)
	got := map[string]price{}
	for name, make := range map[string]func(testing.TB) *servertest.Env{"sqlite": servertest.New, "postgres": servertest.NewPostgres} {
		t.Run(name, func(t *testing.T) {
			env := make(t)
			site := newCostSite(t, env)
			for round := range warmRounds + costRounds {
				for operation, p := range site.round(t) {
					operation = fmt.Sprintf("%-9s %s", name, operation)
					if round < warmRounds {
						continue
					}
					known, again := got[operation]
					if again && p.Cost != known.Cost {
						t.Errorf("%s costs %v in round %d, and %v in the one before", operation, p, round, known)
					}
					if again {
						p.allocations = min(p.allocations, known.allocations)
					}
					got[operation] = p
				}
			}
		})
	}
	if *update && !t.Failed() {
		writeCosts(t, kept, got)
		return
	}
	for operation, p := range got {
		compareCost(t, operation, p, kept[operation])
	}
}

func compareCost(t *testing.T, operation string, got, kept price) {
	t.Helper()
	for what, n := range map[string][2]int{"round trips": {got.RoundTrips, kept.RoundTrips},
		"statements": {got.Statements, kept.Statements}, "commits": {got.Commits, kept.Commits}} {
		switch {
		case n[0] > n[1]:
			t.Errorf("%s: %s rose from %d to %d", operation, what, n[1], n[0])
		case n[0] < n[1]:
			t.Errorf("%s: %s fell from %d to %d: lower the number in %s with -update", operation, what, n[1], n[0], costFile)
		}
	}
	switch {
	case raceEnabled: // allocates more
	case almost(got.allocations, kept.allocations):
	case got.allocations > kept.allocations:
		t.Errorf("%s: allocations rose from %d to %d", operation, kept.allocations, got.allocations)
	default:
		t.Errorf("%s: allocations fell from %d to %d: lower the number in %s with -update", operation, kept.allocations,
			got.allocations, costFile)
	}
}

// almost reports whether two numbers of allocations differ by no more than a tenth, or by 24,
// which a busy process may allocate beside a small call.
func almost(a, b uint64) bool { return max(a, b)-min(a, b) <= max(max(a, b)/10, 24) }

func hasEngine(of map[string]price, engine string) bool {
	for operation := range of {
		if strings.HasPrefix(operation, engine) {
			return true
		}
	}
	return false
}

// readCosts reads the file; without one, nothing may cost anything.
func readCosts(t *testing.T) map[string]price {
	t.Helper()
	kept := map[string]price{}
	text, err := os.ReadFile(filepath.FromSlash(costFile))
	if err != nil && !(*update && os.IsNotExist(err)) {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(strings.NewReader(string(text))); lines.Scan(); {
		operation, numbers, ok := strings.Cut(lines.Text(), " | ")
		if !ok || strings.HasPrefix(operation, "#") {
			continue
		}
		var p price
		if _, err := fmt.Sscan(numbers, &p.RoundTrips, &p.Statements, &p.Commits, &p.allocations); err != nil {
			t.Fatalf("%s: %q: %v", costFile, lines.Text(), err)
		}
		kept[strings.TrimSpace(operation)] = p
	}
	return kept
}

// writeCosts writes the file; what was not measured, because there is no PostgreSQL, stays.
func writeCosts(t *testing.T, kept, got map[string]price) {
	t.Helper()
	lines := []string{}
	for operation, was := range kept {
		p, measured := got[operation]
		if engine, _, _ := strings.Cut(operation, " "); !measured && !hasEngine(got, engine) {
			got[operation] = was
		} else if measured && (raceEnabled || almost(p.allocations, was.allocations)) {
			p.allocations = was.allocations // no line changes without a reason
			got[operation] = p
		}
	}
	for operation, p := range got {
		lines = append(lines, fmt.Sprintf("%-48s | %v\n", operation, p))
	}
	slices.Sort(lines)
	head := costHead + fmt.Sprintf("%-48s | round trips, statements, commits, allocations\n", "# engine, operation")
	if err := os.WriteFile(filepath.FromSlash(costFile), []byte(head+strings.Join(lines, "")), 0o644); err != nil {
		t.Fatal(err)
	}
}
