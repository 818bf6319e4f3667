package database_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/approval/attention"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/event"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/webhook"
	"github.com/musterhq/muster/test/poll"
)

// verify checks a call with the library of Standard Webhooks, at the time of its timestamp:
// the library compares that with the clock of the machine.
func (h *hooks) verify(c taken, secret string) error {
	library, err := standard.NewWebhook(secret)
	h.ok(err)
	return library.VerifyIgnoringTimestamp(c.body, c.header)
}

// The library of Standard Webhooks verifies what is sent. After a rotation both secrets sign
// for 24 hours, or until it is finished.
func TestWebhook_SignatureAndRotation(t *testing.T) {
	withWebhooks(t, func(h *hooks) {
		to := newReceiver(t)
		w, first := h.create(to)
		last := func() taken {
			h.Helper()
			_, err := h.service.Test(h.Context(), h.company.ID, w.ID)
			h.ok(err)
			all := to.all()
			return all[len(all)-1]
		}
		signs := func(c taken, secret string, want bool) {
			h.Helper()
			equal(h, "verifies", h.verify(c, secret) == nil, want)
		}
		c := last()
		signs(c, first, true)
		equal(h, "type", c.event.Type, webhook.Test)
		equal(h, "secret", strings.HasPrefix(first, "whsec_"), true)
		equal(h, "timestamp", c.header.Get("webhook-timestamp"), fmt.Sprint(h.clock.Now().Unix()))
		c.body = bytes.Replace(c.body, []byte("webhook.test"), []byte("webhook.tesu"), 1)
		signs(c, first, false)

		_, second, err := h.service.Rotate(h.Context(), h.company.ID, w.ID)
		h.ok(err)
		c = last()
		signs(c, first, true)
		signs(c, second, true)
		equal(h, "signatures", len(strings.Fields(c.header.Get("webhook-signature"))), 2)
		h.clock.Advance(24 * time.Hour)
		c = last()
		signs(c, first, false)
		signs(c, second, true)
		_, third, err := h.service.Rotate(h.Context(), h.company.ID, w.ID)
		h.ok(err)
		_, err = h.service.FinishRotation(h.Context(), h.company.ID, w.ID)
		h.ok(err)
		c = last()
		signs(c, second, false)
		signs(c, third, true)
		_, err = h.service.FinishRotation(h.Context(), h.company.ID, w.ID)
		h.code(fault.Unsupported, err)
	})
}

// another seals with another key, and opens nothing that clear sealed.
type another struct{ clear }

func (a another) Seal(purpose string, data []byte) []byte {
	return a.clear.Seal("another "+purpose, data)
}

func (a another) Open(purpose string, sealed []byte) ([]byte, error) {
	return a.clear.Open("another "+purpose, sealed)
}

// A replica without the key of a secret, as before its restart in a rotation of the key file, leaves the events to those
// that have it.
func TestWebhook_KeyOfAnotherReplica(t *testing.T) {
	withWebhooks(t, func(h *hooks) {
		to := newReceiver(t)
		w, secret := h.create(to)
		later := h.replica(h.db)
		h.service.Sealer = another{}
		before := h.replica(h.db)
		h.enroll("d1", "")
		h.serve(before)
		equal(h, "state", h.webhook(w.ID).State, webhook.Enabled)
		equal(h, "calls without the key", len(to.all()), 0)
		h.clock.Advance(10 * time.Second)
		h.serve(later)
		all := to.all()
		if len(all) == 0 || h.verify(all[0], secret) != nil {
			h.Errorf("%d calls, want some that the secret signed", len(all))
		}
		equal(h, "held", h.webhook(w.ID).Held, 0)
	})
}

// After the key of a secret is lost, the webhook is disabled within a day, and works again with a new secret alone.
func TestWebhook_LostKey(t *testing.T) {
	withWebhooks(t, func(h *hooks) {
		to := newReceiver(t)
		w, _ := h.create(to)
		h.service.Sealer = another{}
		r := h.replica(h.db)
		h.enroll("d1", "")
		h.serve(r)
		for begun := h.clock.Now(); h.clock.Now().Sub(begun) < 24*time.Hour; {
			equal(h, "state", h.webhook(w.ID).State, webhook.Enabled)
			h.clock.Advance(h.webhook(w.ID).NextAt.Sub(h.clock.Now()))
			h.serve(r)
		}
		equal(h, "state", h.webhook(w.ID).State, webhook.Disabled)
		_, secret, err := h.service.Rotate(h.Context(), h.company.ID, w.ID)
		h.ok(err)
		_, err = h.service.Enable(h.Context(), h.company.ID, w.ID)
		h.ok(err)
		h.serve(r)
		equal(h, "state", h.webhook(w.ID).State, webhook.Enabled)
		if all := to.all(); len(all) == 0 || h.verify(all[0], secret) != nil {
			h.Errorf("%d calls, want some that the new secret signed", len(all))
		}
	})
}

// An event that fails is tried with pauses from 10 seconds, doubling to an hour, with one
// id; after 24 hours the webhook is disabled. Enabled, it goes on where it stopped.
func TestWebhook_PausesAndEnd(t *testing.T) {
	withWebhooks(t, func(h *hooks) {
		to := newReceiver(t)
		h.enroll("d1", "")
		h.number()
		w, _ := h.create(to)
		to.says(func(event.View) int { return http.StatusInternalServerError })
		h.lost("d1", true)
		h.serve(h.runner)
		begun, pauses := h.clock.Now(), []time.Duration{}
		for h.webhook(w.ID).State == webhook.Enabled {
			next := h.webhook(w.ID).NextAt
			pauses = append(pauses, next.Sub(h.clock.Now()))
			before := len(to.all())
			h.clock.Advance(next.Sub(h.clock.Now()) - time.Millisecond)
			h.serve(h.runner)
			equal(h, "calls before it is due", len(to.all()), before)
			h.clock.Advance(time.Millisecond)
			h.serve(h.runner)
			equal(h, "calls when it is due", len(to.all()), before+1)
		}
		equal(h, "first pauses", pauses[:4], []time.Duration{8 * time.Second, 16 * time.Second, 32 * time.Second, 64 * time.Second})
		equal(h, "longest pause", slices.Max(pauses), time.Hour)
		equal(h, "disabled after", h.clock.Now().Sub(begun), 24*time.Hour)
		for _, c := range to.all() {
			equal(h, "id", c.event.ID, to.all()[0].event.ID)
		}
		equal(h, "actions", h.actions(), []activity.Action{activity.WebhookDisabled, activity.WebhookCreated})
		waits, err := h.db.Attention(h.Context(), attention.Query{CompanyID: h.company.ID})
		h.ok(err)
		equal(h, "what waits for a person", []string{string(waits[0].Kind), waits[0].ID, waits[0].Name},
			[]string{"WEBHOOK", w.ID, strings.TrimPrefix(to.URL, "http://")})
		disabled, failing, err := h.db.WebhookFigures(h.Context())
		h.ok(err)
		equal(h, "figures", []int{disabled, failing}, []int{1, 0})

		n := len(to.all())
		h.lost("d1", false)
		h.clock.Advance(time.Hour)
		h.serve(h.runner)
		equal(h, "calls while disabled", len(to.all()), n)
		to.says(nil)
		_, err = h.service.Enable(h.Context(), h.company.ID, w.ID)
		h.ok(err)
		h.serve(h.runner)
		got := to.all()[n:]
		equal(h, "calls after enable", len(got), 2)
		equal(h, "first", got[0].event.ID, to.all()[0].event.ID)
		equal(h, "second", got[1].event.Data.Status, event.Off)
		equal(h, "held", h.webhook(w.ID).Held, 0)
		_, err = h.service.Enable(h.Context(), h.company.ID, w.ID)
		h.code(fault.Unsupported, err)
	})
}

// A service that did not run for a day has not tried for a day: the webhook is disabled after ten attempts at the earliest.
func TestWebhook_StaysEnabledAfterADayWithoutTheService(t *testing.T) {
	withWebhooks(t, func(h *hooks) {
		to := newReceiver(t)
		w, _ := h.create(to)
		to.says(func(event.View) int { return http.StatusBadGateway })
		h.enroll("d1", "")
		h.serve(h.runner)
		h.clock.Advance(25 * time.Hour)
		h.serve(h.runner)
		equal(h, "calls", len(to.all()), 2)
		got := h.webhook(w.ID)
		equal(h, "state", got.State, webhook.Enabled)
		equal(h, "pause", got.NextAt.Sub(h.clock.Now()), 16*time.Second)
		for h.webhook(w.ID).State == webhook.Enabled {
			h.clock.Advance(h.webhook(w.ID).NextAt.Sub(h.clock.Now()))
			h.serve(h.runner)
		}
		equal(h, "calls before it is disabled", len(to.all()), 10)

		to.says(nil)
		_, err := h.service.Enable(h.Context(), h.company.ID, w.ID)
		h.ok(err)
		h.serve(h.runner)
		equal(h, "calls", len(to.all()), 11)
		equal(h, "held", h.webhook(w.ID).Held, 0)
	})
}

// 410 disables at once, a redirect is not followed, and neither is taken for a success.
func TestWebhook_GoneAndRedirect(t *testing.T) {
	withWebhooks(t, func(h *hooks) {
		gone, moved := newReceiver(t), newReceiver(t)
		h.enroll("d1", "")
		h.number()
		w, _ := h.create(gone)
		m, _ := h.create(moved)
		gone.says(func(event.View) int { return http.StatusGone })
		moved.says(func(event.View) int { return http.StatusPermanentRedirect })
		h.lost("d1", true)
		h.serve(h.runner)
		equal(h, "state", h.webhook(w.ID).State, webhook.Disabled)
		equal(h, "why", strings.Contains(h.webhook(w.ID).Why, "410"), true)
		equal(h, "calls of the redirect", len(moved.all()), 1)
		equal(h, "held", h.webhook(m.ID).Held, 1)
	})
}

// The events of an asset stay in their order while the first of them fails, and those of
// other assets, and of none, go on.
func TestWebhook_OrderOfOneAsset(t *testing.T) {
	withWebhooks(t, func(h *hooks) {
		to := newReceiver(t)
		a := h.enroll("a", "")
		h.enroll("b", "")
		h.number()
		w, _ := h.create(to)
		isA := func(v event.View) bool { return strings.HasSuffix(v.Data.AssetID, a.ID) }
		to.says(func(v event.View) int {
			if isA(v) {
				return http.StatusBadGateway
			}
			return http.StatusOK
		})
		for n := range 6 {
			h.lost("a", n%2 == 0)
			h.lost("b", n%2 == 0)
		}
		h.ok(h.db.RecordActivity(h.Context(), h.company.ID,
			activity.Event{Action: activity.KeyRevoked, Target: activity.Target{Kind: activity.Key, ID: "k1", Name: "k"}}))
		h.serve(h.runner)
		var others int
		for _, c := range to.all() {
			if !isA(c.event) {
				others++
			}
		}
		equal(h, "events of others", others, 7)
		equal(h, "calls for a", len(to.all())-others, 1)
		to.says(nil)
		second := h.replica(h.open(h))
		h.clock.Advance(10 * time.Second)
		h.lost("a", true)
		n := len(to.all())
		h.serve(second)
		var order []string
		for _, c := range to.all()[n:] {
			order = append(order, c.event.Data.Status)
		}
		equal(h, "order of a", order, []string{event.On, event.Off, event.On, event.Off, event.On, event.Off, event.On})
		equal(h, "held", h.webhook(w.ID).Held, 0)
	})
}

// forgets is a queue whose replica is killed between a call and its record.
type forgets struct {
	webhook.Queue
	once sync.Once
}

func (q *forgets) RecordWave(ctx context.Context, r webhook.Record) (bool, error) {
	killed := false
	q.once.Do(func() { killed = true })
	if killed {
		return false, errors.New("killed")
	}
	return q.Queue.RecordWave(ctx, r)
}

// A replica that is killed before it records what it sent leaves it to another, which sends
// it again with its id, once the claim has ended.
func TestWebhook_KilledReplica(t *testing.T) {
	withWebhooks(t, func(h *hooks) {
		to := newReceiver(t)
		h.create(to)
		h.enroll("d1", "")
		h.number()
		killed := h.replica(&forgets{Queue: h.db})
		h.ok(killed.Round(h.Context()))
		killed.Wait()
		equal(h, "calls", len(to.all()), 1)
		other := h.replica(h.open(h))
		h.serve(other)
		equal(h, "calls while the claim holds", len(to.all()), 1)
		h.clock.Advance(30 * time.Second)
		h.serve(other)
		got := to.all()
		equal(h, "calls", len(got), 2)
		equal(h, "ids", got[0].header.Get("webhook-id"), got[1].header.Get("webhook-id"))
		h.clock.Advance(time.Hour)
		h.serve(other)
		equal(h, "calls", len(to.all()), 2)
	})
}

// A replica that stops while a call runs gives the webhook back: another need not wait.
func TestWebhook_StoppedReplica(t *testing.T) {
	withWebhooks(t, func(h *hooks) {
		to := newReceiver(t)
		hold := make(chan struct{})
		release := sync.OnceFunc(func() { close(hold) })
		h.Cleanup(release)
		to.says(func(event.View) int { <-hold; return http.StatusOK })
		w, _ := h.create(to)
		h.enroll("d1", "")
		h.number()
		ctx, stop := context.WithCancel(h.Context())
		h.ok(h.runner.Round(ctx))
		poll.Until(t, "the call holds back its device", func() error {
			if held := h.webhook(w.ID).Held; held != 1 {
				return fmt.Errorf("%d are held", held)
			}
			return nil
		})
		stop()
		h.runner.Wait()
		release()
		h.serve(h.replica(h.open(h)))
		got := to.all()
		equal(h, "calls", len(got), 2)
		equal(h, "ids", got[0].header.Get("webhook-id"), got[1].header.Get("webhook-id"))
	})
}

// Two replicas that look at one time send each event once.
func TestWebhook_TwoReplicas(t *testing.T) {
	withWebhooks(t, func(h *hooks) {
		to := newReceiver(t)
		h.create(to)
		const devices = 40
		for n := range devices {
			h.enroll(fmt.Sprint("d", n), "")
		}
		h.number()
		replicas := []*webhook.Runner{h.runner, h.replica(h.open(h))}
		for range 10 {
			var both sync.WaitGroup
			for _, r := range replicas {
				both.Go(func() {
					if err := r.Round(h.Context()); err != nil {
						h.Error(err)
					}
					r.Wait()
				})
			}
			both.Wait()
		}
		ids := map[string]bool{}
		for _, c := range to.all() {
			ids[c.event.ID] = true
		}
		equal(h, "events", len(ids), devices)
		equal(h, "calls", len(to.all()), devices)
	})
}

// Replay sends again what came after a cursor of a delivery, and leaves out nothing that was
// not sent yet.
func TestWebhook_Replay(t *testing.T) {
	withWebhooks(t, func(h *hooks) {
		to := newReceiver(t)
		w, _ := h.create(to)
		for n := range 4 {
			h.enroll(fmt.Sprint("d", n), "")
		}
		h.serve(h.runner)
		attempts, err := h.service.Deliveries(h.Context(), h.company.ID, w.ID)
		h.ok(err)
		slices.SortFunc(attempts, func(a, b webhook.Delivery) int { return int(a.Position - b.Position) })
		_, err = h.service.Replay(h.Context(), h.company.ID, w.ID, attempts[2].After)
		h.ok(err)
		h.serve(h.runner)
		var again []string
		for _, c := range to.all()[4:] {
			again = append(again, c.event.ID)
		}
		slices.Sort(again)
		want := []string{attempts[2].EventID, attempts[3].EventID}
		slices.Sort(want)
		equal(h, "sent again", again, want)
		_, err = h.service.Replay(h.Context(), h.company.ID, w.ID, event.Latest)
		h.ok(err)
		h.enroll("d9", "")
		h.serve(h.runner)
		equal(h, "calls", len(to.all()), 7)
		_, err = h.service.Replay(h.Context(), h.company.ID, w.ID, "AAAA")
		h.code(fault.CursorExpired, err)
	})
}

var manyWaiting = flag.Int("waiting", 1000, "events that wait in TestWebhook_DeadReceiverSlowsNone; 10,000 for the long run")

// Events of a receiver that does not answer wait, and another gets its own with the next round.
func TestWebhook_DeadReceiverSlowsNone(t *testing.T) {
	withWebhooks(t, func(h *hooks) {
		dead, fine := newReceiver(t), newReceiver(t)
		dead.says(func(event.View) int { return http.StatusServiceUnavailable })
		w, _ := h.create(dead, "device.lost_mode", "key.revoked")
		h.create(fine, "device.enrolled")
		for range *manyWaiting / 500 {
			h.ok(h.db.TellMany(h.Context(), h.company.ID, event.KeyRevoked, 500))
		}
		h.serve(h.runner)
		for range 20 {
			h.clock.Advance(time.Minute)
			h.serve(h.runner)
		}
		equal(h, "held", h.webhook(w.ID).Held, webhook.MaxHeld)
		h.enroll("d1", "")
		h.serve(h.runner)
		equal(h, "calls", len(fine.all()), 1)
		attempts, err := h.service.Deliveries(h.Context(), h.company.ID, w.ID)
		h.ok(err)
		equal(h, "attempts", len(attempts), webhook.MaxAttempts)

		dead.says(nil)
		h.clock.Advance(time.Hour)
		n := len(dead.all())
		for h.webhook(w.ID).Held > 0 || len(dead.all()) < n+*manyWaiting {
			before := len(dead.all())
			h.serve(h.runner)
			if len(dead.all()) == before {
				break
			}
		}
		ids := map[string]bool{}
		for _, c := range dead.all()[n:] {
			ids[c.event.ID] = true
		}
		equal(h, "events after it came back", len(ids), *manyWaiting)
	})
}

// What was deleted before it was sent is counted and in the activity log; a webhook to which
// nothing was to be sent misses nothing.
func TestWebhook_Missed(t *testing.T) {
	withWebhooks(t, func(h *hooks) {
		to, quiet := newReceiver(t), newReceiver(t)
		w, _ := h.create(to, "device.enrolled")
		q, _ := h.create(quiet, "platform.failing")
		to.says(func(event.View) int { return http.StatusGone })
		h.enroll("d1", "")
		h.serve(h.runner)
		h.enroll("d2", "")
		h.enroll("d3", "")
		h.number()
		h.serve(h.runner)
		h.clock.Advance(2 * time.Hour) // nothing happens, so the quiet one is as it was at the last look
		h.serve(h.runner)
		h.clock.Advance(company.DefaultKeepEvents + time.Hour)
		h.ok(h.db.Sweep(h.Context(), h.clock.Now()))
		_, err := h.service.Enable(h.Context(), h.company.ID, w.ID)
		h.ok(err)
		to.says(nil)
		h.enroll("d4", "")
		h.serve(h.runner)
		if h.webhook(w.ID).Missed < 2 {
			h.Errorf("missed is %d", h.webhook(w.ID).Missed)
		}
		equal(h, "missed of the quiet one", h.webhook(q.ID).Missed, 0)
		equal(h, "calls", len(to.all()), 2)
		equal(h, "says so", slices.Contains(h.actions(), activity.WebhookMissed), true)
		_, err = h.service.Delete(h.Context(), h.company.ID, w.ID)
		h.ok(err)
		h.enroll("d5", "")
		h.serve(h.runner)
		equal(h, "calls after it was deleted", len(to.all()), 2)
	})
}
