package ops

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/agent/protocol"
)

// Certificate serves a certificate from files and reads them again when
// they change, so that a renewed certificate needs no restart.
type Certificate struct {
	cert, key string
	log       *slog.Logger
	now       func() time.Time

	mu     sync.Mutex
	loaded *tls.Certificate
	stamp  [2]time.Time
	failed string // the failure that was logged last
}

// NewCertificate returns the certificate of two files, which are read when it is first
// asked for.
func NewCertificate(cert, key string, log *slog.Logger, now func() time.Time) *Certificate {
	return &Certificate{cert: cert, key: key, log: log, now: now}
}

// Get implements tls.Config.GetCertificate. While the files cannot be read, as
// half-way through a renewal, the pair that was read before goes on serving.
func (c *Certificate) Get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	stamp, err := c.stamps()
	if err == nil && c.loaded != nil && stamp == c.stamp {
		return c.loaded, nil
	}
	if err == nil {
		var pair tls.Certificate
		if pair, err = tls.LoadX509KeyPair(c.cert, c.key); err == nil {
			c.loaded, c.stamp, c.failed = &pair, stamp, ""
			if ends := pair.Leaf.NotAfter; !c.now().Before(ends) {
				c.log.Warn("certificate expired", "file", c.cert, "not_after", ends.UTC())
			}
			return c.loaded, nil
		}
	}
	if c.loaded == nil {
		return nil, fmt.Errorf("cannot load the TLS certificate (MUSTER_TLS_CERT, MUSTER_TLS_KEY): %w", err)
	}
	// Each state of the files that cannot be read is reported once, not at each
	// connection.
	if failure := fmt.Sprint(err, stamp); failure != c.failed {
		c.failed = failure
		c.log.Warn("certificate reload failed", "file", c.cert, "error", err, "serving_until", c.loaded.Leaf.NotAfter.UTC())
	}
	return c.loaded, nil
}

// NotAfter is when the certificate that is served ends, in Unix seconds. It
// reads changed files, so that a failed renewal shows without a connection.
func (c *Certificate) NotAfter() float64 {
	pair, err := c.Get(nil)
	if err != nil {
		return 0
	}
	return float64(pair.Leaf.NotAfter.Unix())
}

func (c *Certificate) stamps() (stamp [2]time.Time, err error) {
	for i, path := range []string{c.cert, c.key} {
		info, err := os.Stat(path)
		if err != nil {
			return stamp, err
		}
		stamp[i] = info.ModTime()
	}
	return stamp, nil
}

// Pins are what devices are told of the service's certificate, a PEM file: nothing
// where the world trusts it for the public address, or where something in front of the
// service shows one (certificate is empty then); else the key of its authority, or its
// own. The file is read each time, because it may have been renewed.
func Pins(certificate, public string, now time.Time) ([]string, error) {
	if certificate == "" {
		return nil, nil
	}
	address, err := url.Parse(public)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(certificate)
	if err != nil {
		return nil, err
	}
	chain, err := readChain(text)
	if err != nil {
		return nil, fmt.Errorf("the certificate %s cannot be read: %w", certificate, err)
	}
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	if _, err := chain[0].Verify(x509.VerifyOptions{DNSName: address.Hostname(), Intermediates: between, CurrentTime: now}); err == nil {
		return nil, nil
	}
	last := chain[len(chain)-1]
	if len(chain) > 1 && !last.IsCA {
		last = chain[0]
	}
	return []string{protocol.Pin(last)}, nil
}

// readChain reads the certificates of a PEM file, the service's own first.
func readChain(text []byte) ([]*x509.Certificate, error) {
	var chain []*x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		chain = append(chain, c)
	}
	if len(chain) == 0 {
		return nil, fmt.Errorf("there is no certificate in it")
	}
	return chain, nil
}
