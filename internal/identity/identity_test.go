package identity_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/test/expect"
)

// What a provider says of itself is kept for an hour, and not for longer if the clock was ahead.
func TestAddress_KeepsADescriptionForAnHour(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	var p account.IdentityProvider
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"issuer":%q,"authorization_endpoint":%q,"token_endpoint":%q,"jwks_uri":%q}`, p.Issuer,
			p.Issuer+"/authorize", p.Issuer+"/token", p.Issuer+"/keys")
	}))
	t.Cleanup(server.Close)
	p.Issuer = server.URL
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c := identity.New("https://muster.example/callback", []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		func() time.Time { return now })
	for _, at := range []struct {
		name string
		step time.Duration
		want int64 // how often the provider was asked
	}{
		{"first", 0, 1}, {"within the hour", 59 * time.Minute, 1}, {"after the hour", time.Minute, 2},
		{"after a step back by 30 s", -30 * time.Second, 2}, {"after a clock that was ahead", -300 * 24 * time.Hour, 3},
	} {
		now = now.Add(at.step)
		_, err := c.Address(t.Context(), p, account.ProviderSignIn{})
		expect.Equal(t, at.name, expect.Values{"error": {err, error(nil)}, "asked": {asked.Load(), at.want}})
	}
}
