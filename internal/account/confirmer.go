package account

import (
	"strings"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
)

// Confirmer is the administrator who confirms a loosening, with what decides
// whether that counts.
type Confirmer struct {
	User     User
	RightsAt time.Time // when the user last got a right
	Passkey  Passkey
	// AskedSince is when the account of the administrator who asked was made, or
	// when it last got a right.
	AskedSince time.Time
}

// MayConfirm returns fault.Refused, saying why, for a confirmation that does not count.
func (by Confirmer) MayConfirm(l access.Loosening, s access.Settings, now time.Time) error {
	since, age := now.Add(-s.Controls.ApproverAge), strings.TrimSuffix(s.Controls.ApproverAge.String(), "0m0s")
	switch {
	case by.User.ID == l.AskedBy.ID:
		return fault.New(fault.Refused, "a second administrator must confirm what you asked for yourself")
	case by.User.Disabled || !by.User.Rights.Has(ManageCompany):
		return fault.New(fault.Refused, "this takes the right to manage the company")
	case by.User.CreatedAt.After(since) || by.RightsAt.After(since) || by.Passkey.CreatedAt.After(since):
		return fault.New(fault.Refused, "your account, your rights and your passkey must be older than %s to confirm this", age)
	case by.AskedSince.After(since): // otherwise a stolen account could confirm what a new account of its own asks for
		return fault.New(fault.Refused, "the account and the rights of the administrator who asked must be older than %s to confirm this: ask for it yourself, and let another administrator confirm it", age)
	}
	return l.MayTakeEffect(s)
}
