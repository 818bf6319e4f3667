package frame

import (
	"encoding/json"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/approval"
)

// Signed reads a posted SignForm: the document that the person has signed, and the
// passkey that they signed it with. The other fields are in Form.
func (v *Visit) Signed(keys account.Passkeys) (approval.Signed, account.Passkey, error) {
	return keys.FinishSigning(v.Context(), v.User, v.Form.Get("token"), json.RawMessage(v.Form.Get("answer")))
}
