package access_test

import (
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
)

func TestApprover_May(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	old, young := now.Add(-25*time.Hour), now.Add(-23*time.Hour)
	matter := access.Matter{Needs: access.PoliciesWrite, Policies: []string{"p1"}, AskedBy: "u1"}
	good := access.Approver{UserID: "u1", Permissions: access.All, CreatedAt: old, RightsAt: old, Passkeys: []time.Time{young, old}}
	for _, c := range []struct {
		name string
		edit func(*access.Approver, *access.Controls)
		want string // empty: may
	}{
		{"as it is", func(*access.Approver, *access.Controls) {}, ""},
		{"limited to the policy", func(a *access.Approver, _ *access.Controls) { a.Policies = []string{"p2", "p1"} }, ""},
		{"limited to another policy", func(a *access.Approver, _ *access.Controls) { a.Policies = []string{"p2"} }, "may not see"},
		{"limited to none", func(a *access.Approver, _ *access.Controls) { a.Policies = []string{} }, "may not see"},
		{"disabled", func(a *access.Approver, _ *access.Controls) { a.Disabled = true }, "disabled"},
		{"without the right", func(a *access.Approver, _ *access.Controls) { a.Permissions = access.PoliciesRead }, "POLICIES_WRITE"},
		{"their own request", func(_ *access.Approver, k *access.Controls) { k.SecondPerson = true }, "second person"},
		{"another's request", func(a *access.Approver, k *access.Controls) { k.SecondPerson, a.UserID = true, "u2" }, ""},
		{"a new account", func(a *access.Approver, _ *access.Controls) { a.CreatedAt = young }, "account must be older than 24h"},
		{"a new right", func(a *access.Approver, _ *access.Controls) { a.RightsAt = young }, "got rights"},
		{"no passkey", func(a *access.Approver, _ *access.Controls) { a.Passkeys = nil }, "need a passkey"},
		{"a new passkey", func(a *access.Approver, _ *access.Controls) { a.Passkeys = []time.Time{young} }, "passkey must be older"},
		{"all new, any age allowed", func(a *access.Approver, k *access.Controls) {
			a.CreatedAt, a.RightsAt, a.Passkeys, k.ApproverAge = young, now, []time.Time{now}, 0
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, controls := good, access.DefaultControls()
			c.edit(&a, &controls)
			err := a.May(matter, controls, now)
			if c.want == "" {
				if err != nil {
					t.Errorf("%s: %v", c.name, err)
				}
			} else if fault.CodeOf(err) != fault.Refused || !strings.Contains(fault.From(err).Detail, c.want) {
				t.Errorf("%s: %v, want %q", c.name, err, c.want)
			}
		})
	}
}

// With a second person, account and rights of the user who asked have an age too: they
// could be a new account of the person who decides.
func TestApprover_WhoAsked(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	old, young := now.Add(-25*time.Hour), now.Add(-23*time.Hour)
	a := access.Approver{UserID: "u1", Permissions: access.All, CreatedAt: old, RightsAt: old, Passkeys: []time.Time{old}}
	second := access.DefaultControls()
	second.SecondPerson = true
	for _, c := range []struct {
		name string
		m    access.Matter
		k    access.Controls
		may  bool
		from time.Time
	}{
		{"an old user asked", access.Matter{AskedBy: "u2", AskedSince: old}, second, true, now.Add(-time.Hour)},
		{"a new user asked", access.Matter{AskedBy: "u2", AskedSince: young}, second, false, now.Add(time.Hour)},
		{"a user asked who is deleted", access.Matter{AskedBy: "u2"}, second, true, now.Add(-time.Hour)},
		{"a key of the operator asked", access.Matter{}, second, true, now.Add(-time.Hour)},
		{"no second person", access.Matter{AskedBy: "u2", AskedSince: young}, access.DefaultControls(), true, now.Add(-time.Hour)},
	} {
		err := a.May(c.m, c.k, now)
		if (err == nil) != c.may || err != nil && !strings.Contains(fault.From(err).Detail, "behind this request must be older than 24h") {
			t.Errorf("%s: %v, want %t", c.name, err, c.may)
		}
		if from := a.OldEnoughAt(c.m, c.k); !from.Equal(c.from) || a.May(c.m, c.k, from) != nil {
			t.Errorf("%s: from %v, want %v; then %v", c.name, from, c.from, a.May(c.m, c.k, from))
		}
	}
	if a.Passkeys = nil; !a.OldEnoughAt(access.Matter{}, second).IsZero() {
		t.Error("a time is named for a person without a passkey")
	}
}
