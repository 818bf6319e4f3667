package e2e_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/agent/dns/dnstest"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agent/simulated"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/service"
	"github.com/musterhq/muster/test/port"
)

// selfSigned makes a certificate that only its pin can vouch for.
func selfSigned(t *testing.T, host string) (certFile, keyFile string, cert *x509.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host, "localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	if cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der},
		keyFile: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile, cert
}

// The code of an AGENT policy is what Android's set-up wizard reads, with the
// service's address, its pin, and a token; with them, and a name server, the
// real agent finds a service whose certificate no authority signed, on a device without
// resolv.conf. Without the pin it does not trust it.
func TestEnrollment_ByCodeOverTLS(t *testing.T) {
	t.Parallel()
	android := servertest.NewAndroid(t, 1000, simulated.Default("SN-1"))
	env := servertest.New(t)
	certFile, keyFile, cert := selfSigned(t, "muster.test")
	tenant := env.NewTenant("acme")
	replica := env.Start(func(c *config.Service, _ *service.Options) {
		number := port.Reserve(t)
		c.Listen = fmt.Sprintf("127.0.0.1:%d", number)
		c.TLSCert, c.TLSKey, c.PublicURL = certFile, keyFile, fmt.Sprintf("https://muster.test:%d", number)
	})
	client := tenant.Client(replica, access.All)
	local := strings.Replace(client.URL, "muster.test", "127.0.0.1", 1)
	client.URL = bridge(t, local)
	text := client.QRCode(kiosk(env, tenant, "Kiosk", policy.Change{Setting: "CAMERA", Value: "BLOCK"}), map[string]any{"wifiSsid": "site"})
	var code map[string]any
	if err := json.Unmarshal([]byte(text), &code); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	const provisioning = "android.app.extra.PROVISIONING_"
	extras, _ := code[provisioning+"ADMIN_EXTRAS_BUNDLE"].(map[string]any)
	pin := protocol.Pin(cert)
	for name, want := range map[string]any{
		"DEVICE_ADMIN_COMPONENT_NAME": "dev.muster.agent/dev.muster.agent.AdminReceiver", "LEAVE_ALL_SYSTEM_APPS_ENABLED": true,
		"WIFI_SSID":                              "site",
		"DEVICE_ADMIN_PACKAGE_DOWNLOAD_LOCATION": nil, "DEVICE_ADMIN_SIGNATURE_CHECKSUM": nil,
	} {
		if got := code[provisioning+name]; got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if extras["dev.muster.agent.SERVER_URL"] != replica.PublicURL() || extras["dev.muster.agent.SERVER_PIN"] != pin {
		t.Errorf("the server is %v with pin %v", extras["dev.muster.agent.SERVER_URL"], extras["dev.muster.agent.SERVER_PIN"])
	}
	token, _ := extras["dev.muster.agent.ENROLLMENT_TOKEN"].(string)
	args := []string{"--server", replica.PublicURL(), "--token", token, "--dns", nameServer(t, "muster.test", "127.0.0.1")}
	blind, output := android.Agent(t.Context(), "enroll", args...)
	if err := blind.Run(); err == nil || !strings.Contains(output.String(), "certificate") {
		t.Errorf("without the pin: %v, %s", err, output)
	}
	args = append(args, "--pin", pin)
	misled, output := android.Agent(t.Context(), "enroll", append(args, "--command-key", "another")...)
	if err := misled.Run(); err == nil || !strings.Contains(output.String(), "command key") {
		t.Errorf("with another command key: %v, %s", err, output)
	}
	key, _ := extras["dev.muster.agent.COMMAND_KEY"].(string)
	android.Do("enroll", append(args, "--command-key", key)...)
	android.Do("run", "--once")
	if s := android.State(); !s.Platform.Restrictions["no_camera"] {
		t.Errorf("the policy did not arrive: %v", s.Platform.Restrictions)
	}
	noApp(t, client.URL)
}

// TestQRCode_ShortNames: with the option, all of a code's names are those that newer wizards
// know in short; the values stay.
func TestQRCode_ShortNames(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	replica := env.Start(func(c *config.Service, _ *service.Options) { c.QRShortNames = true })
	tenant := env.NewTenant("acme")
	text := tenant.Client(replica, access.All).QRCode(kiosk(env, tenant, "Kiosk"), map[string]any{"wifiSsid": "site"})
	var code map[string]any
	if err := json.Unmarshal([]byte(text), &code); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	extras, _ := code["a.a.e.PAEB"].(map[string]any)
	if strings.Contains(text, "android.app.extra") {
		t.Errorf("the code has long names: %s", text)
	}
	for name, want := range map[string]any{"PWS": "site", "PLASAE": true, "PDACN": "dev.muster.agent/dev.muster.agent.AdminReceiver"} {
		if got := code["a.a.e."+name]; got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if got := extras["dev.muster.agent.SERVER_URL"]; got != replica.PublicURL() {
		t.Errorf("the server is %v, want %s", got, replica.PublicURL())
	}
}

// bridge is a plain way to a service on TLS, for the test's own client.
func bridge(t *testing.T, to string) string {
	t.Helper()
	through := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	t.Cleanup(through.CloseIdleConnections)
	return serveHTTP(t, func(w http.ResponseWriter, r *http.Request) {
		out := r.Clone(r.Context())
		out.RequestURI = ""
		var err error
		if out.URL, err = out.URL.Parse(to + r.URL.RequestURI()); err != nil {
			t.Error(err)
			return
		}
		answer, err := through.Do(out)
		if err != nil {
			t.Error(err)
			return
		}
		defer answer.Body.Close()
		for name := range answer.Header {
			w.Header().Set(name, answer.Header.Get(name))
		}
		w.WriteHeader(answer.StatusCode)
		_, _ = io.Copy(w, answer.Body)
	})
}

// noApp: the download address answers with a page that says what is the matter.
func noApp(t *testing.T, address string) {
	t.Helper()
	answer := servertest.Send(t, "GET", address+"/agent/agent.apk", "")
	if answer.Status != 404 || !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/html") ||
		!strings.Contains(string(answer.Body), "does not ship the Android app") {
		t.Errorf("%d: %s", answer.Status, answer.Body)
	}
}

func serveHTTP(t *testing.T, serve http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(serve)
	t.Cleanup(server.Close)
	return server.URL
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
