package platform_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/emulator"
	"github.com/musterhq/muster/internal/enrollment"
	"github.com/musterhq/muster/internal/platform"
	"github.com/musterhq/muster/internal/provisioning"
)

// slow is an inventory that takes longer than notifications may.
type slow struct{ platform.Inventory }

func (s slow) Observe(ctx context.Context, o enrollment.Observation) (enrollment.Change, error) {
	change, err := s.Inventory.Observe(ctx, o)
	time.Sleep(45 * time.Second)
	return change, err
}

// What took longer than it may is acknowledged all the same.
func TestNotifications_SlowOnesAreAcknowledged(t *testing.T) {
	on(t, func(b *bench) {
		observer := &counted{calls: map[string]int{}, notes: map[string]int{}}
		b.start(func(c *platform.Config) { c.Stores.Inventory, c.Observer = slow{c.Stores.Inventory}, observer })
		b.connect()
		b.run()
		b.enroll(provisioning.Disallowed, emulator.Enrollment{})
		b.pass(2 * time.Minute)
		b.halt()
		b.equal("acknowledged", observer.calls["pubsub.projects.subscriptions.acknowledge ok"] > 0, true)
		b.equal("logged", strings.Count(b.log.String(), "cannot acknowledge notifications"), 0)
	})
}

// A replica that stops while the vendor does not answer ends within a minute, however many
// answers are due.
func TestNotifications_StopWithoutAnswers(t *testing.T) {
	on(t, func(b *bench) {
		b.connect()
		for range 5 { // of different ages, so that each is asked for again at another time
			b.publish("STATUS_REPORT", `{"name":"enterprises/LCother/devices/d"}`)
			b.pass(time.Second)
		}
		b.fault(emulator.Fault{Method: "pubsub.modifyAckDeadline", DelayMS: 600_000, Times: -1})
		b.runOnly(b.platform.Notifications)
		began := time.Now()
		b.halt()
		if took := time.Since(began); took < 20*time.Second || took > time.Minute {
			b.Errorf("took %v", took)
		}
	})
}

// Messages that are together larger than an answer may be are pulled in smaller numbers.
func TestNotifications_LargerThanOneAnswer(t *testing.T) {
	on(t, func(b *bench) {
		b.connect()
		report := `{"name":"` + b.company.Enterprise + `/devices/d","state":"ACTIVE","padding":"` + strings.Repeat("x", 600_000) + `"}`
		for range 60 {
			b.publish("STATUS_REPORT", report)
		}
		b.runOnly(b.platform.Notifications)
		b.pass(10 * time.Minute)
		b.halt()
		b.equal("left over", b.backlog(), 0)
	})
}
