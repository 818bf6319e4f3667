package access_test

import (
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
)

func TestParseDestructiveLimit(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]access.DestructiveLimit{
		"25/60m":      {Devices: 25, Window: time.Hour},
		"25/1h":       {Devices: 25, Window: time.Hour},
		"1/1m":        {Devices: 1, Window: time.Minute},
		"100000/168h": {Devices: 100_000, Window: 7 * 24 * time.Hour},
		"off":         {},
		"OFF":         {},
	} {
		t.Run(text, func(t *testing.T) {
			got, err := access.ParseDestructiveLimit(text)
			if err != nil || got != want {
				t.Errorf("%q: %+v, %v", text, got, err)
			}
			if again, err := access.ParseDestructiveLimit(got.String()); err != nil || again != want {
				t.Errorf("%q reads back as %+v, %v", got, again, err)
			}
		})
	}
	for text, want := range map[string]string{"": "is no limit", "25": "is no limit", "25/": "is no limit", "/60m": "is no limit",
		"0/60m": "is no limit", "-1/60m": "is no limit", "25/60": "is no limit", "25/60m/1": "is no limit", "+25 /60m": "is no limit",
		"25/0m": "whole minutes", "25/90s": "whole minutes", "25/30s": "whole minutes", "25/169h": "7 days", "25/-60m": "whole minutes",
		"100001/60m": "100000"} {
		if got, err := access.ParseDestructiveLimit(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is taken as %+v, %v, want %q", text, got, err, want)
		}
	}
}

func FuzzParseDestructiveLimit(f *testing.F) {
	for _, seed := range []string{"25/60m", "off", "1/1m", "25/1h30m", "9999999999999999999/1m"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l, err := access.ParseDestructiveLimit(text)
		if err != nil {
			return
		}
		if again, err := access.ParseDestructiveLimit(l.String()); err != nil || again != l {
			t.Errorf("%q is %+v, which reads back as %+v, %v", text, l, again, err)
		}
		if wrong := (access.Controls{DestructiveLimit: l}).Wrong(); len(wrong) > 0 {
			t.Errorf("%q is taken and is wrong: %v", text, wrong)
		}
	})
}

func TestDestructiveLimit_Within(t *testing.T) {
	t.Parallel()
	limit := func(devices, minutes int) access.DestructiveLimit {
		return access.DestructiveLimit{Devices: devices, Window: time.Duration(minutes) * time.Minute}
	}
	off := access.DestructiveLimit{}
	for _, c := range []struct {
		l, other access.DestructiveLimit
		want     bool
	}{
		{limit(25, 60), limit(25, 60), true},
		{limit(24, 60), limit(25, 60), true},
		{limit(25, 61), limit(25, 60), true},
		{limit(26, 60), limit(25, 60), false},
		{limit(25, 59), limit(25, 60), false},
		{limit(1, 1), limit(25, 60), false}, // 60 in an hour
		{limit(25, 60), off, true},
		{off, limit(25, 60), false},
		{off, off, true},
	} {
		if got := c.l.Within(c.other); got != c.want {
			t.Errorf("%s within %s: %t", c.l, c.other, got)
		}
	}
}
