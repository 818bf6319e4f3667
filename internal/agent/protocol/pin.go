package protocol

import "crypto/x509"

// Pin names a certificate's key: SHA-256 of its SubjectPublicKeyInfo, base64url.
// It stays the same when a certificate is renewed with the same key.
func Pin(c *x509.Certificate) string {
	return Digest(c.RawSubjectPublicKeyInfo)
}
