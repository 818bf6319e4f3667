package fleetsim

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/client"
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

// busy reports whether the same request may be answered otherwise later, and how long the service asks to wait: nothing
// answered, or what did is restarting, has no room, or is still handling a copy of the request.
func busy(err error) (after time.Duration, is bool) {
	p, answered := errors.AsType[*client.Problem](err)
	if !answered {
		return 0, err != nil
	}
	return p.RetryAfter, p.RetryAfter > 0 || p.Retryable
}

// call makes one request with any key that is at hand. It waits and repeats the request while the service is busy, for as
// long as there is patience. Errors are those of client.Do, of the last attempt.
func (r *rest) call(ctx context.Context, q client.Request) (*client.Answer, error) {
	q.Path = client.Base + q.Path
	for {
		var key string
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case key = <-r.keys:
		}
		c := client.Client{Address: r.fleet.Server, Key: key, HTTP: r.client}
		began := r.fleet.Clock()
		for n := 0; ; n++ {
			got, err := c.Do(ctx, q)
			after, again := busy(err)
			// What may have arrived is repeated with the same key: idempotency is a key's own.
			if p, refused := errors.AsType[*client.Problem](err); refused && n == 0 && p.Status == http.StatusTooManyRequests {
				time.AfterFunc(r.fleet.paced(after), func() { r.keys <- key }) // there is room for every key
				break
			}
			if !again || r.fleet.Clock().Sub(began) > r.fleet.Patience || !wait.For(ctx, max(pause(n), r.fleet.paced(after))) {
				r.keys <- key
				return got, err
			}
		}
	}
}

// pause is how long to wait after n failures before, without a word from the service: it doubles, as the agent's does.
func pause(n int) time.Duration { return time.Second << min(n, 4) }

// paced is how long a duration of the service's clock takes.
func (f *fleet) paced(d time.Duration) time.Duration {
	if f.Pace > 0 {
		return time.Duration(float64(d) / f.Pace)
	}
	return d
}

// get reads a resource.
func (r *rest) get(ctx context.Context, path string, into any) {
	got, err := r.call(ctx, client.Request{Method: http.MethodGet, Path: path})
	if err != nil {
		script.Fail("GET %s: %w", path, err)
	}
	script.Need(json.Unmarshal(got.Body, into))
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
	for a := range listed[assetView](ctx, r, "/assets?sort=createdAt,desc&size=100") {
		if m := bySerial[a.Specifications["serialNumber"]]; m != nil {
			m.asset = url.PathEscape(a.PathName)
			delete(bySerial, m.serial)
		}
		if len(bySerial) == 0 {
			return
		}
	}
	script.Fail("%d enrolled devices are not in the inventory", len(bySerial))
}

// listed reads a list, page by page.
func listed[T any](ctx context.Context, r *rest, path string) iter.Seq[T] {
	return func(yield func(T) bool) {
		for page, last := 0, false; !last; page++ {
			var list struct {
				Content []T
				Last    bool
			}
			r.get(ctx, path+"&page="+strconv.Itoa(page), &list)
			for _, one := range list.Content {
				if !yield(one) {
					return
				}
			}
			last = list.Last
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
	got, err := r.call(ctx, client.Request{Method: http.MethodPost, Path: "/assets/" + m.asset + "/commands/" + path, Body: body,
		IdempotencyKey: "fleet-" + strconv.FormatInt(r.fleet.started.UnixNano(), 36) + "-" + strconv.Itoa(n)})
	if err == nil {
		r.fleet.sent.Add(1)
		m.note(o, got.Body)
		return
	}
	if p, answered := errors.AsType[*client.Problem](err); ctx.Err() != nil || answered && p.Status < http.StatusInternalServerError {
		script.Fail("%s: %w", path, err)
	}
	r.fleet.problem("device %d: %s was not taken: %v", m.number, path, err)
}

// argument is a command's body. A device cannot be moved to the policy that it
// has.
func (m *member) argument(path string) (body []byte, skip bool) {
	switch path {
	case "message":
		return []byte(`{"title": "Hello", "body": "From the fleet; $(reboot) ` + "`reboot`" + ` && reboot"}`), false
	case "launch-app":
		return []byte(`{"packageName": "com.example.app"}`), false
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
		return []byte(`{"policyId": "` + next + `"}`), false
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
