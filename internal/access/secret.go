package access

import (
	"crypto/rand"
	"crypto/sha256"
	"hash/crc32"
)

// SecretLength is how many random characters a secret has: 62^43 > 2^256.
const SecretLength = 43

const (
	checksumLength = 6 // 62^6 > 2^32
	alphabet       = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// SecretHash is how keys, codes and tokens are found: they are never stored.
type SecretHash [sha256.Size]byte

// HashSecret returns the hash of a code or token.
func HashSecret(text string) SecretHash { return sha256.Sum256([]byte(text)) }

// NewSecret returns a fresh key, code or token of 256 random bits behind a prefix.
// It ends with a checksum, so that scanners for secrets report no other text.
func NewSecret(prefix string) string {
	body := prefix + RandomText(SecretLength)
	return body + checksum(body)
}

// IntactSecret reports whether a text ends with the checksum that NewSecret gave it.
func IntactSecret(text string) bool {
	body := max(0, len(text)-checksumLength)
	return checksum(text[:body]) == text[body:]
}

func checksum(body string) string {
	sum := crc32.ChecksumIEEE([]byte(body))
	out := make([]byte, checksumLength)
	for i := range out {
		out[len(out)-1-i] = alphabet[sum%62]
		sum /= 62
	}
	return string(out)
}

// RandomText returns n characters of the alphabet, each equally likely.
func RandomText(n int) string {
	out := make([]byte, 0, n)
	var buf [64]byte
	for len(out) < n {
		_, _ = rand.Read(buf[:]) // never fails since Go 1.24
		for _, b := range buf {
			if b < 62*4 && len(out) < n { // 248 is the largest multiple of 62 in a byte
				out = append(out, alphabet[b%62])
			}
		}
	}
	return string(out)
}

// Sealer seals with the service's own keys, which are not in the database.
type Sealer interface {
	// Seal encrypts data for a purpose.
	Seal(purpose string, data []byte) []byte
	// Open returns what was sealed. It fails for what was changed, or sealed for another
	// purpose or with a key that is not in the key file.
	Open(purpose string, sealed []byte) ([]byte, error)
}
