package database_test

import (
	"slices"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/approval/attention"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/database/firsttest"
	"github.com/musterhq/muster/internal/event"
	"github.com/musterhq/muster/internal/fault"
)

// news is what a user is to be mailed about.
func (f *fixture) news(to attention.Recipient) []attention.News {
	f.Helper()
	for n := 1; n > 0; {
		var err error
		n, err = f.db.NumberRound(f.Context())
		f.ok(err)
	}
	head, err := f.db.EventHead(f.Context(), f.company.ID)
	f.ok(err)
	all, err := f.db.News(f.Context(), attention.NewsQuery{CompanyID: f.company.ID, After: to.Position, Upto: head.Last,
		Since: f.clock.Now().Add(-24 * time.Hour),
		Types: to.Follows(), See: to.Sight()})
	f.ok(err)
	return all
}

// The news of a company are counted by type, with a few examples, of what the user may see,
// and no other company's.
func TestMail_News(t *testing.T) {
	withCompany(t, func(f *fixture) {
		acme, first := f.company, f.newPolicy("First")
		second := f.newPolicy("Second")
		admin := attention.Recipient{Approver: access.Approver{Permissions: access.All, Manages: true}}
		limited := attention.Recipient{Approver: access.Approver{Permissions: access.DevicesRead, Policies: []string{second.ID}},
			Choice: attention.Choice{Events: []event.Type{event.DeviceEnrolled, event.PolicyChanged, event.KeyCreated}}}
		a := f.enroll("a", first.ID)
		b := f.enroll("b", second.ID)
		f.company = f.newCompany("other")
		f.enroll("c", "")
		f.company = acme
		all := f.news(admin)
		i := slices.IndexFunc(all, func(n attention.News) bool { return n.Type == event.DeviceEnrolled })
		if i < 0 {
			f.Fatalf("the news are %+v", all)
		}
		equal(f, "enrolled", all[i].Count, 2)
		all = f.news(limited)
		if len(all) != 1 || all[0].Count != 1 || len(all[0].Examples) != 1 || all[0].Examples[0].Name != b.Identification {
			f.Errorf("who may see one policy gets %+v", all)
		}
		f.ok(f.db.AssignPolicy(f.Context(), b.ID, b.Device.Epoch, first.ID))
		equal(f, "the name of a device of another policy", f.news(limited)[0].Examples[0].Name, "")
		f.setLimit(1, 60)
		for i, device := range []asset.Asset{b, a} { // the limit refuses the second
			_, _, err := f.db.Begin(f.Context(), f.intent(device, command.WipeCompanyData), nil)
			equal(f, "refused by the limit", fault.CodeOf(err) == fault.RateLimited, i == 1)
		}
		admin.Choice.Events = []event.Type{event.LimitReached}
		equal(f, "the limit is reached, for an administrator", len(f.news(admin)), 1)
		limited.Manages, limited.Choice = true, admin.Choice
		equal(f, "the limit is reached, for one who may not see the device's policy", len(f.news(limited)), 0)
		limited.Policies = []string{first.ID}
		equal(f, "the limit is reached, for one who may", len(f.news(limited)), 1)
		limited.Policies = []string{}
		equal(f, "news of no policy", len(f.news(limited)), 0)
		limited.Permissions, limited.Manages = 0, false
		equal(f, "follows without rights", len(limited.Follows()), 0)
		f.clock.Advance(25 * time.Hour)
		equal(f, "news of yesterday", len(f.news(admin)), 0)
	})
}

// Ten thousand events are one row with three examples. Who passed them has none, and a new
// user follows from now on.
func TestMail_ManyNews(t *testing.T) {
	withCompany(t, func(f *fixture) {
		ada := f.person("ada", true)
		_, err := f.db.EventHead(f.Context(), f.company.ID) // begins the history
		f.ok(err)
		firsttest.Exec(t, f.url,
			`INSERT INTO events (id, n, pos, company_id, area, type, at, asset_id, policy_id, proposal_id, command, status, request_id, owner)
			WITH RECURSIVE m (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM m WHERE n < 10000)
			SELECT 'e' || n, n, 1000000 + n, '`+f.company.ID+`', 'device', 'device.silent', `+words(f.clock.Now().UnixMilli())+
				`, '', '', '', '', '', '', '' FROM m`)
		firsttest.Exec(t, f.url, `INSERT INTO event_heads (company_id, last) VALUES ('`+f.company.ID+
			`', 1010000) ON CONFLICT (company_id) DO UPDATE SET last = 1010000`)
		behind := func(want int) {
			f.Helper()
			all, err := f.db.MailCompanies(f.Context(), "", 10)
			f.ok(err)
			equal(f, "companies with news", len(all), want)
		}
		behind(1)
		equal(f, "follows before the invitation is accepted", len(f.recipient(ada).Follows()), 0)
		_, err = f.db.UpdateUser(f.Context(), f.company.ID, ada.ID, func(u *account.User) error { u.PasswordHash = "hash"; return nil })
		f.ok(err)
		to := f.recipient(ada)
		all := f.news(to)
		if len(all) != 1 || all[0].Count != 10_000 || len(all[0].Examples) != attention.Examples {
			f.Fatalf("the news are %+v", all)
		}
		head := int64(1_010_000)
		equal(f, "a new user's position", f.recipient(f.person("new", true)).Position, head)
		f.ok(f.db.MailPassed(f.Context(), f.newCompany("other").ID, []string{ada.ID}, head))
		equal(f, "the position after another company's", f.recipient(ada).Position, to.Position)
		f.ok(f.db.MailPassed(f.Context(), f.company.ID, []string{ada.ID}, head))
		f.ok(f.db.MailSent(f.Context(), f.company.ID, ada.ID, nil, 5, f.clock.Now())) // late: it takes nothing back
		equal(f, "the position", f.recipient(ada).Position, head)
		equal(f, "news after that", len(f.news(f.recipient(ada))), 0)
		behind(0)
	})
}
