package platform_test

import (
	"testing"
	"time"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
)

func TestADeviceEnrolsReportsAndObeys(t *testing.T) {
	connected(t, func(b *bench) {
		a := b.device()
		b.equal("status", a.Status, asset.Active)
		b.equal("policy", a.Device.PolicyID, b.policy.ID)
		b.equal("version applied", a.Device.PolicyApplied, 1)
		if a.Specifications["serialNumber"] == "" || len(a.Device.StatusReport) == 0 {
			b.Errorf("the device did not report: %+v", a)
		}
		result, err := b.command(a, command.Lock, nil)
		b.ok(err)
		b.equal("status at once", result.Status, "IN_PROGRESS")
		b.pass(time.Second)
		h := b.history(a)
		b.equal("state", h[0].State, command.Succeeded)
		b.says("outcome", h[0].Outcome, "locked")
	})
}
