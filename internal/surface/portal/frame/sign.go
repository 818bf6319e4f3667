package frame

import (
	"encoding/json"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/approval"
)

// Signed reads a posted SignForm: the document that the person has signed, and the
// passkey that they signed it with. The other fields are in Form.
func (v *Visit) Signed(keys account.Passkeys) (approval.Signed, account.Passkey, error) {
	in, err := v.Form()
	if err != nil {
		return approval.Signed{}, account.Passkey{}, err
	}
	return keys.FinishSigning(v.Context(), v.User, in.Get("token"), json.RawMessage(in.Get("answer")))
}
