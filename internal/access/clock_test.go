package access_test

import (
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
)

func TestHolds(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		after time.Duration // since it began
		want  bool
	}{
		"at once":                       {0, true},
		"the last moment":               {time.Hour - 1, true},
		"the end":                       {time.Hour, false},
		"long after":                    {1000 * time.Hour, false},
		"the clock was set back a step": {-access.ClockStep, true},
		"the clock was ahead":           {-access.ClockStep - 1, false},
	} {
		if got := access.Holds(since, time.Hour, since.Add(c.after)); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestIntactSecret(t *testing.T) {
	t.Parallel()
	secret := access.NewSecret("mk_")
	other := byte('a')
	if secret[len(secret)-1] == other {
		other = 'b'
	}
	for text, want := range map[string]bool{secret: true, secret[:len(secret)-1] + string(other): false, secret[1:]: false,
		"": false, "mk": false} {
		if got := access.IntactSecret(text); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}
