package protocol

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"strings"
)

// TokenOf returns the enrollment token in the text of a QR code; what is no such
// text is a token itself.
func TokenOf(text string) (string, error) {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "{") {
		if text == "" {
			return "", errors.New("agentproto: the token is empty")
		}
		return text, nil
	}
	code, err := ParseCode(text)
	return code.Token, err
}

// Code is what an agent needs of a QR code, or of a file with the same text that
// was handed over by USB. It prints without the token.
type Code struct {
	Server     string
	Token      string
	CommandKey string // for a device with an Ed25519 key; empty: the device keeps the key that signs the answer
	// CommandKeyES256 is that for a device with a P-256 key.
	CommandKeyES256 string
	Pins            []string // none: its certificate must be one that the world trusts
}

// String keeps the token out of logs.
func (c Code) String() string { return "{" + c.Server + " [secret]}" }

// GoString keeps the token out of %#v.
func (c Code) GoString() string { return c.String() }

// ParseCode reads the text of a code. It fails if there is no token in it.
func ParseCode(text string) (Code, error) {
	var all struct {
		Extras map[string]string `json:"android.app.extra.PROVISIONING_ADMIN_EXTRAS_BUNDLE"`
	}
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return Code{}, errors.New("agentproto: the code is not JSON")
	}
	var c Code
	for key, value := range all.Extras {
		switch key[strings.LastIndexByte(key, '.')+1:] {
		case "ENROLLMENT_TOKEN":
			c.Token = value
		case "SERVER_URL":
			c.Server = value
		case "COMMAND_KEY":
			c.CommandKey = value
		case "COMMAND_KEY_ES256":
			c.CommandKeyES256 = value
		case "SERVER_PIN":
			c.Pins = strings.Split(value, ",")
		}
	}
	if c.Token == "" {
		return Code{}, errors.New("agentproto: the code holds no enrollment token of an agent")
	}
	return c, nil
}

// Pin names a certificate's key: SHA-256 of its SubjectPublicKeyInfo, base64url.
// It stays the same when a certificate is renewed with the same key.
func Pin(c *x509.Certificate) string {
	return Digest(c.RawSubjectPublicKeyInfo)
}
