package database_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/enrollment"
	"github.com/musterhq/muster/internal/operation"
)

// An enrollment and the report that follows it may be applied at the same
// moment, by two replicas. Whichever is applied first, the device that reports
// its policy is ACTIVE, and was enrolled once.
func TestObserve_EnrollmentAndReportAtOnce(t *testing.T) {
	withCompany(t, func(f *fixture) {
		const devices = 100
		p := f.newPolicy("Warehouse")
		at := f.clock.Now()
		start, wait := make(chan struct{}), sync.WaitGroup{}
		observe := func(o enrollment.Observation) {
			wait.Go(func() {
				<-start
				if _, err := f.db.Observe(f.Context(), o); err != nil {
					f.Error(err)
				}
			})
		}
		for n := range devices {
			common := enrollment.Observation{CompanyID: f.company.ID, Device: fmt.Sprintf("d%d", n), Management: asset.Platform,
				SerialNumber: fmt.Sprintf("S-%d", n), Brand: "Acme", EnrolledAt: at.Add(-time.Second), ObservedAt: at, PolicyID: p.ID}
			enrollment, report := common, common
			enrollment.Enrolling, enrollment.MessageID = true, fmt.Sprintf("e%d", n)
			report.AppliedPolicy, report.AppliedVersion = p.ID, 1
			enrollment.ObservedAt = at.Add(-time.Duration(n%2) * time.Millisecond)
			report.ReportedAt, report.MessageID = at, fmt.Sprintf("r%d", n)
			observe(enrollment)
			observe(report)
		}
		close(start)
		wait.Wait()
		count, err := f.db.CountAssets(f.Context(), asset.Filter{CompanyID: f.company.ID})
		f.ok(err)
		active, err := f.db.CountAssets(f.Context(), asset.Filter{CompanyID: f.company.ID, Status: asset.Active})
		f.ok(err)
		equal(f, "assets", count, int64(devices))
		equal(f, "active", active, int64(devices))
		all, _, err := f.db.Assets(f.Context(),
			asset.Query{Filter: asset.Filter{CompanyID: f.company.ID}, Page: operation.PageRequest{Size: devices}})
		f.ok(err)
		for _, a := range all {
			equal(f, "enrollments of "+a.Device.Name, a.Device.Epoch, 1)
		}
		f.checkCounts()
	})
}
