package rest_test

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/database/dbtest"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/surface/rest"
)

// sealer seals with a fixed key.
type sealer struct{ cipher.AEAD }

func newSealer(tb testing.TB, key byte) sealer {
	tb.Helper()
	block, err := aes.NewCipher(bytes.Repeat([]byte{key}, 32))
	if err != nil {
		tb.Fatal(err)
	}
	gcm, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		tb.Fatal(err)
	}
	return sealer{gcm}
}

func (s sealer) Seal(purpose string, data []byte) []byte {
	return s.AEAD.Seal(nil, nil, data, []byte(purpose))
}

func (s sealer) Open(purpose string, sealed []byte) ([]byte, error) {
	return s.AEAD.Open(nil, nil, sealed, []byte(purpose))
}

// clock is a hand-set clock.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// durable is a service whose claims are kept in a database.
type durable struct {
	*service
	clock *clock
	path  string
	db    *database.DB
}

func newDurable(t *testing.T) *durable {
	t.Helper()
	d := &durable{service: newService(t), clock: &clock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
		path: filepath.Join(t.TempDir(), "m.db")}
	db, err := database.Open(t.Context(), database.Options{URL: dbtest.SQLite(t, d.path), Now: d.clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	d.db, d.Server = db, d.serve(newSealer(t, 1), db)
	return d
}

func (d *durable) serve(s access.Sealer, claims operation.Claims) *rest.Server {
	return rest.New(rest.Config{
		Registry: d.registry(), Once: operation.Once{Kernel: operation.NewKernel(operation.Config{
			Budgets: operation.Budgets{Store: &d.budget, Now: d.clock.Now}, Now: d.clock.Now}),
			Claims: claims, Sealer: s},
		Authenticator: keys{"good": principal("k1", access.All), "other": principal("k2", access.All), "poor": principal("k1", 0)},
		Served:        func(string, int, time.Duration) {}, Now: d.clock.Now, Log: slog.New(slog.DiscardHandler),
	})
}

const (
	launchPath = "/api/v1/assets/a1/commands/launch-app"
	launchBody = `{"text":"a"}`
)

// launch sends the same request under an Idempotency-Key.
func (d *durable) launch(key string, header ...string) *httptest.ResponseRecorder {
	return d.send("POST", launchPath, launchBody, append([]string{"Idempotency-Key", key}, header...)...)
}

func replayed(w *httptest.ResponseRecorder) bool {
	return w.Header().Get("Idempotency-Replayed") == "true"
}

func TestIdempotencyKey_SameAnswerAgain(t *testing.T) {
	t.Parallel()
	d := newDurable(t)
	runs, refs := 0, []string{}
	d.handle = func(_ context.Context, c operation.Call, id string) (result, error) {
		runs++
		refs = append(refs, c.IdempotencyRef)
		return result{ID: fmt.Sprint(id, " run ", runs)}, nil
	}
	first := d.launch("key-1")
	again := d.launch("key-1", "X-Request-Id", "second")
	if first.Code != 200 || replayed(first) || first.Header().Get("RateLimit") == "" {
		t.Errorf("first: %d %v", first.Code, first.Header())
	}
	if again.Code != 200 || !replayed(again) || again.Body.String() != first.Body.String() {
		t.Errorf("again: %d %v %s", again.Code, again.Header(), again.Body)
	}
	for header, want := range map[string]string{
		"Content-Type": first.Header().Get("Content-Type"), "RateLimit": "", "X-Request-Id": "second", "Cache-Control": "no-store",
	} {
		if got := again.Header().Get(header); got != want {
			t.Errorf("again: %s %q, want %q", header, got, want)
		}
	}
	if runs != 1 || d.budget.spent != 1 || refs[0] == "" {
		t.Errorf("%d runs, %d spent, refs %q", runs, d.budget.spent, refs)
	}
	if w := d.launch("key-2"); replayed(w) || runs != 2 || refs[1] == refs[0] {
		t.Error("another key is the same request")
	}
	if w := d.launch("key-1", "X-API-Key", "other"); replayed(w) || runs != 3 {
		t.Error("another caller is given the answer")
	}
	if w := d.send("POST", launchPath, launchBody); replayed(w) || runs != 4 || refs[3] != "" {
		t.Error("without a key something is remembered")
	}
	d.clock.Advance(24*time.Hour - time.Second)
	if w := d.launch("key-1"); !replayed(w) {
		t.Error("forgotten within 24 hours")
	}
	d.clock.Advance(time.Second)
	if w := d.launch("key-1"); replayed(w) || runs != 5 || refs[4] == refs[0] {
		t.Error("remembered after 24 hours")
	}
}

func TestIdempotencyKey_OtherRequest(t *testing.T) {
	t.Parallel()
	d := newDurable(t)
	d.launch("k")
	for name, w := range map[string]*httptest.ResponseRecorder{
		"body":    d.send("POST", launchPath, `{"text":"b"}`, "Idempotency-Key", "k"),
		"asset":   d.send("POST", "/api/v1/assets/a2/commands/launch-app", launchBody, "Idempotency-Key", "k"),
		"command": d.send("POST", "/api/v1/assets/a1/commands/lock", "", "Idempotency-Key", "k"),
	} {
		t.Run(name, func(t *testing.T) {
			wantCode := name != "command" // the older dialect has no code
			if w.Code != 422 || strings.Contains(w.Body.String(), `"code":"idempotency_key_reused"`) != wantCode || replayed(w) {
				t.Errorf("%s: %d %s", name, w.Code, w.Body)
			}
		})
	}
	if d.budget.spent != 1 {
		t.Errorf("%d spent", d.budget.spent)
	}
}

// A replica that cannot open the claim, as before its restart in a rotation of the key file, has the caller repeat the
// request.
func TestIdempotencyKey_KeyOfAnotherReplica(t *testing.T) {
	t.Parallel()
	d := newDurable(t)
	before, after := d.Server, d.serve(newSealer(t, 2), d.db)
	d.Server = after
	first := d.launch("k")
	d.Server = before
	if w := d.launch("k"); w.Code != 409 || !strings.Contains(w.Body.String(), `"code":"idempotency_in_flight"`) || replayed(w) {
		t.Errorf("without the key: %d %s", w.Code, w.Body)
	}
	d.Server = after
	if w := d.launch("k"); !replayed(w) || w.Body.String() != first.Body.String() || d.budget.spent != 1 {
		t.Errorf("with the key: %d %s, %d spent", w.Code, w.Body, d.budget.spent)
	}
}

func TestIdempotencyKey_RepetitionWhileRunning(t *testing.T) {
	t.Parallel()
	d := newDurable(t)
	entered, leave := make(chan bool), make(chan bool)
	d.handle = func(context.Context, operation.Call, string) (result, error) {
		entered <- true
		<-leave
		return result{ID: "done"}, nil
	}
	var first *httptest.ResponseRecorder
	var running sync.WaitGroup
	running.Go(func() { first = d.launch("k") })
	<-entered
	if w := d.launch("k"); w.Code != 409 || !strings.Contains(w.Body.String(), `"code":"idempotency_in_flight"`) ||
		w.Header().Get("Retry-After") != "1" {
		t.Errorf("the twin: %d %s", w.Code, w.Body)
	}
	if w := d.send("POST", launchPath, `{"text":"b"}`, "Idempotency-Key", "k"); w.Code != 422 {
		t.Errorf("another body while it runs: %d", w.Code)
	}
	close(leave)
	running.Wait()
	if w := d.launch("k"); first.Code != 200 || !replayed(w) || w.Body.String() != `{"id":"done"}` {
		t.Errorf("afterwards: %d %s", w.Code, w.Body)
	}
}

// Which answers are kept: those of a request that reached its handler and
// that may not simply be sent again.
func TestIdempotencyKey_WhichAnswersAreKept(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		result error
		kept   bool
		status int
	}{
		{"not found", fault.New(fault.NotFound, "x"), true, 404},
		{"conflict", fault.New(fault.Unsupported, "x"), true, 409},
		{"refused", fault.New(fault.Refused, "x"), true, 422},
		{"unexpected", errors.New("x"), true, 500},
		{"rejected for good", fault.New(fault.Provider, "x"), true, 502},
		{"rejected for now", &fault.Error{Code: fault.Provider, Retryable: true}, false, 502},
		{"not sent", fault.New(fault.Unavailable, "x"), false, 503},
		{"an argument, found late", fault.Invalid("x"), false, 400},
		{"to be approved", &fault.Error{Code: fault.ConfirmationRequired, Approval: &fault.Approval{Required: true, URL: "https://x"}},
			false, 422},
		{"to be authorized", &fault.Error{Code: fault.Forbidden, Approval: &fault.Approval{URL: "https://x"}}, false, 403},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			d := newDurable(t)
			var refs []string
			d.handle = func(_ context.Context, c operation.Call, _ string) (result, error) {
				refs = append(refs, c.IdempotencyRef)
				return result{}, test.result
			}
			first, again := d.launch("k"), d.launch("k")
			if first.Code != test.status || again.Code != test.status || replayed(again) != test.kept {
				t.Errorf("%d, then %d, replayed %v", first.Code, again.Code, replayed(again))
			}
			if !test.kept && (len(refs) != 2 || refs[0] == refs[1]) {
				t.Errorf("refs %q", refs)
			}
			if test.kept && first.Body.String() != again.Body.String() {
				t.Errorf("%s, then %s", first.Body, again.Body)
			}
		})
	}
}

func TestIdempotencyKey_RefusedBeforeTheHandler(t *testing.T) {
	t.Parallel()
	d := newDurable(t)
	d.budget.left.Spent = false
	if w := d.launch("k"); w.Code != 429 || w.Header().Get("Retry-After") == "" {
		t.Errorf("over the budget: %d", w.Code)
	}
	d.budget.left.Spent = true
	d.clock.Advance(d.budget.left.Reset)
	if w := d.launch("k"); w.Code != 200 || replayed(w) {
		t.Errorf("within it again: %d", w.Code)
	}
	if w := d.launch("k", "X-API-Key", "poor"); w.Code != 403 || replayed(w) {
		t.Errorf("an answer for one who lost the right: %d", w.Code)
	}
	if w := d.send("POST", launchPath, `{}`, "Idempotency-Key", "k2"); w.Code != 400 {
		t.Errorf("invalid: %d", w.Code)
	}
	if w := d.launch("k2"); w.Code != 200 || replayed(w) {
		t.Errorf("corrected: %d", w.Code)
	}
	if w := d.send("POST", "/api/v1/assets/a1", "", "Idempotency-Key", "k3"); w.Code != 405 {
		t.Errorf("no operation: %d", w.Code)
	}
	if w := d.send("GET", "/api/v1/assets/a1", "", "Idempotency-Key", ""); w.Code != 200 {
		t.Errorf("a read: %d", w.Code)
	}
}

func TestIdempotencyKey_Shape(t *testing.T) {
	t.Parallel()
	d := newDurable(t)
	for key, ok := range map[string]bool{`"8e03978e-40d5-43dd-bc93-6894a57f9324"`: true, strings.Repeat("k", 255): true,
		strings.Repeat("k", 256): false, "a b": false, "é": false, "a\tb": false} {
		t.Run(key, func(t *testing.T) {
			w := d.launch(key)
			if ok != (w.Code == 200) || !ok && (w.Code != 400 || !strings.Contains(w.Body.String(), `"field":"Idempotency-Key"`)) {
				t.Errorf("%q: %d %s", key, w.Code, w.Body)
			}
		})
	}
	r := httptest.NewRequest("POST", launchPath, strings.NewReader(launchBody))
	r.Header = map[string][]string{"X-Api-Key": {"good"}, "Idempotency-Key": {"a", "b"}}
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	if w.Code != 400 {
		t.Errorf("two keys: %d", w.Code)
	}
}

// TestIdempotencyKey_DoubtfulCommit: what was perhaps committed is found by the repetition,
// at once: it comes with the reference of the first attempt.
func TestIdempotencyKey_DoubtfulCommit(t *testing.T) {
	t.Parallel()
	d := newDurable(t)
	var refs []string
	d.handle = func(_ context.Context, c operation.Call, _ string) (result, error) {
		refs = append(refs, c.IdempotencyRef)
		if len(refs) == 1 {
			cause := fmt.Errorf("%w: the connection broke", operation.ErrDoubt)
			return result{}, (&fault.Error{Code: fault.Unavailable, Retryable: true, Detail: "not sent"}).Because(cause)
		}
		return result{}, nil
	}
	first, second := d.launch("k"), d.launch("k")
	if first.Code != 503 || second.Code != 200 {
		t.Errorf("answers %d and %d, want 503 and 200", first.Code, second.Code)
	}
	if len(refs) != 2 || refs[0] == "" || refs[0] != refs[1] {
		t.Errorf("references %q, want the same twice", refs)
	}
}

// crash is a store of claims that stops working after the claim, as if the
// process had died there.
type crash struct{ operation.Claims }

func (crash) SettleClaim(context.Context, operation.Holding, []byte) error { return errors.New("dead") }
func (crash) ReleaseClaim(context.Context, operation.Holding) error        { return errors.New("dead") }
func (crash) ExtendClaim(context.Context, operation.Holding, time.Time) error {
	return errors.New("dead")
}

func TestIdempotencyKey_RepetitionAfterACrash(t *testing.T) {
	t.Parallel()
	d := newDurable(t)
	db, err := database.Open(t.Context(), database.Options{URL: "sqlite:" + d.path, Now: d.clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	sent := map[string]int{} // by IdempotencyRef, as a command's intent keeps it
	d.handle = func(_ context.Context, c operation.Call, _ string) (result, error) {
		sent[c.IdempotencyRef]++
		return result{ID: "command of " + c.IdempotencyRef}, nil
	}
	whole := d.Server
	d.Server = d.serve(newSealer(t, 1), crash{db})
	lost := d.launch("k")
	d.Server = whole
	if w := d.launch("k"); w.Code != 409 {
		t.Errorf("within the lease: %d", w.Code)
	}
	d.clock.Advance(15 * time.Second)
	if w := d.send("POST", launchPath, `{"text":"b"}`, "Idempotency-Key", "k"); w.Code != 422 {
		t.Errorf("another body: %d", w.Code)
	}
	again := d.launch("k")
	if again.Code != 200 || replayed(again) || again.Body.String() != lost.Body.String() || len(sent) != 1 {
		t.Errorf("after the lease: %d %s, refs %v", again.Code, again.Body, sent)
	}
	if w := d.launch("k"); !replayed(w) {
		t.Error("the answer was not kept")
	}
}

// A takeover that is refused for the budget leaves what the crash began to be found.
func TestRepetitionAfterACrash_OverTheBudget(t *testing.T) {
	t.Parallel()
	d := newDurable(t)
	refs := map[string]bool{}
	d.handle = func(_ context.Context, c operation.Call, _ string) (result, error) {
		refs[c.IdempotencyRef] = true
		return result{ID: "r"}, nil
	}
	whole := d.Server
	d.Server = d.serve(newSealer(t, 1), crash{d.db})
	d.launch("k")
	d.Server = whole
	d.clock.Advance(15 * time.Second)
	d.budget.left.Spent = false
	for range 2 { // the second is refused without a claim
		if w := d.launch("k"); w.Code != 429 {
			t.Errorf("over the budget: %d", w.Code)
		}
	}
	d.budget.left.Spent = true
	d.clock.Advance(d.budget.left.Reset)
	if w := d.launch("k"); w.Code != 200 || len(refs) != 1 {
		t.Errorf("within it again: %d, and the request ran as %v", w.Code, refs)
	}
}

// counted counts the claims that are made and looked for.
type counted struct {
	operation.Claims
	made, found int
}

func (c *counted) Claim(ctx context.Context, claim operation.Claim) (operation.Holding, error) {
	c.made++
	return c.Claims.Claim(ctx, claim)
}

func (c *counted) FindClaim(ctx context.Context, claim operation.Claim) (operation.Holding, error) {
	c.found++
	return c.Claims.FindClaim(ctx, claim)
}

// A caller whose budget is used up costs no claim and no look at the budget until
// the window closes; an answer that was given is repeated to it.
func TestOverTheBudget_NothingIsWritten(t *testing.T) {
	t.Parallel()
	d := newDurable(t)
	claims := &counted{Claims: d.db}
	d.Server = d.serve(newSealer(t, 1), claims)
	if w := d.launch("k"); w.Code != 200 {
		t.Fatalf("within the budget: %d", w.Code)
	}
	d.budget.left.Spent = false
	if w := d.send("POST", launchPath, launchBody); w.Code != 429 {
		t.Fatalf("over the budget: %d", w.Code)
	}
	spent, made := d.budget.spent, claims.made
	d.clock.Advance(2 * time.Second)
	for range 3 {
		if w := d.launch("new"); w.Code != 429 || w.Header().Get("Retry-After") != "40" {
			t.Errorf("over the budget: %d, Retry-After %q", w.Code, w.Header().Get("Retry-After"))
		}
		if w := d.send("POST", launchPath, launchBody); w.Code != 429 {
			t.Errorf("over the budget, without a key: %d", w.Code)
		}
	}
	if w := d.launch("k"); w.Code != 200 || !replayed(w) {
		t.Errorf("a repetition over the budget: %d", w.Code)
	}
	if w := d.send("POST", launchPath, `{"text":"b"}`, "Idempotency-Key", "k"); w.Code != 422 {
		t.Errorf("another request with the key: %d", w.Code)
	}
	if claims.made != made || claims.found != 5 || d.budget.spent != spent {
		t.Errorf("%d claims made, %d looked for, budget asked %d times; want 0, 5, 0", claims.made-made, claims.found, d.budget.spent-spent)
	}
	d.budget.left.Spent = true
	d.clock.Advance(40 * time.Second)
	if w := d.launch("new"); w.Code != 200 || replayed(w) {
		t.Errorf("in the next window: %d", w.Code)
	}
}

// leases counts how often a lease is extended, and when it would end.
type leases struct {
	crash
	extended int
	until    time.Time
}

func (*leases) Claim(context.Context, operation.Claim) (operation.Holding, error) {
	return operation.Holding{State: operation.Claimed, Ref: "ref"}, nil
}

func (l *leases) ExtendClaim(_ context.Context, _ operation.Holding, until time.Time) error {
	l.extended++
	l.until = until
	return nil
}

func (*leases) SettleClaim(context.Context, operation.Holding, []byte) error { return nil }

func TestIdempotencyKey_LeaseLastsAsLongAsTheHandler(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &durable{service: newService(t), clock: &clock{now: time.Now()}}
		d.handle = func(context.Context, operation.Call, string) (result, error) {
			time.Sleep(52 * time.Second)
			return result{}, nil
		}
		kept := &leases{}
		d.Server = d.serve(newSealer(t, 1), kept)
		if w := d.launch("k"); w.Code != 200 {
			t.Fatal(w.Code)
		}
		time.Sleep(time.Minute)
		if kept.extended != 10 || !kept.until.Equal(d.clock.Now().Add(15*time.Second)) {
			t.Errorf("extended %d times, until %s", kept.extended, kept.until)
		}
	})
}

// The service's key alone opens what is kept, and no text of it is in the file.
func TestIdempotencyKey_AnswersAreSealed(t *testing.T) {
	t.Parallel()
	d := newDurable(t)
	d.handle = func(context.Context, operation.Call, string) (result, error) {
		return result{ID: "MARKER-OF-THE-ANSWER"}, nil
	}
	const secret = `{"note":"MARK!"}`
	if w := d.send("POST", "/api/v1/policies/p1/provisioning-qr-codes", secret, "Idempotency-Key", "k"); w.Code != 201 {
		t.Fatal(w.Code)
	}
	files, err := filepath.Glob(d.path + "*")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, marker := range []string{"MARKER", "MARK!", "TUFSS0VS"} {
			if bytes.Contains(content, []byte(marker)) {
				t.Errorf("%s holds %s", filepath.Base(file), marker)
			}
		}
	}
	db, err := database.Open(t.Context(), database.Options{URL: "sqlite:" + d.path, Now: d.clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	d.Server = d.serve(newSealer(t, 2), db)
	if w := d.send("POST", "/api/v1/policies/p1/provisioning-qr-codes", secret, "Idempotency-Key", "k"); w.Code != 409 {
		t.Errorf("with another key of the service: %d %s", w.Code, w.Body)
	}
}
