package operation_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/operation"
)

// Callers compare such times as texts: a zero at the end may not be left out.
func TestMoment_HasMilliseconds(t *testing.T) {
	t.Parallel()
	cet := time.FixedZone("", 3600)
	for _, c := range []struct {
		at   time.Time
		want string
	}{
		{time.Time{}, `null`},
		{time.Date(2026, 11, 21, 18, 7, 18, 0, time.UTC), `"2026-11-21T18:07:18.000Z"`},
		{time.Date(2026, 11, 21, 18, 7, 18, 280e6, time.UTC), `"2026-11-21T18:07:18.280Z"`},
		{time.Date(2026, 11, 21, 18, 7, 18, 287999999, time.UTC), `"2026-11-21T18:07:18.287Z"`},
		{time.Date(2026, 11, 21, 0, 30, 0, 0, cet), `"2026-11-20T23:30:00.000Z"`},
	} {
		t.Run(c.want, func(t *testing.T) {
			if got, err := json.Marshal(operation.TimestampOf(c.at)); err != nil || string(got) != c.want {
				t.Errorf("%v is written %s (%v), want %s", c.at, got, err, c.want)
			}
		})
	}
}
