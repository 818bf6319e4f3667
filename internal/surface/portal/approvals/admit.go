package approvals

import (
	"slices"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// admit finds out whether the person may decide, and if not why, until when, and who may.
func (s *Section) admit(v *frame.Visit, m *matter) error {
	if !s.Passkeys.Available() {
		m.barred = "Passkeys do not work at this address of Muster, which has no host name. The operator has to give it one."
		return nil
	}
	who, err := s.Store.Decider(v.Context(), v.Company.ID, v.User.ID)
	if err != nil {
		return err
	}
	controls := v.Company.Settings.Controls
	refused := who.May(m.Matter, controls, v.Now)
	if refused == nil {
		return nil
	}
	if fault.CodeOf(refused) != fault.Refused {
		return refused
	}
	m.barred = frame.Sentence(fault.From(refused).Detail)
	if missing := m.Matter.Needs &^ who.Permissions; missing != 0 {
		m.barred = "You may not decide this: it takes the permission to " + rights(missing).Words() + " (" + missing.String() + ")."
	}
	if len(who.Passkeys) == 0 {
		with := who
		with.Passkeys = []time.Time{{}}
		m.noPasskey = with.May(m.Matter, controls, v.Now) == nil
	}
	if from := who.OldEnoughAt(m.Matter, controls); from.After(v.Now) && who.May(m.Matter, controls, from) == nil {
		m.from = from
	}
	return s.findOthers(v, m)
}

// findOthers names who may decide now, at most three.
func (s *Section) findOthers(v *frame.Visit, m *matter) error {
	all, err := s.Store.Approvers(v.Context(), v.Company.ID)
	all = slices.DeleteFunc(all, func(other access.Approver) bool {
		return other.May(m.Matter, v.Company.Settings.Controls, v.Now) != nil
	})
	m.alone = len(all) == 0
	m.others = frame.AnyOf(all, func(other access.Approver) string { return other.Name })
	return err
}

// rights are those of a person that permissions need.
func rights(p access.Permission) (all account.Right) {
	for right, needed := range map[account.Right]access.Permission{
		account.ViewDevices: access.DevicesRead, account.DestroyDevices: access.DevicesCommandDestructive,
		account.ViewPolicies: access.PoliciesRead, account.EditPolicies: access.PoliciesWrite,
	} {
		if p&needed != 0 {
			all |= right
		}
	}
	return all
}
