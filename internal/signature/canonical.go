package signature

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// Canonical writes a value as JSON in the form of RFC 8785, which has one text for
// each value: members sorted by the UTF-16 code units of their names, no spaces, one
// way to escape and to write a number.
func Canonical(value any) ([]byte, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return Normal(text)
}

// Normal is the canonical form of a JSON text, which is one value without duplicate
// names, in UTF-8.
func Normal(text []byte) ([]byte, error) {
	value := jsontext.Value(bytes.Clone(text))
	if err := value.Canonicalize(); err != nil {
		return nil, fmt.Errorf("the text has no canonical form: %w", err)
	}
	return value, nil
}

// IsCanonical reports whether a text is JSON in the canonical form.
func IsCanonical(text []byte) bool {
	normal, err := Normal(text)
	return err == nil && bytes.Equal(normal, text)
}

// Hash is the SHA-256 of what Hashed returns, in hexadecimal.
func Hash(text []byte) string {
	sum := sha256.Sum256(Hashed(text))
	return hex.EncodeToString(sum[:])
}

// Hashed is a JSON text's canonical form; the text as it is, if it has none.
func Hashed(text []byte) []byte {
	if normal, err := Normal(text); err == nil {
		return normal
	}
	return text
}
