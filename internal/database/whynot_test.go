package database_test

import (
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/apikey"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/event"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/limit"
	"github.com/musterhq/muster/internal/signature"
)

// A destructive command of a key is in no case begun without an authorization, and what asks for one is recorded with the caller.
func TestBegin_AuthorizationIsOfACall(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.destructiveApproval()
		phone := f.fleet(1)[0]
		for _, c := range []command.Command{f.intent(phone, command.WipeCompanyData), f.asking(phone, command.WipeCompanyData, "")} {
			_, begun, err := f.db.Begin(f.Context(), c, nil)
			if begun || err == nil || !strings.Contains(err.Error(), "does not say what for") {
				f.Errorf("begun %t, %v", begun, err)
			}
		}
		for _, name := range []string{"", "ci"} {
			f.clock.Advance(time.Second)
			c := f.asking(phone, command.WipeCompanyData, "asked by "+name)
			c.Ask.Caller.Name = name
			f.refusal(f.db, c)
			entries, err := f.db.Activity(f.Context(), activity.Filter{CompanyID: f.company.ID, Action: activity.AuthorizationAsked},
				activity.Cursor{}, 1)
			f.ok(err)
			want := []activity.Change{{Field: "command", After: "WIPE_COMPANY_DATA"}}
			if name != "" {
				want = append(want, activity.Change{Field: "caller", After: name})
			}
			equal(f, "recorded", entries[0].Changes, want)
		}
	})
}

// A person decides about no device that has left since.
func TestDecideAuthorization_DeviceThatLeft(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.destructiveApproval()
		phone, ada := f.fleet(1)[0], f.person("Ada", true)
		id := f.refusal(f.db, f.asking(phone, command.WipeCompanyData, "one")).ID
		f.enroll("d0", phone.Device.PolicyID)
		f.code(fault.Refused, f.decide(id, ada, signature.Approve))
		equal(f, "state", f.authorization(id).State, approval.Waiting)
	})
}

// A user with a passkey that is old enough has a reserve beyond the company's limit, which no one else has.
func TestBegin_ReserveOfUsers(t *testing.T) {
	withCompany(t, func(f *fixture) {
		devices, ada, bob := f.fleet(2+limit.Reserve), f.person("ada", true), f.person("bob", false)
		f.setControls(func(c *access.Controls) { c.ApproverAge = time.Hour })
		f.setLimit(1, 60)
		f.begin(devices[0], command.WipeCompanyData)
		wipes := func(when string, device int, actor access.Actor, want fault.Code) {
			f.Helper()
			c := f.intent(devices[device], command.WipeCompanyData)
			c.Actor = actor
			_, begun, err := f.db.Begin(f.Context(), c, nil)
			f.code(want, err)
			equal(f, when, begun, want == "")
		}
		wipes("with a passkey of today", 1, access.Actor{Kind: access.User, ID: ada.ID}, fault.RateLimited)
		f.clock.Advance(30 * time.Minute)
		f.setControls(func(c *access.Controls) { c.ApproverAge = 30 * time.Minute })
		wipes("without a passkey", 1, access.Actor{Kind: access.User, ID: bob.ID}, fault.RateLimited)
		wipes("a key with the id of the user", 1, access.Actor{Kind: access.APIKey, ID: ada.ID}, fault.RateLimited)
		for n := range limit.Reserve {
			wipes("with a passkey that is old enough", 1+n, access.Actor{Kind: access.User, ID: ada.ID}, "")
		}
		wipes("beyond the reserve", 1+limit.Reserve, access.Actor{Kind: access.User, ID: ada.ID}, fault.RateLimited)
	})
}

// A limit that is reached is told: that of the company also with an entry in the activity log.
func TestBegin_LimitIsTold(t *testing.T) {
	withCompany(t, func(f *fixture) {
		devices := f.fleet(2)
		told := func() int { return f.told(event.LimitReached)[""] }
		limited := func(kind command.Type, device int, ref string) command.Command {
			c := f.intent(devices[device], kind)
			c.IdempotencyRef = ref
			return c
		}
		k, _ := apikey.New(f.company.ID, "K", "operator", access.All, f.clock.Now(), time.Time{})
		f.ok(f.db.CreateKey(f.Context(), k))
		first, second := limited(command.Reboot, 0, "one"), limited(command.Reboot, 1, "two")
		for _, c := range []*command.Command{&first, &second} {
			c.Actor.ID, c.DevicesPerDay = k.ID, 1
		}
		_, _, err := f.db.Begin(f.Context(), first, nil)
		f.ok(err)
		_, _, err = f.db.Begin(f.Context(), second, nil)
		f.code(fault.RateLimited, err)
		equal(f, "told of the key's limit, recorded", words(told(), f.recorded(activity.Command("REBOOT"))), words(1, 1))

		f.setLimit(1, 60)
		f.begin(devices[0], command.WipeCompanyData)
		_, _, err = f.db.Begin(f.Context(), limited(command.WipeCompanyData, 1, ""), nil)
		f.code(fault.RateLimited, err)
		equal(f, "told of the company's limit, recorded", words(told(), f.recorded(activity.Command("WIPE_COMPANY_DATA"))), words(2, 2))
	})
}

// What a command would be refused for is foreseen, and nothing is recorded of it.
func TestBegin_WhyNot(t *testing.T) {
	withCompany(t, func(f *fixture) {
		devices, ada := f.fleet(2), f.person("Ada", true)
		foreseen := func(when string, c command.Command, want bool) error {
			f.Helper()
			refused, err := f.db.WhyNot(f.Context(), c)
			f.ok(err)
			equal(f, when, refused != nil, want)
			return refused
		}
		wipe := f.asking(devices[0], command.WipeCompanyData, "one")
		_ = foreseen("where nothing is limited", wipe, false)
		f.destructiveApproval()
		_ = foreseen("where a person has to approve it", wipe, true)
		f.approve(f.refusal(f.db, wipe).ID, ada)
		_ = foreseen("once it is approved", wipe, false)
		f.setLimit(1, 60)
		_, _, err := f.db.Begin(f.Context(), wipe, nil)
		f.ok(err)
		f.code(fault.RateLimited, foreseen("once the limit is reached", f.asking(devices[1], command.WipeCompanyData, "two"), true))
		_ = foreseen("what is not limited", f.intent(devices[1], command.Reboot), false)
	})
}
