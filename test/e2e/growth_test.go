package e2e_test

import (
	"flag"
	"maps"
	"slices"
	"testing"

	"github.com/musterhq/muster/internal/servertest"
)

var (
	growthMonths  = flag.Int("growth-months", 3, "virtual months of 30 days of TestGrowth_WholeService; 6 for the long run")
	growthDevices = flag.Int("growth-devices", 4, "devices of TestGrowth_WholeService; 100 for the long run")
	growthStep    = flag.Int("growth-step", 15, "days that pass at once; 6 for the long run")
)

// growing are those that grow from month to month, with the reason.
var growing = map[string]string{
	"proposals":        "kept: they prove who decided",
	"policy_revisions": "kept: they prove who decided",
	"policy_pushes":    "kept with the revisions",
	"jobs":             "kept for 400 days",
	"job_devices":      "kept for 400 days with their jobs",
	"commands of jobs": "kept for 400 days with their jobs",
	"api_keys":         "kept: proposals and commands name them",
	"agent_devices":    "kept: a device that comes back is told that it has left",
	"device_names":     "kept: late messages of a device that left are known as such",
	sizeAgents:         "an agent compacts its journal above a limit",
}

// slow are those that level off after the short run's end, with the reason.
var slow = map[string]string{
	"enrollment_codes":  "kept for 90 days after they ended",
	"enrollment_uses":   "kept for 90 days with their codes",
	"oauth_clients":     "kept for 90 days without tokens",
	"oauth_connections": "kept for 90 days without tokens",
}

// A company whose devices check in, get commands and send logs, whose policies change by
// proposals, whose people sign in, and whose events go to webhooks and by mail, with all
// kept for 30 days: tables, files and goroutines level off.
//
// The last month is compared with the last but two, or but one in the short run. This test does not run beside
// others, whose goroutines would be counted.
func TestGrowth_WholeService(t *testing.T) {
	for name, make := range map[string]func(testing.TB) *servertest.Env{"sqlite": servertest.New, "postgres": servertest.NewPostgres} {
		t.Run(name, func(t *testing.T) {
			s := newGrowthSite(t, make(t))
			var months []map[string]int64
			for day := 0; day < *growthMonths*30; day += *growthStep {
				s.day(day / *growthStep)
				if day/30 != (day+*growthStep)/30 {
					months = append(months, s.sizes())
					t.Logf("month %d: %v", len(months), months[len(months)-1])
				}
			}
			reportSizes(t, months)
			s.levelsOff(months)
			s.hasLived(months)
		})
	}
}

// levelsOff compares the last month with an earlier one. The database may grow by the rows
// that are to grow.
func (s *growthSite) levelsOff(months []map[string]int64) {
	s.Helper()
	const rowKilobytes = 1 // with its indexes
	before := len(months) - max(1, len(months)/3)
	then, now := months[before-1], months[len(months)-1]
	rows := int64(0)
	for name := range growing {
		if name != sizeAgents {
			rows += max(0, now[name]-then[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		allowed := then[name] + then[name]/10 + 10
		if name == sizeDatabase {
			allowed += rows*rowKilobytes + 512 // pages come and go in parts
		}
		if now[name] > allowed && growing[name] == "" && (slow[name] == "" || len(months) >= 6) {
			s.Errorf("%s grew from %d in month %d to %d in month %d", name, then[name], before, now[name], len(months))
		}
	}
}

// hasLived fails if the months left nothing of what was to happen.
func (s *growthSite) hasLived(months []map[string]int64) {
	s.Helper()
	for _, name := range []string{"activity", "events", "commands", "asset_places", "proposals", "webhook_attempts", "sessions",
		"device_logs", "jobs", "mail_users",
		"messages", "oauth_connections", "enrollment_codes"} {
		if !slices.ContainsFunc(months, func(m map[string]int64) bool { return m[name] > 0 }) {
			s.Errorf("the months left no %s", name)
		}
	}
	s.mails.mu.Lock()
	defer s.mails.mu.Unlock()
	if s.mails.taken == 0 || s.taken.Load() == 0 {
		s.Errorf("%d mails and %d events were sent", s.mails.taken, s.taken.Load())
	}
}
