package limit_test

import (
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/limit"
	"github.com/musterhq/muster/test/expect"
)

func TestKeyState_Allows(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		s    limit.KeyState
		want bool
	}{
		{"a key without a number", limit.KeyState{}, true},
		{"a key without a number, after many devices", limit.KeyState{Others: 1000}, true},
		{"the first device", limit.KeyState{PerDay: 2}, true},
		{"the last device", limit.KeyState{PerDay: 2, Others: 1}, true},
		{"one too many", limit.KeyState{PerDay: 2, Others: 2}, false},
		{"a device that counts", limit.KeyState{PerDay: 2, Others: 1, Counts: true}, true},
		{"a device that counts, after the number was lowered", limit.KeyState{PerDay: 2, Others: 5, Counts: true}, true},
		{"another, after the number was lowered", limit.KeyState{PerDay: 2, Others: 5}, false},
	} {
		if got := c.s.Allows(); got != c.want {
			t.Errorf("%s: allowed %t, want %t", c.name, got, c.want)
		}
	}
}

func TestKeyState_Refusal(t *testing.T) {
	t.Parallel()
	err := limit.KeyState{PerDay: 2, Others: 2, Frees: time.Hour}.Refusal()
	if err.Code != fault.RateLimited || !err.Retryable || err.RetryAfter != time.Hour {
		t.Errorf("refusal = %+v", err)
	}
	for _, part := range []string{"this key", "2 devices in 24 hours", "retry in 3600 s"} {
		if !strings.Contains(err.Detail, part) {
			t.Errorf("%q does not say %q", err.Detail, part)
		}
	}
}

// The key's number is asked before the company's limit, and neither about a command that is
// there already. Of the company is only what its limit refused.
func TestAdmission_Decide(t *testing.T) {
	t.Parallel()
	freeKey, fullKey := limit.KeyState{PerDay: 1}, limit.KeyState{PerDay: 1, Others: 1}
	one := access.DestructiveLimit{Devices: 1, Window: time.Hour}
	free, full := &limit.State{Limit: one}, &limit.State{Limit: one, Devices: 1}
	const byKey, byCompany = "this key", "company's limit"
	for _, c := range []struct {
		name string
		a    limit.Admission
		want string // part of the refusal; empty: none
	}{
		{"nothing is limited", limit.Admission{}, ""},
		{"the key has room", limit.Admission{Key: freeKey}, ""},
		{"the key has none", limit.Admission{Key: fullKey}, byKey},
		{"the key has none, the company has", limit.Admission{Key: fullKey, Company: free}, byKey},
		{"the company has room", limit.Admission{Key: freeKey, Company: free}, ""},
		{"the company has none", limit.Admission{Key: freeKey, Company: full}, byCompany},
		{"neither has room", limit.Admission{Key: fullKey, Company: full}, byKey},
		{"a repetition, the key has none", limit.Admission{Known: true, Key: fullKey}, ""},
		{"a repetition, the company has none", limit.Admission{Known: true, Company: full}, ""},
		{"a repetition, neither has room", limit.Admission{Known: true, Key: fullKey, Company: full}, ""},
	} {
		detail := ""
		if err := c.a.Decide(); err != nil {
			detail = err.Detail
		}
		expect.Equal(t, c.name, expect.Values{
			"refused":        {detail != "", c.want != ""},
			"as it should":   {strings.Contains(detail, c.want), true},
			"of the company": {c.a.OfCompany(), c.want == byCompany},
		})
	}
}

// A waiting time and the number of devices that must leave belong to a limit that may have
// been lowered.
func TestState_Remaining(t *testing.T) {
	t.Parallel()
	two := access.DestructiveLimit{Devices: 2, Window: time.Hour}
	for _, c := range []struct {
		name            string
		s               limit.State
		remaining, over int
	}{
		{"no device counts", limit.State{Limit: two}, 2, -1},
		{"full", limit.State{Limit: two, Devices: 2}, 0, 1},
		{"over a lowered limit", limit.State{Limit: two, Devices: 4}, 0, 3},
		{"with the reserve", limit.State{Limit: two, Devices: 4, Reserved: true}, 3, -2},
	} {
		expect.Equal(t, c.name, expect.Values{"remaining": {c.s.Remaining(), c.remaining}, "over": {c.s.Over(), c.over}})
	}
}
