package agent_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/protocol"
)

// issued is a certificate with its key.
type issued struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// issue makes a certificate; a nil parent signs itself.
func issue(t *testing.T, host string, authority bool, parent *issued, ends time.Time) *issued {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: host},
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: ends,
		IsCA: authority, BasicConstraintsValid: true}
	if !authority {
		template.DNSNames = []string{host}
	}
	made := &issued{template, key}
	if parent == nil {
		parent = made
	}
	text, err := x509.CreateCertificate(rand.Reader, template, parent.cert, &key.PublicKey, parent.key)
	if err != nil {
		t.Fatal(err)
	}
	if made.cert, err = x509.ParseCertificate(text); err != nil {
		t.Fatal(err)
	}
	return made
}

// serve answers on TLS with a chain.
func serve(t *testing.T, leaf *issued, more ...*issued) string {
	t.Helper()
	chain := tls.Certificate{PrivateKey: leaf.key, Certificate: [][]byte{leaf.cert.Raw}}
	for _, c := range more {
		chain.Certificate = append(chain.Certificate, c.cert.Raw)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{chain}}
	server.Config.ErrorLog = nil
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// Without pins a certificate is judged as everywhere else, and no redirect is followed.
func TestNewClient(t *testing.T) {
	t.Parallel()
	client := agent.NewClient()
	config := client.Transport.(*http.Transport).TLSClientConfig
	if config.InsecureSkipVerify || config.VerifyConnection != nil || config.MinVersion < tls.VersionTLS12 {
		t.Errorf("certificates are judged in another way: %+v", config)
	}
	if err := client.CheckRedirect(nil, nil); !errors.Is(err, http.ErrUseLastResponse) {
		t.Errorf("a redirect: %v", err)
	}
}

// A pinned key is the service's, however its certificate came about; a pinned
// authority vouches for the service's host alone; no other is trusted.
func TestPins(t *testing.T) {
	t.Parallel()
	later, past := time.Now().Add(time.Hour), time.Now().Add(-time.Hour)
	authority, stranger := issue(t, "CA", true, nil, later), issue(t, "CA", true, nil, later)
	own, old := issue(t, "muster.test", false, nil, later), issue(t, "muster.test", false, nil, past)
	signed, foreign := issue(t, "muster.test", false, authority, later), issue(t, "other.test", false, authority, later)
	forged, lapsed := issue(t, "muster.test", false, stranger, later), issue(t, "muster.test", false, authority, past)
	pin := func(all ...*issued) (pins []string) {
		for _, c := range all {
			pins = append(pins, protocol.Pin(c.cert))
		}
		return pins
	}
	for name, test := range map[string]struct {
		pins  []string
		chain []*issued
		good  bool
	}{
		"the service's own key":                 {pin(own), []*issued{own}, true},
		"one of several":                        {pin(stranger, own), []*issued{own}, true},
		"its key, in a certificate that lapsed": {pin(old), []*issued{old}, true},
		"its authority":                         {pin(authority), []*issued{signed, authority}, true},
		"no pins, a private certificate":        {nil, []*issued{own}, false},
		"another key":                           {pin(own), []*issued{signed, authority}, false},
		"another host of its authority":         {pin(authority), []*issued{foreign, authority}, false},
		"its authority, lapsed":                 {pin(authority), []*issued{lapsed, authority}, false},
		"an authority that only stands by":      {pin(authority), []*issued{forged, authority}, false},
		"an authority of the same name":         {pin(authority), []*issued{forged, stranger}, false},
		"the authority's key shown by a leaf":   {pin(own), []*issued{forged, own}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := serve(t, test.chain[0], test.chain[1:]...)
			dial := (&net.Dialer{}).DialContext
			client := agent.Connection{Pins: test.pins}.Client(func(ctx context.Context, network, _ string) (net.Conn, error) {
				return dial(ctx, network, at)
			}, nil, time.Now)
			response, err := client.Get("https://muster.test/")
			if err == nil {
				response.Body.Close()
			}
			if (err == nil) != test.good {
				t.Errorf("%v", err)
			}
		})
	}
}
