package limit_test

import (
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/limit"
)

func TestState_Allows(t *testing.T) {
	t.Parallel()
	two := access.DestructiveLimit{Devices: 2, Window: time.Hour}
	for _, c := range []struct {
		name string
		s    limit.State
		want bool
	}{
		{"the first device", limit.State{Limit: two}, true},
		{"the last device", limit.State{Limit: two, Devices: 1}, true},
		{"one too many", limit.State{Limit: two, Devices: 2}, false},
		{"a device that counts", limit.State{Limit: two, Devices: 2, Counts: true}, true},
		{"one of the reserve", limit.State{Limit: two, Devices: 2, Reserved: true}, true},
		{"the last of the reserve", limit.State{Limit: two, Devices: 6, Reserved: true}, true},
		{"after the reserve", limit.State{Limit: two, Devices: 7, Reserved: true}, false},
		{"no limit", limit.State{Devices: 1000}, true},
		{"after the limit was lowered", limit.State{Limit: two, Devices: 30, Reserved: true}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.s.Allows(); got != c.want {
				t.Errorf("%s: allowed %t", c.name, got)
			}
		})
	}
	if over := (limit.State{Limit: two, Devices: 4}).Over(); over != 3 {
		t.Errorf("%d must leave, want 3", over)
	}
}

func TestState_Refusal(t *testing.T) {
	t.Parallel()
	err := limit.State{Limit: access.DestructiveLimit{Devices: 2, Window: time.Hour}, Devices: 2, Frees: 90*time.Second + 1}.Refusal()
	if err.Code != fault.RateLimited || !err.Retryable || err.RetryAfter != 90*time.Second+1 {
		t.Errorf("refusal = %+v", err)
	}
	for _, part := range []string{"company's limit", "2 devices in 60 minutes", "retry in 91 s", "administrator", "operator"} {
		if !strings.Contains(err.Detail, part) {
			t.Errorf("%q does not say %q", err.Detail, part)
		}
	}
	one := access.DestructiveLimit{Devices: 1, Window: time.Minute}
	if err = (limit.State{Limit: one, Devices: 1}).Refusal(); !strings.Contains(err.Detail, one.Words()) ||
		one.Words() != "1 device in 1 minute" {
		t.Errorf("%q does not say %q", err.Detail, one.Words())
	}
}
