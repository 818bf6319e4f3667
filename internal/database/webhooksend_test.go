package database_test

import (
	"crypto/x509"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/event"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/webhook"
	"github.com/musterhq/muster/test/poll"
)

// An address is checked when it is connected to: a name or another form of a private address
// reaches nothing, and http reaches the networks of the setting alone.
func TestWebhook_Addresses(t *testing.T) {
	withWebhooks(t, func(h *hooks) {
		var calls atomic.Int64
		count := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls.Add(1) })
		secure, plain := httptest.NewTLSServer(count), httptest.NewServer(count)
		t.Cleanup(secure.Close)
		t.Cleanup(plain.Close)
		roots := x509.NewCertPool()
		roots.AddCert(secure.Certificate())
		port := func(s *httptest.Server) string { return s.URL[strings.LastIndexByte(s.URL, ':'):] }
		for _, c := range []struct {
			networks []netip.Prefix
			url      string
			reached  bool
		}{
			{nil, "https://localhost" + port(secure), false},
			{nil, "https://[::ffff:127.0.0.1]" + port(secure), false},
			{nil, "https://[64:ff9b::7f00:1]" + port(secure), false},
			{nil, "https://169.254.169.254/latest", false},
			{nil, "https://168.63.129.16/", false},
			{nil, "https://100.64.0.1/", false},
			{nil, "https://127.0.0.1" + port(secure), false},
			{loopback(), "https://127.0.0.1" + port(secure), true},
			{loopback(), "http://localhost" + port(plain), true},
			{[]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, "http://localhost" + port(plain), false},
			{[]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, "https://localhost" + port(secure), false},
		} {
			h.service.Networks, h.service.Sender = c.networks, webhook.NewSender(c.networks, roots)
			w, _, err := h.service.Create(h.Context(), h.company, c.url, nil)
			h.ok(err)
			calls.Store(0)
			a, err := h.service.Test(h.Context(), h.company.ID, w.ID)
			h.ok(err)
			if a.Delivered() != c.reached || calls.Load() > 0 != c.reached {
				h.Errorf("%s: delivered %t, %d calls, %s", c.url, a.Delivered(), calls.Load(), a.Detail)
			}
			if !c.reached && !strings.Contains(a.Detail, "not public") {
				h.Errorf("%s: the detail is %q", c.url, a.Detail)
			}
		}
		h.service.Networks = nil
		for _, url := range []string{"http://example.com/", "ftp://example.com", "https://u:p@example.com", "https://", "example.com",
			"https://example.com:0", "https://example.com:65536", "https://example.com/#a", "https://exa\nmple.com/", ""} {
			_, _, err := h.service.Create(h.Context(), h.company, url, nil)
			h.code(fault.InvalidArguments, err)
		}
		_, _, err := h.service.Create(h.Context(), h.company, "https://example.com/", []string{"webhook.test"})
		h.code(fault.InvalidArguments, err)
	})
}

// A receiver that does not answer about one device holds up that device's events alone.
func TestWebhook_StalledReceiver(t *testing.T) {
	withWebhooks(t, func(h *hooks) {
		stalled, fine := newReceiver(t), newReceiver(t)
		hold := make(chan struct{})
		release := sync.OnceFunc(func() { close(hold) })
		h.Cleanup(release)
		a := h.enroll("a", "")
		h.number()
		h.create(stalled)
		h.create(fine)
		stalled.says(func(v event.View) int {
			if strings.HasSuffix(v.Data.AssetID, a.ID) {
				<-hold
			}
			return http.StatusOK
		})
		got := func(fineGot, stalledGot int) {
			h.Helper()
			h.number()
			poll.Until(t, "the events", func() error {
				if err := h.runner.Round(h.Context()); err != nil {
					return err
				}
				if f, s := len(fine.all()), len(stalled.all()); f != fineGot || s != stalledGot {
					return fmt.Errorf("%d of %d events, and %d of %d of the one that stalls", f, fineGot, s, stalledGot)
				}
				return nil
			})
		}
		h.lost("a", true)
		got(1, 1)
		h.enroll("b", "")
		got(2, 2)
		h.lost("a", false)
		h.lost("b", true)
		got(4, 3)
		release()
		got(4, 4)
		h.runner.Wait()
		h.serve(h.runner)
		equal(h, "calls of the one that stalled", len(stalled.all()), 4)
	})
}

// The webhooks of a company that is deleted end with it, with what they hold.
func TestWebhook_CompanyDeleted(t *testing.T) {
	withWebhooks(t, func(h *hooks) {
		to := newReceiver(t)
		to.says(func(event.View) int { return http.StatusInternalServerError })
		h.create(to)
		h.ok(h.db.TellMany(h.Context(), h.company.ID, event.KeyRevoked, 3))
		h.serve(h.runner)
		h.unconnected()
		n := len(to.all())
		h.ok(h.db.DeleteCompany(h.Context(), h.company.ID, &keeper{}))
		h.clock.Advance(time.Hour)
		h.serve(h.runner)
		equal(h, "calls after the deletion", len(to.all()), n)
		left, err := h.db.Text(h.Context(),
			`SELECT (SELECT COUNT(*) FROM webhooks) + (SELECT COUNT(*) FROM webhook_held) + (SELECT COUNT(*) FROM webhook_attempts)`)
		h.ok(err)
		equal(h, "rows", left[0], "0")
	})
}
