package outbound_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/outbound"
)

func TestPublic_RefusesEverySpecialNetwork(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"8.8.8.8": true, "2606:4700::1111": true,
		"127.0.0.1": false, "10.0.0.1": false, "192.168.1.1": false, "169.254.169.254": false, "100.64.0.1": false,
		"0.0.0.0": false, "224.0.0.1": false, "255.255.255.255": false, "192.88.99.1": false,
		"::1": false, "::ffff:10.0.0.1": false, "::10.0.0.1": false, "fe80::1%eth0": false, "fec0::1": false, "fc00::1": false,
		"3fff::1": false, "5f00::1": false, "64:ff9b::a00:1": false, "2002:a00:1::": false, "2001:db8::1": false, "ff02::1": false,
	} {
		t.Run(text, func(t *testing.T) {
			if got := outbound.Public(netip.MustParseAddr(text)); got != want {
				t.Errorf("%s: got %v, want %v", text, got, want)
			}
		})
	}
}

func TestClient_Limits(t *testing.T) {
	t.Parallel()
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		switch r.URL.Path {
		case "/long":
			_, _ = fmt.Fprint(w, strings.Repeat("x", 101))
		case "/moved":
			http.Redirect(w, r, "/fits", http.StatusFound)
		default:
			_, _ = fmt.Fprint(w, strings.Repeat("x", 100))
		}
	}))
	t.Cleanup(server.Close)
	options := outbound.Options{Timeout: 5 * time.Second, MaxBody: 100, PerHost: 1, Total: 1}
	get := func(client *http.Client, address string) (int, string, error) {
		response, err := client.Get(address)
		if err != nil {
			return 0, "", err
		}
		defer func() { _ = response.Body.Close() }()
		text, err := io.ReadAll(response.Body)
		return response.StatusCode, string(text), err
	}
	for _, address := range []string{server.URL, strings.Replace(server.URL, "127.0.0.1", "localhost", 1),
		strings.Replace(server.URL, "http:", "https:", 1)} {
		if _, _, err := get(outbound.NewClient(options), address+"/fits"); err == nil || requests != 0 {
			t.Errorf("%s without permission: got %v and %d requests, want an error and none", address, err, requests)
		}
	}
	options.Allow = outbound.Within([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})
	client := outbound.NewClient(options)
	if _, text, err := get(client, server.URL+"/fits"); err != nil || len(text) != 100 {
		t.Errorf("an answer of the greatest length: got %d bytes, %v", len(text), err)
	}
	if _, _, err := get(client, server.URL+"/long"); err == nil {
		t.Error("a longer answer was read")
	}
	if status, _, err := get(client, server.URL+"/moved"); err != nil || status != http.StatusFound {
		t.Errorf("redirect: got %d, %v, want it not followed", status, err)
	}
	options.Port = 443
	if _, _, err := get(outbound.NewClient(options), server.URL+"/fits"); err == nil {
		t.Error("another port was dialed")
	}
	if err := outbound.CheckScheme("http", "10.0.0.1", func(netip.Addr) bool { return true }); err == nil {
		t.Error("http is allowed beyond loopback")
	}
}
