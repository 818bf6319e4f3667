package access

import (
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/fault"
)

// Approver is a user who decides about what a key or connection asked for, with what
// decides whether that counts.
type Approver struct {
	UserID, Name string
	Disabled     bool
	Permissions  Permission
	Manages      bool     // the right to manage the company
	Policies     []string // that the user may see; nil: all
	CreatedAt    time.Time
	RightsAt     time.Time // when the user last got a right
	// Passkeys is when each was added: before a decision all that the user has, at a
	// decision the one that signed.
	Passkeys []time.Time
}

// Matter is what is decided about.
type Matter struct {
	Needs Permission
	// Administers: it takes the right to manage the company, and always a second person.
	Administers bool
	Policies    []string // that it concerns
	// AskedBy is the user of the connection, or the maker of the key, that asked;
	// empty: the operator made the key.
	AskedBy string
	// AskedSince is when that user's account was made, or when the user last got a
	// right; zero: long ago, also of a user who was deleted.
	AskedSince time.Time
}

// Second reports whether who asked may not decide.
func (m Matter) Second(c Controls) bool { return m.AskedBy != "" && (m.Administers || c.SecondPerson) }

// ManageCompany is how Rights names the right to manage the company.
const ManageCompany = "MANAGE_COMPANY"

// Rights are the names of what the user may do, for a document.
func (a Approver) Rights() []string {
	rights := a.Permissions.Names()
	if a.Manages {
		rights = append(rights, ManageCompany)
	}
	return rights
}

// May returns fault.Refused, saying why, for a decision that does not count.
func (a Approver) May(m Matter, c Controls, now time.Time) error {
	since := now.Add(-c.ApproverAge)
	age := strings.TrimSuffix(c.ApproverAge.String(), "0m0s")
	missing := m.Needs &^ a.Permissions
	switch {
	case a.Disabled:
		return fault.New(fault.Refused, "your account is disabled")
	case missing != 0:
		return fault.New(fault.Refused, "you may not decide this: it takes the permission %s yourself", missing)
	case m.Administers && !a.Manages:
		return fault.New(fault.Refused, "you may not decide this: it takes the right to manage the company")
	case a.Policies != nil && slices.ContainsFunc(m.Policies, func(id string) bool { return !slices.Contains(a.Policies, id) }):
		return fault.New(fault.Refused, "you may not decide this: it concerns a policy that you may not see")
	case m.Administers && m.AskedBy == a.UserID:
		return fault.New(fault.Refused, "a second administrator must confirm what you asked for yourself")
	case m.Second(c) && m.AskedBy == a.UserID:
		return fault.New(fault.Refused, "a second person must decide this: your own AI client asked for it, or a key that you made")
	case m.Second(c) && m.AskedSince.After(since): // one person could ask with a new account of their own
		return fault.New(fault.Refused, "the account and the rights of the user behind this request must be older than %s before it "+
			"can be decided", age)
	case a.CreatedAt.After(since):
		return fault.New(fault.Refused, "your account must be older than %s to decide this", age)
	case a.RightsAt.After(since):
		return fault.New(fault.Refused, "you got rights less than %s ago: you can decide this after that time", age)
	case len(a.Passkeys) == 0:
		return fault.New(fault.Refused, "you need a passkey to approve or decline this, and have none: a password does not count")
	case !slices.ContainsFunc(a.Passkeys, func(added time.Time) bool { return !added.After(since) }):
		return fault.New(fault.Refused, "your passkey must be older than %s to decide this", age)
	}
	return nil
}

// OldEnoughAt is when all that must have an age for the decision has it: account, right
// and a passkey, and, where a second person decides, account and rights of the user who
// asked. Zero without a passkey.
func (a Approver) OldEnoughAt(m Matter, c Controls) time.Time {
	if len(a.Passkeys) == 0 {
		return time.Time{}
	}
	young := []time.Time{a.CreatedAt, a.RightsAt, slices.MinFunc(a.Passkeys, time.Time.Compare)}
	if m.Second(c) {
		young = append(young, m.AskedSince)
	}
	return slices.MaxFunc(young, time.Time.Compare).Add(c.ApproverAge)
}
