package account_test

import (
	"testing"
	"time"

	"github.com/musterhq/muster/internal/account"
)

// A session and a proof of identity last for their time. One from a clock that was ahead does not count; the clocks of replicas
// may be a minute apart.
func TestSession_LastsForItsTime(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		name                  string
		created, seen, proved time.Duration // before now
		live, fresh           bool
	}{
		{"just begun", 0, 0, 0, true, true},
		{"by a clock a minute ahead", -time.Minute, -time.Minute, -time.Minute, true, true},
		{"proved long enough ago", time.Hour, 0, account.ReauthFresh, true, false},
		{"idle for long enough", 24 * time.Hour, account.SessionIdle, account.SessionIdle, false, false},
		{"begun long enough ago", account.SessionLimit, 0, 0, false, true},
		{"begun while the clock was ahead", -2 * time.Hour, -2 * time.Hour, -2 * time.Hour, false, false},
		{"used while the clock was ahead", time.Hour, -2 * time.Hour, time.Hour, false, false},
		{"proved while the clock was ahead", time.Hour, 0, -2 * time.Hour, true, false},
	} {
		s := account.Session{CreatedAt: now.Add(-test.created), SeenAt: now.Add(-test.seen), ProvedAt: now.Add(-test.proved)}
		if s.Live(now) != test.live || s.Fresh(now) != test.fresh {
			t.Errorf("%s: live %t, fresh %t, want %t and %t", test.name, s.Live(now), s.Fresh(now), test.live, test.fresh)
		}
	}
}
