package service_test

import (
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/musterhq/muster/internal/service"
)

// Clients cannot choose the address that they are counted by: X-Forwarded-For is
// believed as far as trusted proxies wrote it.
func TestAddress_ClientOfARequest(t *testing.T) {
	t.Parallel()
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for _, test := range []struct {
		proxies   []netip.Prefix
		peer      string
		forwarded []string
		want      string
	}{
		{nil, "192.0.2.1:1", nil, "192.0.2.1"},
		{nil, "192.0.2.1:1", []string{"198.51.100.1"}, "192.0.2.1"},
		{trusted, "192.0.2.1:1", []string{"198.51.100.1"}, "192.0.2.1"},
		{trusted, "10.1.1.1:1", []string{"198.51.100.1"}, "198.51.100.1"},
		{trusted, "[::ffff:10.1.1.1]:1", []string{"198.51.100.1"}, "198.51.100.1"},
		{trusted, "10.1.1.1:1", []string{"1.2.3.4, 198.51.100.1"}, "198.51.100.1"},
		{trusted, "10.1.1.1:1", []string{"1.2.3.4", "198.51.100.1, 10.2.2.2"}, "198.51.100.1"},
		{trusted, "10.1.1.1:1", []string{"1.2.3.4, nonsense"}, "10.1.1.1"},
		{trusted, "10.1.1.1:1", nil, "10.1.1.1"},
		{trusted, "[fd00::1]:1", []string{"2001:db8::7"}, "2001:db8::7"},
	} {
		t.Run(test.peer, func(t *testing.T) {
			r := httptest.NewRequest("GET", "/", nil)
			r.RemoteAddr, r.Header["X-Forwarded-For"] = test.peer, test.forwarded
			if got := service.ClientAddress(test.proxies, r); got != test.want {
				t.Errorf("%s with %q: %s, want %s", test.peer, test.forwarded, got, test.want)
			}
		})
	}
}
