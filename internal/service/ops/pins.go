package ops

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/url"
	"os"
	"time"

	"github.com/musterhq/muster/internal/agent/protocol"
)

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
