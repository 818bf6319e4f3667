package dns_test

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/agent/dns"
	"github.com/musterhq/muster/internal/agent/dns/dnstest"
)

// tools plays dumpsys and ping.
type tools map[string]string

func (t tools) Run(_ context.Context, tool string, args ...string) (string, error) {
	if text, ok := t[tool]; ok {
		return text, nil
	}
	return "", errors.New("no " + tool)
}

func TestLookup(t *testing.T) {
	t.Parallel()
	given := nameServer(t, "muster.test", "192.0.2.7")
	for name, test := range map[string]struct {
		resolver *dns.Resolver
		host     string
		want     string // empty: it cannot be found
	}{
		"a number":             {&dns.Resolver{Run: tools{}.Run}, "192.0.2.1", "192.0.2.1"},
		"this machine":         {&dns.Resolver{Run: tools{}.Run}, "localhost", "127.0.0.1"},
		"given":                {&dns.Resolver{Run: tools{}.Run, Given: []string{"bad", given}}, "muster.test", "192.0.2.7"},
		"given, after dumpsys": {&dns.Resolver{Run: tools{"dumpsys": "nothing"}.Run, Given: []string{given}}, "muster.test", "192.0.2.7"},
		"ping, in an unknown form": {&dns.Resolver{Run: tools{"ping": "PING other.test (192.0.2.9) 56(84) bytes of data.\n"}.Run,
			Given: []string{given}}, "other.test", "192.0.2.9"},
		"unknown":   {&dns.Resolver{Run: tools{}.Run, Given: []string{given}}, "other.test", ""},
		"an option": {&dns.Resolver{Run: tools{"ping": "PING x (192.0.2.9) "}.Run}, "-f", ""},
		"a command": {&dns.Resolver{Run: tools{"ping": "PING x (192.0.2.9) "}.Run}, "a;reboot", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, err := test.resolver.Lookup(t.Context(), test.host)
			if test.want == "" {
				if err == nil {
					t.Errorf("found %v, want an error", found)
				}
				return
			}
			if err != nil || found[0].String() != test.want {
				t.Errorf("%v, %v, want %q", found, err, test.want)
			}
		})
	}
}

func TestLookup_RemembersLastGoodAddress(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	memory := filepath.Join(t.TempDir(), "addresses.json")
	knows := dns.Resolver{Run: tools{}.Run, Given: []string{nameServer(t, "muster.test", "127.0.0.1")}, Memory: memory}
	forgets := dns.Resolver{Run: tools{}.Run, Memory: memory}
	for _, r := range []*dns.Resolver{&knows, &forgets} {
		conn, err := r.Dial(t.Context(), "tcp", "muster.test:"+port)
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
	}
}

func TestParseServers(t *testing.T) {
	t.Parallel()
	got := dns.ParseServers("x DnsAddresses: [ /192.0.2.53,/2001:db8::53 ] y\nDnsAddresses: [ /192.0.2.53 ] DnsAddresses: [ " +
		"]\nDnsAddresses: [ /0.0.0.0,dns.test/192.0.2.54 ]")
	if len(got) != 3 || got[0].String() != "192.0.2.53:53" || got[1].String() != "[2001:db8::53]:53" || got[2].String() != "192.0.2.54:53" {
		t.Errorf("%v", got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("DnsAddresses: [ /192.0.2.53,/fe80::1%wlan0 ]")
	f.Add("PING muster.test (192.0.2.1) 56(84) bytes of data.")
	f.Add("PING6 muster.test(2001:db8::1) 56 data bytes")
	f.Fuzz(func(t *testing.T, text string) {
		for _, at := range dns.ParseServers(text) {
			if !at.IsValid() || at.Port() != 53 || !strings.Contains(text, "DnsAddresses") {
				t.Errorf("%v from %q", at, text)
			}
		}
		if ip, ok := dns.ParsePing(text); ok && (!ip.IsValid() || ip.IsUnspecified()) {
			t.Errorf("%v from %q", ip, text)
		}
	})
}

// nameServer starts a name server for the test.
func nameServer(t *testing.T, host, ip string) string {
	t.Helper()
	address, stop, err := dnstest.Start(host, ip)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return address
}
