package e2e_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/servertest"
)

// signed makes a certificate by a template that the authority signs, or itself.
func signed(t *testing.T, template *x509.Certificate, above *x509.Certificate,
	by *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if above == nil {
		above, by = template, key
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	der, err := x509.CreateCertificate(rand.Reader, template, above, &key.PublicKey, by)
	if err != nil {
		t.Fatal(err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return made, key
}

// With pins the app's core takes the pinned key itself, or a certificate for the
// host that a pinned authority has signed and that has not expired; nothing else.
func TestAndroidCore_Pins(t *testing.T) {
	t.Parallel()
	p := newJavaPhone(t)
	hour := func(n int) time.Time { return time.Now().Add(time.Duration(n) * time.Hour) }
	authority := func(name string) (*x509.Certificate, *ecdsa.PrivateKey) {
		return signed(t, &x509.Certificate{Subject: pkix.Name{CommonName: name}, NotBefore: hour(-2), NotAfter: hour(2), IsCA: true,
			BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, nil, nil)
	}
	root, rootKey := authority("root")
	stranger, _ := authority("root") // the same name, another key
	leaf := func(host string, until time.Time) (*x509.Certificate, *ecdsa.PrivateKey) {
		return signed(t, &x509.Certificate{Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
			NotBefore: hour(-2), NotAfter: until,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, root, rootKey)
	}
	for _, c := range []struct {
		name  string
		host  string
		until time.Time
		chain []*x509.Certificate // after the host's own
		pin   *x509.Certificate   // nil: the host's own
		takes bool
	}{
		{"the key itself, whatever else it says", "other.test", hour(-1), nil, nil, true},
		{"its authority", "localhost", hour(1), []*x509.Certificate{root}, root, true},
		{"its authority, wrong host", "other.test", hour(1), []*x509.Certificate{root}, root, false},
		{"its authority, expired", "localhost", hour(-1), []*x509.Certificate{root}, root, false},
		{"its authority, which is not shown", "localhost", hour(1), nil, root, false},
		{"another authority", "localhost", hour(1), []*x509.Certificate{root}, stranger, false},
		{"another authority, which is shown but has not signed it", "localhost", hour(1), []*x509.Certificate{stranger, root}, stranger,
			false},
	} {
		t.Run(c.name, func(t *testing.T) {
			cert, key := leaf(c.host, c.until)
			if c.pin == nil {
				c.pin = cert
			}
			shown := tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}
			for _, above := range c.chain {
				shown.Certificate = append(shown.Certificate, above.Raw)
			}
			server := httptest.NewUnstartedServer(http.NotFoundHandler())
			server.TLS = &tls.Config{Certificates: []tls.Certificate{shown}}
			server.Config.ErrorLog = log.New(io.Discard, "", 0)
			server.StartTLS()
			t.Cleanup(server.Close)
			address := strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
			out, _ := p.try("enroll", "--server", address, "--token", "met_x", "--pin", protocol.Pin(c.pin))
			if reached := strings.Contains(out, "refused the enrollment"); reached != c.takes {
				t.Errorf("pinned %s: reached %v, want %v: %s", c.name, reached, c.takes, out)
			}
			if out, _ := p.try("enroll", "--server", address, "--token", "met_x"); strings.Contains(out, "refused the enrollment") {
				t.Errorf("pinned %s: without pins it is trusted", c.name)
			}
		})
	}
}

// With pins, the requests of a check-in share one connection, as without.
func TestAndroidCore_OneConnectionWithPins(t *testing.T) {
	t.Parallel()
	p, env := newJavaPhone(t), servertest.New(t)
	tenant := env.NewAgentSite("acme", "CAMERA=BLOCK")
	token, address := servertest.AgentToken(t, tenant.Client(env.Start(), access.All).QRCode(tenant.Policy, map[string]any{}))
	to, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	var requests, connections atomic.Int32
	server := httptest.NewUnstartedServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		requests.Add(1)
		r.SetURL(to)
	}})
	server.Config.ConnState = func(_ net.Conn, now http.ConnState) {
		if now == http.StateNew {
			connections.Add(1)
		}
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	p.must("enroll", "--server", server.URL, "--token", token, "--pin", protocol.Pin(server.Certificate()))
	requests.Store(0)
	connections.Store(0)
	p.must("run", "--once")
	if requests.Load() < 3 || connections.Load() != 1 {
		t.Errorf("%d requests over %d connections", requests.Load(), connections.Load())
	}
}

// The app's core goes through the system's proxy: the proxy sees the server's
// name and the encrypted connection, which the pins still guard. A proxy that
// refuses is a failure to reach the service.
func TestAndroidCore_SystemProxy(t *testing.T) {
	t.Parallel()
	p := newJavaPhone(t)
	server := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	var request atomic.Pointer[string]
	refuses := atomic.Bool{}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request.Store(new(r.Method + " " + r.Host))
		if refuses.Load() {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		tunnel(w, server.Listener.Addr().String())
	}))
	t.Cleanup(proxy.Close)
	host, port, err := net.SplitHostPort(proxy.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	settings := []string{"-Dhttps.proxyHost=" + host, "-Dhttps.proxyPort=" + port}
	enroll := func(pin string) string {
		out, _ := p.command(settings, "enroll", "--server", "https://muster.test", "--token", "met_x", "--pin", pin).CombinedOutput()
		return string(out)
	}
	pin := protocol.Pin(server.Certificate())
	if out := enroll(pin); !strings.Contains(out, "refused the enrollment") {
		t.Errorf("through the proxy the service was not reached: %s", out)
	}
	if got := request.Load(); got == nil || *got != "CONNECT muster.test:443" {
		t.Errorf("the proxy was asked for %v", got)
	}
	other, _ := signed(t, &x509.Certificate{Subject: pkix.Name{CommonName: "other"}}, nil, nil)
	if out := enroll(protocol.Pin(other)); strings.Contains(out, "refused the enrollment") {
		t.Errorf("through the proxy another certificate was taken: %s", out)
	}
	refuses.Store(true)
	if out := enroll(pin); strings.Contains(out, "refused the enrollment") || !strings.Contains(out, "cannot") {
		t.Errorf("a proxy that refuses: %s", out)
	}
}

// tunnel connects the client of a CONNECT request with an address.
func tunnel(w http.ResponseWriter, address string) {
	to, err := net.Dial("tcp", address)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer to.Close()
	from, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer from.Close()
	_, _ = io.WriteString(from, "HTTP/1.1 200 OK\r\n\r\n")
	go func() {
		_, _ = io.Copy(to, buffered)
		_ = to.Close()
	}()
	_, _ = io.Copy(from, to)
}
