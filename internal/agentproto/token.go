package agentproto

import (
	"encoding/json"
	"errors"
	"strings"
)

// TokenOf returns the enrolment token in the text of a QR code; what is no such
// text is a token itself.
func TokenOf(text string) (string, error) {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "{") {
		if text == "" {
			return "", errors.New("agentproto: the token is empty")
		}
		return text, nil
	}
	var code struct {
		Extras map[string]string `json:"android.app.extra.PROVISIONING_ADMIN_EXTRAS_BUNDLE"`
	}
	if err := json.Unmarshal([]byte(text), &code); err != nil {
		return "", err
	}
	for key, value := range code.Extras {
		if strings.HasSuffix(key, ".ENROLLMENT_TOKEN") {
			return value, nil
		}
	}
	return "", errors.New("agentproto: the code holds no enrolment token of an agent")
}
