package emulator_test

import (
	"testing"
	"time"

	"github.com/musterhq/muster/internal/emulator"
)

func TestQuota_PerMinute(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		r.bind()
		for range 1500 { // none by default
			if _, err := r.management.Enterprises.Get(r.enterprise).Do(); err != nil {
				t.Fatal(err)
			}
		}
		settings := r.emulator.Settings()
		settings.Quota = emulator.Quota{Requests: 1000, PerSeconds: 100} // the platform's own
		if err := r.emulator.SetSettings(settings); err != nil {
			t.Fatal(err)
		}
		burst := func() (passed int) {
			for range 1500 {
				code, _ := r.raw("GET", "/v1/"+r.enterprise, "")
				switch code {
				case 200:
					passed++
				case 429:
				default:
					t.Fatalf("answered %d", code)
				}
			}
			return passed
		}
		if got := burst(); got != 1000 {
			t.Errorf("%d passed at once", got)
		}
		_, err := r.management.Enterprises.Get(r.enterprise).Do()
		wantCode(t, err, 429, "Quota exceeded for quota metric 'Requests'")
		r.pull() // Pub/Sub has a quota of its own
		time.Sleep(30 * time.Second)
		if got := burst(); got != 300 {
			t.Errorf("%d passed after 30 s", got)
		}
		time.Sleep(time.Hour)
		if got := burst(); got != 1000 {
			t.Errorf("%d passed after an hour", got)
		}
	})
}
