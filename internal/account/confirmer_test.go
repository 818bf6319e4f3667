package account_test

import (
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/fault"
)

func TestConfirmer_MayConfirm(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	old, young := now.Add(-25*time.Hour), now.Add(-23*time.Hour)
	admin, _ := account.Admin.Rights()
	manager, _ := account.Manager.Rights()
	for _, c := range []struct {
		name string
		by   account.Confirmer
		stop bool
		of   access.ControlName
		want bool
	}{
		{"a second administrator", account.Confirmer{User: account.User{ID: "b", Rights: admin, CreatedAt: old}, Passkey: account.Passkey{CreatedAt: old}}, false, "destructiveLimit", true},
		{"the same person", account.Confirmer{User: account.User{ID: "a", Rights: admin, CreatedAt: old}, Passkey: account.Passkey{CreatedAt: old}}, false, "destructiveLimit", false},
		{"no administrator", account.Confirmer{User: account.User{ID: "b", Rights: manager, CreatedAt: old}, Passkey: account.Passkey{CreatedAt: old}}, false, "destructiveLimit", false},
		{"a disabled one", account.Confirmer{User: account.User{ID: "b", Rights: admin, Disabled: true, CreatedAt: old}, Passkey: account.Passkey{CreatedAt: old}}, false, "destructiveLimit", false},
		{"a young user", account.Confirmer{User: account.User{ID: "b", Rights: admin, CreatedAt: young}, Passkey: account.Passkey{CreatedAt: old}}, false, "destructiveLimit", false},
		{"a young right", account.Confirmer{User: account.User{ID: "b", Rights: admin, CreatedAt: old}, RightsAt: young, Passkey: account.Passkey{CreatedAt: old}}, false, "destructiveLimit", false},
		{"a young passkey", account.Confirmer{User: account.User{ID: "b", Rights: admin, CreatedAt: old}, Passkey: account.Passkey{CreatedAt: young}}, false, "destructiveLimit", false},
		{"a young user asked", account.Confirmer{User: account.User{ID: "b", Rights: admin, CreatedAt: old}, Passkey: account.Passkey{CreatedAt: old}, AskedSince: young}, false, "destructiveLimit", false},
		{"during a stop", account.Confirmer{User: account.User{ID: "b", Rights: admin, CreatedAt: old}, Passkey: account.Passkey{CreatedAt: old}}, true, "destructiveLimit", false},
		{"resuming", account.Confirmer{User: account.User{ID: "b", Rights: admin, CreatedAt: old}, Passkey: account.Passkey{CreatedAt: old}}, true, "stop", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := access.Settings{Controls: access.DefaultControls()}
			if c.stop {
				s.Stop = access.Stop{At: old, Reason: "r"}
			}
			err := c.by.MayConfirm(access.Loosening{Control: c.of, AskedBy: access.Actor{ID: "a"}}, s, now)
			if (err == nil) != c.want || err != nil && fault.CodeOf(err) != fault.Refused {
				t.Errorf("%s: %v", c.name, err)
			}
		})
	}
}
