package access_test

import (
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
)

func TestConfirmer_MayConfirm(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	old, young := now.Add(-25*time.Hour), now.Add(-23*time.Hour)
	admin, _ := access.Admin.Rights()
	manager, _ := access.Manager.Rights()
	for _, c := range []struct {
		name string
		by   access.Confirmer
		stop bool
		of   access.ControlName
		want bool
	}{
		{"a second administrator", access.Confirmer{User: access.UserAccount{ID: "b", Rights: admin, CreatedAt: old}, Passkey: access.Passkey{CreatedAt: old}}, false, "destructiveLimit", true},
		{"the same person", access.Confirmer{User: access.UserAccount{ID: "a", Rights: admin, CreatedAt: old}, Passkey: access.Passkey{CreatedAt: old}}, false, "destructiveLimit", false},
		{"no administrator", access.Confirmer{User: access.UserAccount{ID: "b", Rights: manager, CreatedAt: old}, Passkey: access.Passkey{CreatedAt: old}}, false, "destructiveLimit", false},
		{"a disabled one", access.Confirmer{User: access.UserAccount{ID: "b", Rights: admin, Disabled: true, CreatedAt: old}, Passkey: access.Passkey{CreatedAt: old}}, false, "destructiveLimit", false},
		{"a young user", access.Confirmer{User: access.UserAccount{ID: "b", Rights: admin, CreatedAt: young}, Passkey: access.Passkey{CreatedAt: old}}, false, "destructiveLimit", false},
		{"a young right", access.Confirmer{User: access.UserAccount{ID: "b", Rights: admin, CreatedAt: old}, RightsAt: young, Passkey: access.Passkey{CreatedAt: old}}, false, "destructiveLimit", false},
		{"a young passkey", access.Confirmer{User: access.UserAccount{ID: "b", Rights: admin, CreatedAt: old}, Passkey: access.Passkey{CreatedAt: young}}, false, "destructiveLimit", false},
		{"during a stop", access.Confirmer{User: access.UserAccount{ID: "b", Rights: admin, CreatedAt: old}, Passkey: access.Passkey{CreatedAt: old}}, true, "destructiveLimit", false},
		{"resuming", access.Confirmer{User: access.UserAccount{ID: "b", Rights: admin, CreatedAt: old}, Passkey: access.Passkey{CreatedAt: old}}, true, "stop", true},
	} {
		s := access.Settings{Controls: access.DefaultControls()}
		if c.stop {
			s.Stop = access.Stop{At: old, Reason: "r"}
		}
		err := c.by.MayConfirm(access.Loosening{Control: c.of, AskedBy: access.Actor{ID: "a"}}, s, now)
		if (err == nil) != c.want || err != nil && fault.CodeOf(err) != fault.Refused {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
