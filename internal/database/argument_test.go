package database_test

import (
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/oauth"
)

// A text that PostgreSQL cannot keep finds nothing and is not written, on both engines
// alike: as a value, as a pattern, and behind a pointer or in a named type.
func TestArguments_ThatAreNoText(t *testing.T) {
	withCompany(t, func(f *fixture) {
		ctx := f.Context()
		f.note(1)
		for _, odd := range []string{"\x00", "a\x00b", "\xff", "a\xc3", strings.Repeat("x", 5_000) + "\xed\xa0\x80"} {
			_, err := f.db.UserByID(ctx, f.company.ID, odd)
			f.code(fault.NotFound, err)
			_, err = f.db.OAuthClient(ctx, odd)
			f.code(fault.NotFound, err)
			entries, err := f.db.Activity(ctx, activity.Filter{CompanyID: f.company.ID, ActorID: odd}, activity.Cursor{}, 10)
			if f.ok(err); len(entries) != 0 {
				f.Errorf("%q finds %d entries", odd, len(entries))
			}
			f.code(fault.InvalidArguments, f.db.SaveOAuthClient(ctx,
				oauth.Client{ID: "mc_1", Name: odd, CreatedAt: f.clock.Now(), ExpiresAt: f.clock.Now().Add(time.Hour)}))
			f.code(fault.InvalidArguments,
				f.db.CreateUser(ctx, account.User{ID: "u1", CompanyID: f.company.ID, Email: "a@b.test", Name: odd}))
		}
		if _, err := f.db.OAuthClient(ctx, "mc_1"); fault.CodeOf(err) != fault.NotFound {
			f.Errorf("what was refused is there: %v", err)
		}
	})
}
