package database_test

import (
	"slices"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/approval/attention"
	"github.com/musterhq/muster/internal/event"
	"github.com/musterhq/muster/internal/fault"
)

// recipient is a user as mail has them.
func (f *fixture) recipient(u account.User) attention.Recipient {
	f.Helper()
	all, err := f.db.Recipients(f.Context(), u.CompanyID)
	f.ok(err)
	i := slices.IndexFunc(all, func(r attention.Recipient) bool { return r.UserID == u.ID })
	if i < 0 {
		f.Fatalf("%s is no recipient", u.Name)
	}
	return all[i]
}

// Choices and what was mailed are a user's, of one company, and go with the user.
func TestMail_Users(t *testing.T) {
	withCompany(t, func(f *fixture) {
		ada, next := f.person("ada", true), f.clock.Now().Add(time.Minute)
		choice, err := f.db.MailChoice(f.Context(), f.company.ID, ada.ID)
		f.ok(err)
		equal(f, "decisions by default", len(choice.Chosen(false)), 3)
		equal(f, "all by default for administrators", len(choice.Chosen(true)), len(event.Types())+4)
		other := f.newCompany("other")
		f.code(fault.NotFound, f.db.SetMailChoice(f.Context(), other.ID, ada.ID, attention.Choice{Muted: true}))
		f.code(fault.NotFound, f.db.MailSent(f.Context(), other.ID, ada.ID, []string{"x"}, 0, next))
		f.ok(f.db.SetMailChoice(f.Context(), f.company.ID, ada.ID, attention.Choice{Events: []event.Type{event.ProposalWaiting}}))
		f.ok(f.db.MailFailed(f.Context(), f.company.ID, ada.ID, next))
		f.ok(f.db.MailFailed(f.Context(), f.company.ID, ada.ID, next))
		to := f.recipient(ada)
		equal(f, "failures", to.Failures, 2)
		equal(f, "next", to.NextAt.Equal(next), true)
		equal(f, "wants", to.Choice.Wants(event.ControlLoosening, true), false)
		for range 2 {
			f.ok(f.db.MailSent(f.Context(), f.company.ID, ada.ID, []string{"p1", "p2"}, 0, next))
		}
		to = f.recipient(ada)
		equal(f, "mailed", len(to.Mailed), 2)
		equal(f, "failures after a mail", to.Failures, 0)
		equal(f, "the choice stays", len(to.Choice.Chosen(true)), 1)
		f.clock.Advance(31 * 24 * time.Hour)
		f.ok(f.db.Sweep(f.Context(), f.clock.Now()))
		equal(f, "mailed, after a month", len(f.recipient(ada).Mailed), 0)
		f.ok(f.db.MailSent(f.Context(), f.company.ID, ada.ID, []string{"p3"}, 0, next))
		_, err = f.db.DeleteUser(f.Context(), f.company.ID, ada.ID)
		f.ok(err)
	})
}

// Companies in which a decision waits are found, until it is over.
func TestMail_Companies(t *testing.T) {
	withCompany(t, func(f *fixture) {
		waits := func(want int) {
			f.Helper()
			all, err := f.db.MailCompanies(f.Context(), "", 10)
			f.ok(err)
			equal(f, "companies", len(all), want)
			if want > 0 {
				equal(f, "the company", all[0].CompanyID, f.company.ID)
			}
		}
		f.newCompany("other")
		waits(0)
		f.setLimit(5, 60)
		f.controls(f.person("ada", true), limitTo(10))
		waits(1)
		f.clock.Advance(access.LoosenAfter)
		waits(0)
		f.destructiveApproval()
		f.refusal(f.db, f.asking(f.fleet(1)[0], "WIPE_COMPANY_DATA", "d"))
		waits(1)
		name, controls, err := f.db.MailControls(f.Context(), f.company.ID)
		f.ok(err)
		equal(f, "name", name, f.company.Name)
		equal(f, "controls", controls.DestructiveApproval, true)
	})
}

// A letter is made with the invitation, waits after a failure, and is not sent to a user who
// has accepted the invitation, with a password or through company sign-in, or to whom the operator gave a password, and not once
// its link has ended.
func TestMail_Letters(t *testing.T) {
	withCompany(t, func(f *fixture) {
		nina := account.User{ID: "nina", CompanyID: f.company.ID, Email: "nina@acme.test", Name: "Nina", Role: account.Viewer,
			CreatedAt: f.clock.Now()}
		f.ok(f.db.CreateUser(f.Context(), nina))
		due := func(want int) []attention.Letter {
			f.Helper()
			all, err := f.db.Letters(f.Context(), 10)
			f.ok(err)
			equal(f, "letters", len(all), want)
			return all
		}
		invite := func(letter string) {
			f.Helper()
			_, err := f.db.BeginInvitation(f.Context(), access.HashSecret("t"+letter),
				account.PendingSignIn{Kind: account.Invitation, CompanyID: f.company.ID, UserID: nina.ID,
					Data: []byte(`{}`), ExpiresAt: f.clock.Now().Add(time.Hour), Letter: []byte(letter)})
			f.ok(err)
		}
		invite("")
		due(0)
		invite("one")
		invite("two")
		l := due(1)[0]
		equal(f, "sealed", string(l.Sealed), "two")
		f.ok(f.db.LetterFailed(f.Context(), l.ID, f.clock.Now().Add(time.Minute)))
		due(0)
		f.clock.Advance(time.Minute)
		equal(f, "failures", due(1)[0].Failures, 1)
		_, err := f.db.AcceptInvitation(f.Context(), access.HashSecret("ttwo"), "hash", account.Inviter{})
		f.ok(err)
		due(0)
		f.ok(f.db.SaveProvider(f.Context(), account.IdentityProvider{CompanyID: f.company.ID, Name: "ID", Issuer: "i",
			Role: account.Viewer},
			anybody))
		nina.ID, nina.Email = "nora", "nora@acme.test"
		f.ok(f.db.CreateUser(f.Context(), nina))
		invite("three")
		due(1)
		_, err = f.db.LinkInvited(f.Context(), access.HashSecret("tthree"),
			account.IdentityLink{CompanyID: f.company.ID, UserID: nina.ID, Issuer: "i", Subject: "s"}, account.Inviter{},
			func(account.IdentityProvider, account.User) error { return nil })
		f.ok(err)
		due(0)
		nina.ID, nina.Email = "noa", "noa@acme.test"
		f.ok(f.db.CreateUser(f.Context(), nina))
		invite("four")
		due(1)
		_, err = f.db.UpdateUser(f.Context(), f.company.ID, nina.ID, func(u *account.User) error { u.PasswordHash = "x"; return nil })
		f.ok(err)
		due(0)
		nina.ID, nina.Email = "nele", "nele@acme.test"
		f.ok(f.db.CreateUser(f.Context(), nina))
		invite("five")
		f.clock.Advance(account.InvitationLife - time.Second)
		due(1)
		f.clock.Advance(time.Second)
		due(0)
	})
}
