package database_test

import (
	"context"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/test/expect"
)

// What people see of an authorization is what there is now: what is gone since is left out,
// and an authorization that is not the company's is not found.
func TestSeenAuthorization(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.setControls(func(c *access.Controls) {
			c.ApplyApproval, c.DestructiveApproval, c.ApproverAge = access.ApproveAll, true, 0
		})
		phone, ada := f.fleet(1)[0], f.person("Ada", true)
		from, to := f.policy(phone.Device.PolicyID), f.newPolicy("New")
		ask := func(c command.Command, userID string) string {
			c.Actor.Kind = access.Connection
			c.Ask.Caller.Actor = access.Actor{Kind: access.Connection, ID: "k1", UserID: userID}
			return f.refusal(f.db, c).ID
		}
		move := f.moving(phone, from, to)
		move.Ask.Difference, move.Ask.Needed = approval.Risky, true
		wipe := ask(f.asking(phone, command.WipeCompanyData, "d1"), ada.ID)
		moved, gone := ask(move, ""), ask(f.asking(phone, command.WipeCompanyData, "d2"), "gone")
		check := func(when, id string, device bool, user, from, to string, irreversible bool) {
			t.Helper()
			a, s, err := f.db.SeenAuthorization(f.Context(), f.company.ID, id)
			f.ok(err)
			expect.Equal(t, when, expect.Values{"id": {a.ID, id}, "company": {s.Company, f.company.Slug},
				"device": {s.Device.ID == phone.ID, device},
				"user":   {s.CallerUser, user}, "from": {s.From.Name, from}, "to": {s.To.Name, to},
				"irreversible": {s.Irreversible, irreversible}})
		}
		check("a command", wipe, true, "Ada", "", "", true)
		check("a move", moved, true, "", "Fleet", "New", false)
		check("of a user who is gone", gone, true, "", "", "", true)

		left := f.observation("d0")
		left.Gone = true
		f.observe(left)
		f.ok(f.db.ArchiveAssets(f.Context(), f.company.ID, []string{phone.ID}, true))
		f.ok(f.db.DeleteAssets(f.Context(), f.company.ID, []string{phone.ID}, &keeper{}))
		check("a command to a device that is gone", wipe, false, "Ada", "", "", true)

		_, _, err := f.db.SeenAuthorization(f.Context(), f.newCompany("other").ID, wipe)
		f.code(fault.NotFound, err)
		_, _, err = f.db.SeenAuthorization(f.Context(), f.company.ID, "none")
		f.code(fault.NotFound, err)
		ended, cancel := context.WithCancel(f.Context())
		cancel()
		_, _, err = f.db.SeenAuthorization(ended, f.company.ID, wipe)
		f.code(fault.Internal, err)
	})
}
