package platform

import (
	"encoding/json"
	"fmt"
)

// outgoing is a policy's document as it is sent: whole, explicit false values
// included, without the two members that only the vendor writes.
func outgoing(document json.RawMessage) ([]byte, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(document, &members); err != nil {
		return nil, fmt.Errorf("the policy's document is not a JSON object: %w", err)
	}
	if members == nil {
		members = map[string]json.RawMessage{}
	}
	delete(members, "name")
	delete(members, "version")
	return json.Marshal(members)
}
