package service_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/service"
)

func TestListen_ReadsARenewedCertificate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writeCertificate(t, cert, key, 1)
	listener, err := service.Listen(t.Context(), "127.0.0.1:0", cert, key)
	if err != nil {
		t.Fatal(err)
	}
	go accept(listener)
	t.Cleanup(func() { _ = listener.Close() })
	if got := serialServed(t, listener.Addr()); got != 1 {
		t.Errorf("certificate %d is served, want 1", got)
	}
	if err := os.WriteFile(cert, []byte("half a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := serialServed(t, listener.Addr()); got != 1 {
		t.Errorf("during the renewal certificate %d is served, want 1", got)
	}
	writeCertificate(t, cert, key, 2)
	if got := serialServed(t, listener.Addr()); got != 2 {
		t.Errorf("after the renewal certificate %d is served, want 2", got)
	}
}

func TestListen_ReportsWhatIsWrong(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	if _, err := service.Listen(t.Context(), taken.Addr().String(), "", ""); err == nil ||
		!strings.Contains(err.Error(), "is taken by another program") {
		t.Errorf("a taken address: %v", err)
	}
	if _, err := service.Listen(t.Context(), "127.0.0.1:0", "missing.pem", "missing.pem"); err == nil ||
		!strings.Contains(err.Error(), "TLS certificate") {
		t.Errorf("a missing certificate: %v", err)
	}
}

func accept(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			_ = conn.(*tls.Conn).Handshake()
			_ = conn.Close()
		}()
	}
}

func serialServed(t *testing.T, at net.Addr) int64 {
	t.Helper()
	conn, err := tls.Dial("tcp", at.String(), &tls.Config{InsecureSkipVerify: true}) // the test looks at the certificate itself
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

func writeCertificate(t *testing.T, cert, key string, serial int64) {
	t.Helper()
	writeCertificateUntil(t, cert, key, serial, time.Now().Add(time.Hour))
}

func writeCertificateUntil(t *testing.T, cert, key string, serial int64, ends time.Time) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: ends, DNSNames: []string{"localhost"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A renewal that fails is logged once for each state of the files, not at each
// connection, and so is a certificate that has ended.
func TestCertificate_FailuresAreLogged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writeCertificateUntil(t, cert, key, 1, time.Now().Add(-time.Hour))
	var log safeBuffer
	listener, err := service.ListenLogged(t.Context(), "127.0.0.1:0", cert, key, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	go accept(listener)
	t.Cleanup(func() { _ = listener.Close() })
	if !strings.Contains(log.String(), "certificate expired") {
		t.Errorf("nothing is said of an expired certificate:\n%s", log.String())
	}
	if err := os.WriteFile(cert, []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		serialServed(t, listener.Addr())
	}
	if got := strings.Count(log.String(), `level=WARN msg="certificate reload failed"`); got != 1 {
		t.Errorf("%d warnings of the failed reload, want 1:\n%s", got, log.String())
	}
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	serialServed(t, listener.Addr())
	if got := strings.Count(log.String(), "certificate reload failed"); got != 2 {
		t.Errorf("%d warnings after a second failure, want 2:\n%s", got, log.String())
	}
}

// safeBuffer is a buffer that goroutines write to.
type safeBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// What the operator's page says of paths and limits is what the program does.
func TestListen_OperatingPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	sizing, err := os.ReadFile("../../docs/how-to/sizing.md")
	if err != nil {
		t.Fatal(err)
	}
	page = append(page, sizing...)
	for _, fact := range []string{"`" + protocol.Base + "/wake`", fmt.Sprintf("headers to %d KiB", service.MaxHeaderBytes>>10),
		fmt.Sprintf("body to %d KiB", protocol.MaxBody>>10), fmt.Sprintf("larger than %d MiB", service.MaxRequestBytes>>20),
		"LimitNOFILE="} {
		if !strings.Contains(strings.Join(strings.Fields(string(page)), " "), fact) {
			t.Errorf("docs/operating.md and docs/how-to/sizing.md do not say %q", fact)
		}
	}
}
