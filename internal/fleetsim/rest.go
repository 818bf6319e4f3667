package fleetsim

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/script"
	"github.com/musterhq/muster/internal/wait"
)

// rest is the customer's side: it finds the assets, sends the commands and
// reads what became of them, with API keys.
type rest struct {
	fleet  *fleet
	client *http.Client
	keys   chan string // those with budget left
}

// reply is an answer of the API.
type reply struct {
	status   int           // 0: none came
	after    time.Duration // Retry-After
	replayed bool          // it is the stored answer of an earlier attempt
	body     []byte
	err      error // why no answer came
}

// busy reports whether the same request may be answered otherwise later: nothing answered, or what did is restarting, has no
// room, or has a twin of the request under way.
func (g reply) busy() bool {
	return !g.replayed && (g.err != nil || g.status == http.StatusConflict || g.status == http.StatusTooManyRequests ||
		g.status >= http.StatusInternalServerError)
}

// call makes one request with any key that is at hand. It waits and repeats the request while the service is busy, for as
// long as there is patience, and returns the last answer.
func (r *rest) call(ctx context.Context, method, path string, body any, idempotencyKey string) reply {
	for {
		var key string
		select {
		case <-ctx.Done():
			return reply{err: context.Cause(ctx)}
		case key = <-r.keys:
		}
		got := r.once(ctx, key, method, path, body, idempotencyKey)
		// What may have arrived is repeated with the same key: idempotency is a key's own.
		started := r.fleet.Clock()
		for n := 0; got.busy() && (n > 0 || got.status != http.StatusTooManyRequests) && r.fleet.Clock().Sub(started) < r.fleet.Patience &&
			wait.For(ctx, max(pause(n), r.fleet.paced(got.after))); n++ {
			got = r.once(ctx, key, method, path, body, idempotencyKey)
		}
		if got.status != http.StatusTooManyRequests {
			r.keys <- key
			return got
		}
		time.AfterFunc(r.fleet.paced(got.after), func() { r.keys <- key }) // there is room for every key
	}
}

// pause is how long to wait after n failures before, without a word from the service: it doubles, as the agent's does.
func pause(n int) time.Duration { return time.Second << min(n, 4) }

func (r *rest) once(ctx context.Context, key, method, path string, body any, idempotencyKey string) (got reply) {
	var text []byte
	if body != nil {
		text = script.Must(json.Marshal(body))
	}
	request := script.Must(http.NewRequestWithContext(ctx, method, r.fleet.Server+"/api/v1"+path, bytes.NewReader(text)))
	request.Header.Set("X-API-Key", key)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if idempotencyKey != "" {
		request.Header.Set("Idempotency-Key", idempotencyKey)
	}
	r.fleet.requests.Add(1)
	response, err := r.client.Do(request)
	r.fleet.answered(ctx, response)
	if err != nil {
		return reply{err: err}
	}
	defer response.Body.Close()
	got.status, got.replayed = response.StatusCode, response.Header.Get("Idempotency-Replayed") == "true"
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil {
		got.after = time.Duration(seconds) * time.Second
	}
	got.body, got.err = io.ReadAll(response.Body)
	return got
}

// paced is how long a duration of the service's clock takes.
func (f *fleet) paced(d time.Duration) time.Duration {
	if f.Pace > 0 {
		return time.Duration(float64(d) / f.Pace)
	}
	return d
}

// get reads a resource.
func (r *rest) get(ctx context.Context, path string, into any) {
	got := r.call(ctx, http.MethodGet, path, nil, "")
	if got.err != nil || got.status != http.StatusOK {
		script.Need(got.failure("GET " + path))
	}
	script.Need(json.Unmarshal(got.body, into))
}

// failure says what became of a request that had no success.
func (g reply) failure(what string) error {
	if g.err != nil {
		return fmt.Errorf("%s was not answered: %w", what, g.err)
	}
	return fmt.Errorf("%s was answered %d %s", what, g.status, g.body)
}

// assetView is what the fleet reads of an asset.
type assetView struct {
	PathName       string
	Status         string
	Specifications map[string]string
	ManagedDevice  *struct {
		PolicyID             string
		PolicyVersionApplied int
		StatusReport         map[string]any
		Location             *struct{ Latitude float64 }
	}
}

// findAssets learns which asset each device is, by its serial number.
func (r *rest) findAssets(ctx context.Context) {
	if len(r.fleet.Keys) == 0 {
		return
	}
	bySerial := map[string]*member{}
	for _, m := range r.fleet.members {
		bySerial[m.serial] = m
	}
	for page := 0; ; page++ {
		var list struct {
			Content []assetView
			Last    bool
		}
		r.get(ctx, "/assets?sort=createdAt,desc&size=100&page="+strconv.Itoa(page), &list)
		for _, a := range list.Content {
			if m := bySerial[a.Specifications["serialNumber"]]; m != nil {
				m.asset = url.PathEscape(a.PathName)
				delete(bySerial, m.serial)
			}
		}
		if len(bySerial) == 0 {
			return
		}
		if list.Last {
			script.Fail("%d enrolled devices are not in the inventory", len(bySerial))
		}
	}
}

// order is a command that was sent.
type order struct {
	path      string
	posted    time.Time
	status    string // in the answer
	createdAt int64  // Unix milliseconds; 0: the answer did not say
	kind      string
}

// commandsInTurn are what devices are asked to do, in turn.
var commandsInTurn = [...]string{"message", "launch-app", "status-report", "change-policy", "location-update", "sync-policy", "reboot"} //nolint:gochecknoglobals // a table that is never written to

// commandsToSend is how many commands a run sends, with the endings; 0: none.
func (f *fleet) commandsToSend() int {
	if len(f.Keys) == 0 {
		return 0
	}
	return f.Commands*len(f.members) + f.endings()
}

func (f *fleet) endings() int { return int(f.Endings * float64(len(f.members))) }

const senders = 8 // commands are sent by so many at once

// sendAll sends every command, and the endings last.
func (r *rest) sendAll(ctx context.Context) {
	f := r.fleet
	if len(f.Keys) == 0 {
		wait.For(ctx, f.Duration)
		script.Need(context.Cause(ctx))
		return
	}
	total := f.Commands * len(f.members)
	r.each(ctx, total, func(n int) {
		if n == total/2 && f.Halfway != nil {
			script.Need(f.Halfway(ctx))
		}
		if f.Duration > 0 {
			wait.For(ctx, f.Duration*senders/time.Duration(total))
		}
		r.send(ctx, f.members[n%len(f.members)], commandsInTurn[(n/len(f.members)+n)%len(commandsInTurn)], n)
	})
	r.sendEndings(ctx, total)
}

// sendEndings ends some devices, each when it has done what it was asked for
// before: else those commands would end with it.
func (r *rest) sendEndings(ctx context.Context, total int) {
	f := r.fleet
	limited, cancel := context.WithTimeout(ctx, f.Patience)
	defer cancel()
	r.each(ctx, f.endings(), func(n int) {
		_ = r.settle(limited, f.members[n], nil) // in the end, verify tells
		r.send(ctx, f.members[n], []string{"wipe", "relinquish-ownership"}[n%2], total+n)
	})
}

// each calls work for 0 to total, several at once, until one fails.
func (r *rest) each(ctx context.Context, total int, work func(n int)) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	var all sync.WaitGroup
	for range senders {
		all.Go(func() {
			for n := range next {
				if err := script.Attempt(func() { work(n) }); err != nil {
					cancel(err)
				}
			}
		})
	}
	for n := 0; n < total && ctx.Err() == nil; n++ {
		next <- n
	}
	close(next)
	all.Wait()
	script.Need(context.Cause(ctx))
}

// send sends one command and notes it. One that the service is too busy for until patience ends is a problem of the report;
// any other refusal ends the run. A service remembers the Idempotency-Keys of an earlier run for a day.
func (r *rest) send(ctx context.Context, m *member, path string, n int) {
	body, skip := m.argument(path)
	if skip {
		return
	}
	o := order{path: path, posted: r.fleet.Clock()}
	got := r.call(ctx, http.MethodPost, "/assets/"+m.asset+"/commands/"+path, body,
		"fleet-"+strconv.FormatInt(r.fleet.started.UnixNano(), 36)+"-"+strconv.Itoa(n))
	switch {
	case got.err == nil && (got.status == http.StatusOK || got.status == http.StatusAccepted):
		r.fleet.sent.Add(1)
		m.note(o, got.body)
	case ctx.Err() != nil || got.err == nil && got.status < http.StatusInternalServerError:
		script.Need(got.failure(path))
	default:
		r.fleet.problem("device %d: %v", m.number, got.failure(path))
	}
}

// argument is a command's body. A device cannot be moved to the policy that it
// has.
func (m *member) argument(path string) (body any, skip bool) {
	switch path {
	case "message":
		return map[string]string{"title": "Hello", "body": "From the fleet; $(reboot) `reboot` && reboot"}, false
	case "launch-app":
		return map[string]string{"packageName": "com.example.app"}, false
	case "change-policy":
		if len(m.fleet.Policies) < 2 {
			return nil, true
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		next := m.fleet.Policies[0]
		if m.policy == next {
			next = m.fleet.Policies[1]
		}
		m.policy = next
		return map[string]string{"policyId": next}, false
	}
	return nil, false
}

func (m *member) note(o order, body []byte) {
	var result struct {
		Type, Status string
		CreatedAt    *time.Time
	}
	script.Need(json.Unmarshal(body, &result))
	o.kind, o.status = result.Type, result.Status
	if result.CreatedAt != nil {
		o.createdAt = result.CreatedAt.UnixMilli()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.orders = append(m.orders, o)
}
