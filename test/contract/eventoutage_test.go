package contract_test

import (
	"testing"
	"time"

	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/event"
	"github.com/musterhq/muster/internal/servertest"
)

// An outage is reported once where one replica fails and another does not, where several fail,
// and where one starts again; the next outage is reported again.
func TestOutage_OnceOverReplicasAndRestarts(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		tenant := env.NewTenant("acme")
		env.Company("alone", servertest.Everything()) // connected to no platform
		db := env.DB()
		replica := func() *event.Outage { return &event.Outage{Of: event.ManagementService, Store: db, Now: env.Now} }
		healthy, failing, late := replica(), replica(), replica()
		calls := func(times int, also ...*event.Outage) {
			for range times {
				env.Advance(15 * time.Second)
				for _, o := range append(also, failing) {
					o.Called(false)
				}
				healthy.Called(true)
				for _, o := range append(also, healthy, failing) {
					if err := o.Look(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		wantReports := func(when string, want int) {
			t.Helper()
			if got := outageReports(t, db, tenant.Company.ID); got != want {
				t.Errorf("%s: reported %d times, want %d", when, got, want)
			}
		}
		calls(20)
		wantReports("before five minutes", 0)
		calls(2)
		wantReports("after five minutes", 1)
		calls(60, late)
		wantReports("with a second replica that fails", 1)
		failing = replica()
		env.Advance(time.Minute)
		calls(30)
		wantReports("after a restart", 1)
		failing.Called(true)
		late.Called(true)
		env.Advance(2 * time.Minute)
		calls(20)
		wantReports("before the next outage has lasted", 1)
		calls(2)
		wantReports("in the next outage", 2)
	})
}

// outageReports counts the outages that a company has events of.
func outageReports(t *testing.T, db *database.DB, companyID string) int {
	t.Helper()
	if _, err := db.NumberRound(t.Context()); err != nil {
		t.Fatal(err)
	}
	all, err := db.Events(t.Context(), event.Query{CompanyID: companyID, Upto: 1 << 40, Limit: 1000, See: event.Sight{All: true}})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range all {
		if e.Type == event.PlatformFailing {
			n++
		}
	}
	return n
}
