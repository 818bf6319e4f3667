package database_test

import (
	"testing"

	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/policy"
)

// A database from before the rules of names keeps its names, shows them
// escaped, and reports them.
func TestOldNames_StayAreShownAndReported(t *testing.T) {
	withCompany(t, func(f *fixture) {
		t := f.T
		vault, lookalike, plain := f.newPolicy("Vault"), f.newPolicy("Twin"), f.newPolicy("Plain")
		f.ok(f.db.Write(f.Context(), nil,
			"UPDATE policies SET name = 'Vault\u200b', name_key = 'vault\u200b' WHERE id = '"+lookalike.ID+"'",
			"UPDATE policy_revisions SET name = 'Twin\u202e' WHERE policy_id = '"+plain.ID+"'"))
		odd, err := f.db.OddNames(f.Context())
		f.ok(err)
		wrong, alike := 0, 0
		for _, o := range odd {
			if o.Wrong != "" && o.PolicyID == lookalike.ID {
				wrong++
			}
			if o.LooksLike == vault.ID && o.PolicyID == lookalike.ID || o.LooksLike == lookalike.ID && o.PolicyID == vault.ID {
				alike++
			}
		}
		if wrong != 1 || alike != 1 {
			t.Errorf("reported: %+v", odd)
		}
		kept := f.policy(lookalike.ID)
		equal(f, "shown", kept.Name, `Vault\u200b`)
		// An edit that does not rename leaves the name as it is kept.
		kept.Description = "edited"
		_, err = f.db.SavePolicy(f.Context(), kept, kept.Version, policy.Revision{SavedAt: f.clock.Now()})
		f.ok(err)
		raw, err := f.db.Text(f.Context(), `SELECT name FROM policies WHERE id = ?`, lookalike.ID)
		f.ok(err)
		equal(f, "kept", raw[0], "Vault\u200b")
		// No name that looks like it can be taken.
		plain = f.policy(plain.ID)
		plain.Name = "V\u0430ult"
		_, err = f.db.SavePolicy(f.Context(), plain, plain.Version, policy.Revision{SavedAt: f.clock.Now()})
		f.code(fault.Refused, err)
		earlier, err := f.db.Revision(f.Context(), f.company.ID, plain.ID, 1)
		f.ok(err)
		equal(f, "the earlier name", earlier.Name, `Twin\u202e`)
		equal(f, "the earlier name is refused now", earlier.NameRefused, true)
		// Renaming it settles the matter.
		kept = f.policy(lookalike.ID)
		kept.Name = "Other"
		_, err = f.db.SavePolicy(f.Context(), kept, kept.Version, policy.Revision{SavedAt: f.clock.Now()})
		f.ok(err)
		odd, err = f.db.OddNames(f.Context())
		f.ok(err)
		equal(f, "reported after the new name", len(odd), 0)
	})
}
