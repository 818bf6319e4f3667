package activity_test

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/surface/portal/activity"
)

// dated is an answer that notes its deadline at each write.
type dated struct {
	*httptest.ResponseRecorder
	deadline time.Time
	seen     []time.Time
}

func (d *dated) SetWriteDeadline(at time.Time) error { d.deadline = at; return nil }

func (d *dated) Write(part []byte) (int, error) {
	d.seen = append(d.seen, d.deadline)
	return d.ResponseRecorder.Write(part)
}

// An export may last as long as the browser takes it, and no part for longer than a while.
func TestExport_RenewsItsDeadline(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	to := &dated{ResponseRecorder: httptest.NewRecorder()}
	out := activity.Renewing(to, func() time.Time { return now })
	for range 3 {
		now = now.Add(time.Minute)
		if _, err := out.Write([]byte("part")); err != nil {
			t.Fatal(err)
		}
		if got, want := to.seen[len(to.seen)-1], now.Add(activity.ExportPause); !got.Equal(want) {
			t.Errorf("the deadline of a part is %s, want %s", got, want)
		}
	}
}
