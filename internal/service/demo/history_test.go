package demo_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/client"
	"github.com/musterhq/muster/internal/service/demo"
)

// A demo that is new has been used for a month: its first page shows what a company in
// use sees, and what was recorded on the way is whole.
func TestDemo_History(t *testing.T) {
	t.Parallel()
	settings := demo.Settings{Data: t.TempDir(), Listen: "127.0.0.1:0", History: true}
	for range 2 { // the second start finds what the first one made
		if err := demo.Use(t.Context(), settings, time.Now, slog.New(slog.DiscardHandler),
			func(ctx context.Context, r *demo.Running) error {
				v := client.NewPerson(r.Service.PublicURL(), r.User, r.Password)
				v.SignIn(ctx)
				page := v.Get(ctx, "/")
				for _, want := range []string{"In lost mode", "the outcome is not known",
					"asked to raise the limit of destructive commands",
					"Silent for 24 h", "Approval of policy changes"} {
					if !strings.Contains(page.Body, want) {
						t.Errorf("the overview lacks %q", want)
					}
				}
				checkHistory(ctx, t, r)
				return nil
			}); err != nil {
			t.Fatal(err)
		}
	}
}

func checkHistory(ctx context.Context, t *testing.T, r *demo.Running) {
	t.Helper()
	enrolled, err := r.Admin.Assets.CountAssets(ctx, asset.Filter{CompanyID: r.Company.ID, Enrolled: true})
	if err != nil || enrolled != 35 {
		t.Errorf("%d devices are enrolled, want 35: %v", enrolled, err)
	}
	sealer, err := r.Admin.Chain(t.Context(), r.Store, "")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := sealer.Verify(ctx, r.Company.ID); err != nil || !got.Sound() {
		t.Errorf("the record of activity is not whole: %+v, %v", got, err)
	}
	entries, err := r.Admin.Activity.Activity(ctx, activity.Filter{CompanyID: r.Company.ID}, activity.Cursor{}, 1000)
	if err != nil || len(entries) < 150 {
		t.Fatalf("%d entries: %v", len(entries), err)
	}
	now, days := time.Now(), map[string]bool{}
	for _, e := range entries {
		days[e.At.Format(time.DateOnly)] = true
		if e.At.After(now) {
			t.Errorf("%s is recorded for the future", e.Action)
		}
	}
	if oldest := now.Sub(entries[len(entries)-1].At); oldest < 29*24*time.Hour || len(days) < 25 {
		t.Errorf("the history begins %v ago and has %d days", oldest, len(days))
	}
}
