package database_test

import (
	"testing"

	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/fault"
)

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
