package webhook

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/access"
)

// The headers of Standard Webhooks.
const (
	IDHeader        = "Webhook-Id"
	TimestampHeader = "Webhook-Timestamp"
	SignatureHeader = "Webhook-Signature"
)

const (
	secretPrefix = "whsec_"
	secretBytes  = 24
)

// newSecret returns a random secret, as people configure it at the receiver.
func newSecret() string {
	key := make([]byte, secretBytes)
	_, _ = rand.Read(key) // never fails
	return secretPrefix + base64.StdEncoding.EncodeToString(key)
}

// purpose is what the secret of a webhook is sealed for: it opens for no other webhook.
func purpose(companyID, id string) string { return "secret of webhook " + companyID + "/" + id }

// secrets are the keys that sign now, the newest first. A former one that cannot be opened,
// as after its key was lost, signs nothing.
func (w Webhook) secrets(s access.Sealer, now time.Time) ([][]byte, error) {
	newest, err := w.open(s, w.Secret)
	if err != nil {
		return nil, err
	}
	keys := [][]byte{newest}
	if w.Rotating(now) {
		if former, err := w.open(s, w.Former); err == nil {
			keys = append(keys, former)
		}
	}
	return keys, nil
}

// open returns the key of a sealed secret.
func (w Webhook) open(s access.Sealer, sealed []byte) ([]byte, error) {
	text, err := s.Open(purpose(w.CompanyID, w.ID), sealed)
	if err != nil {
		return nil, err
	}
	encoded, _ := strings.CutPrefix(string(text), secretPrefix)
	key, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, errors.New("the secret is damaged")
	}
	return key, nil
}

// sign is the value of SignatureHeader: a signature by each key, separated by spaces.
func sign(keys [][]byte, id string, at time.Time, body []byte) string {
	signatures := make([]string, len(keys))
	for i, key := range keys {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + strconv.FormatInt(at.Unix(), 10) + "."))
		mac.Write(body)
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	return strings.Join(signatures, " ")
}
