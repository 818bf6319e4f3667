package protocol

import (
	"crypto/sha256"
	"crypto/x509"
)

// Pin names a certificate's key: SHA-256 of its SubjectPublicKeyInfo, base64url.
// It stays the same when a certificate is renewed with the same key.
func Pin(c *x509.Certificate) string {
	sum := sha256.Sum256(c.RawSubjectPublicKeyInfo)
	return text64.EncodeToString(sum[:])
}
