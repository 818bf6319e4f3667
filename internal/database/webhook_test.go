package database_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/event"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/webhook"
)

// clear seals nothing.
type clear struct{}

func (clear) Seal(purpose string, data []byte) []byte { return []byte(purpose + "\n" + string(data)) }

func (clear) Open(purpose string, sealed []byte) ([]byte, error) {
	text, ok := strings.CutPrefix(string(sealed), purpose+"\n")
	if !ok {
		return nil, io.ErrUnexpectedEOF
	}
	return []byte(text), nil
}

// taken is a call that a receiver got.
type taken struct {
	header http.Header
	body   []byte
	event  event.View
}

// receiver takes events.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	calls  []taken
	answer func(event.View) int // the status; nil: 204
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		got := taken{header: q.Header}
		got.body, _ = io.ReadAll(q.Body)
		if err := json.Unmarshal(got.body, &got.event); err != nil {
			t.Error(err)
		}
		r.mu.Lock()
		r.calls = append(r.calls, got)
		answer := r.answer
		r.mu.Unlock()
		status := http.StatusNoContent
		if answer != nil {
			status = answer(got.event)
		}
		if status/100 == 3 {
			w.Header().Set("Location", "/elsewhere")
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) says(answer func(event.View) int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

// all are the calls so far.
func (r *receiver) all() []taken {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls)
}

// types are the types of the calls since the first n.
func (r *receiver) types(n int) (all []string) {
	for _, c := range r.all()[n:] {
		all = append(all, string(c.event.Type))
	}
	return all
}

// counts counts calls.
type counts struct {
	mu                sync.Mutex
	delivered, failed int
}

func (c *counts) WebhookCalled(delivered bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if delivered {
		c.delivered++
	} else {
		c.failed++
	}
}

// hooks is a company with webhooks, and a replica that serves them.
type hooks struct {
	*fixture
	service webhook.Service
	runner  *webhook.Runner
	counts  *counts
}

func loopback() []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
}

func withWebhooks(t *testing.T, test func(h *hooks)) {
	t.Helper()
	withCompany(t, func(f *fixture) {
		h := &hooks{fixture: f, counts: &counts{}}
		h.service = webhook.Service{Store: f.db, Sealer: clear{}, Sender: webhook.NewSender(loopback(), nil),
			Networks: loopback(), Now: f.clock.Now}
		h.runner = h.replica(f.db)
		test(h)
	})
}

// replica serves webhooks with a queue.
func (h *hooks) replica(q webhook.Queue) *webhook.Runner {
	return webhook.NewRunner(webhook.Config{Queue: q, Sender: h.service.Sender, Sealer: h.service.Sealer, Observer: h.counts,
		Now: h.clock.Now,
		Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
}

func (h *hooks) create(to *receiver, types ...string) (webhook.Webhook, string) {
	h.Helper()
	w, secret, err := h.service.Create(h.Context(), h.company, to.URL+"/hook?token=t0ps3cret", types)
	h.ok(err)
	return w, secret
}

// number gives events their positions.
func (h *hooks) number() {
	h.Helper()
	for n := 1; n > 0; {
		var err error
		n, err = h.db.NumberRound(h.Context())
		h.ok(err)
	}
}

// serve has a replica send what is due.
func (h *hooks) serve(r *webhook.Runner) {
	h.Helper()
	h.number()
	for range 3 { // a round begins where another ended
		h.ok(r.Round(h.Context()))
		r.Wait()
	}
}

// lost turns the lost mode of a device on and off, which makes an event each time.
func (h *hooks) lost(device string, on bool) {
	h.Helper()
	h.clock.Advance(time.Millisecond)
	h.ok(h.lose(h.Context(), h.db, device, on))
}

func (h *hooks) webhook(id string) webhook.Webhook {
	h.Helper()
	w, err := h.db.Webhook(h.Context(), h.company.ID, id)
	h.ok(err)
	return w
}

// actions are the actions of the company's activity log about webhooks.
func (h *hooks) actions() (all []activity.Action) {
	h.Helper()
	entries, err := h.db.Activity(h.Context(), activity.Filter{CompanyID: h.company.ID, Area: "webhook"}, activity.Cursor{}, 100)
	h.ok(err)
	for _, e := range entries {
		all = append(all, e.Action)
		if strings.Contains(e.Target.Name, "t0ps3cret") {
			h.Errorf("the activity log has the address: %+v", e.Target)
		}
	}
	return all
}

// A webhook gets its types from when it was created, once each, and its position moves.
func TestWebhook_Delivers(t *testing.T) {
	withWebhooks(t, func(h *hooks) {
		to, other := newReceiver(t), newReceiver(t)
		h.enroll("before", "")
		h.number()
		w, _ := h.create(to, "device.enrolled")
		h.create(other, "device.lost_mode")
		a := h.enroll("d1", "")
		h.enroll("d2", "")
		h.serve(h.runner)
		h.lost("d1", true)
		h.serve(h.runner)
		equal(h, "types", to.types(0), []string{"device.enrolled", "device.enrolled"})
		equal(h, "other types", other.types(0), []string{"device.lost_mode"})
		first := to.all()[0]
		equal(h, "asset", slices.ContainsFunc(to.all(), func(c taken) bool { return strings.HasSuffix(c.event.Data.AssetID, a.ID) }), true)
		equal(h, "webhook-id", first.header.Get("webhook-id"), first.event.ID)
		equal(h, "content type", first.header.Get("Content-Type"), "application/json")
		attempts, err := h.service.Deliveries(h.Context(), h.company.ID, w.ID)
		h.ok(err)
		equal(h, "attempts", len(attempts), 2)
		equal(h, "held", h.webhook(w.ID).Held, 0)
		equal(h, "actions", h.actions(), []activity.Action{activity.WebhookCreated, activity.WebhookCreated})
		_, err = h.db.Webhook(h.Context(), h.newCompany("other").ID, w.ID)
		h.code(fault.NotFound, err)
	})
}
