package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/emulator"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/test/poll"
)

// eventLoad orders five commands a second, as far as the keys may, and reads the events of their
// results. It sends nothing twice.
type eventLoad struct {
	client   *http.Client
	address  string
	keyed    bool               // commands have an Idempotency-Key
	onResult func(at time.Time) // called for each result, with when it was true; may be nil

	mu       sync.Mutex
	accepted map[string]bool // by the id of the request that ordered it
	results  map[string]int  // how many events have the result of a request
	lost     []string        // requests that were not answered as they should be
}

// startEvents enrolls a device and begins. A replica has to serve at direct; ctx ends the
// orders, and what it returns waits until each has its event, and ends the reader.
func startEvents(ctx context.Context, t *testing.T, tenant *servertest.Tenant, address, direct string) (end func()) {
	t.Helper()
	code := servertest.Client{TB: t, URL: direct, Key: tenant.Key(tenant.Company, access.All)}.QRCode(tenant.Policy,
		map[string]any{"personalUsage": "DISALLOWED"})
	device := tenant.Enroll(tenant.Company, emulator.Enrollment{EnrollmentToken: code, Count: 1})[0]
	load := &eventLoad{client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 30 * time.Second},
		address:  address,
		accepted: map[string]bool{}, results: map[string]int{}}
	keys := make([]string, 20) // each may order ten a minute; what is refused beyond that does not count
	for i := range keys {
		keys[i] = tenant.Key(tenant.Company, access.All)
	}
	reading, stop := context.WithCancel(t.Context())
	var orders, reader sync.WaitGroup
	var page struct{ Next string }
	if err := load.call(reading, "GET", "/events?after=latest", keys[0], &page, nil); err != nil {
		t.Fatal(err)
	}
	reader.Go(func() { load.read(reading, tenant.Key(tenant.Company, access.All), page.Next) })
	orders.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			load.order(reading, "/assets/"+device.AssetID+"/commands/lock", keys[n%len(keys)])
			poll.Pause(200 * time.Millisecond) // a load, not a flood
		}
	})
	return func() {
		orders.Wait()
		tenant.Eventually("each command has its event", load.allReported)
		stop()
		reader.Wait()
		load.check(t)
	}
}

// allReported fails while a command has no event.
func (l *eventLoad) allReported() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id := range maps.Keys(l.accepted) {
		if l.results[id] == 0 {
			return fmt.Errorf("the result of request %s has no event", id)
		}
	}
	return nil
}

// accept notes that a request's command was accepted.
func (l *eventLoad) accept(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.accepted[id] = true
}

// check reports results that were lost or reported twice.
func (l *eventLoad) check(t *testing.T) {
	t.Helper()
	for id := range l.accepted {
		if l.results[id] != 1 {
			t.Errorf("the result of request %s was reported %d times, want once", id, l.results[id])
		}
	}
	if len(l.accepted) < 10 || len(l.lost) > 0 {
		t.Errorf("%d commands were accepted, %d requests were lost: %v", len(l.accepted), len(l.lost), l.lost)
	}
	t.Logf("%d commands, an event for each", len(l.accepted))
}

// order sends a command once.
func (l *eventLoad) order(ctx context.Context, path, key string) {
	var id string
	err := l.call(ctx, "POST", path, key, nil, &id)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.lost = append(l.lost, err.Error())
	} else if id != "" {
		l.accepted[id] = true
	}
}

// read reads on from where it is until ctx ends.
func (l *eventLoad) read(ctx context.Context, key, next string) {
	for {
		var page struct {
			Events []struct {
				Type string
				At   time.Time
				Data struct{ RequestID string }
			}
			Next string
		}
		err := l.call(ctx, "GET", "/events?wait=5&after="+url.QueryEscape(next), key, &page, nil)
		if ctx.Err() != nil {
			return
		}
		l.mu.Lock()
		if err == nil {
			next = page.Next
		} else if len(l.lost) < 5 { // one is one too many
			l.lost = append(l.lost, err.Error())
		}
		for _, e := range page.Events {
			if e.Type == "command.succeeded" {
				l.results[e.Data.RequestID]++
				if l.onResult != nil {
					l.onResult(e.At)
				}
			}
		}
		l.mu.Unlock()
		if err != nil {
			poll.Pause(100 * time.Millisecond)
		}
	}
}

// call sends one request of REST. Without id, it reads the answer into body; else it sets id to the
// answer's X-Request-Id, and to nothing if the caller's allowance was used up.
func (l *eventLoad) call(ctx context.Context, method, path, key string, body any, id *string) error {
	request, err := http.NewRequestWithContext(ctx, method, l.address+"/api/v1"+path, http.NoBody)
	if err != nil {
		return err
	}
	request.Header.Set("X-Api-Key", key)
	if l.keyed && method == http.MethodPost {
		request.Header.Set("Idempotency-Key", resource.NewID())
	}
	answer, err := l.client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	switch {
	case err != nil:
		return err
	case id != nil && answer.StatusCode == http.StatusTooManyRequests:
		return nil
	case answer.StatusCode != http.StatusOK:
		return fmt.Errorf("%s %s: %s %.200s", method, path, answer.Status, text)
	case id != nil:
		if *id = answer.Header.Get("X-Request-Id"); *id == "" {
			return errors.New("the answer has no X-Request-Id")
		}
		return nil
	}
	return json.Unmarshal(text, body)
}
