package ops

import "crypto/ed25519"

// ES256CommandKey is the id of the P-256 command key that comes of a secret.
func ES256CommandKey(secret []byte) (string, error) {
	s, err := signerOf([]signingKey{{key: ed25519.NewKeyFromSeed(secret)}}, signingKey.es256)
	return s.ID, err
}
