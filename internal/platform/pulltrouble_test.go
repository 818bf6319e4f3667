package platform_test

import (
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/emulator"
	"github.com/musterhq/muster/internal/platform"
)

// Pulls that fail are reported once, not by each puller at each try, and so is that
// they succeed again.
func TestNotifications_TroubleIsReportedOnce(t *testing.T) {
	on(t, func(b *bench) {
		b.connect()
		b.fault(emulator.Fault{Method: "pubsub.pull", Status: 403, Reason: "PERMISSION_DENIED", Times: 12})
		b.run()
		b.pass(10 * time.Minute)
		text := b.log.String()
		b.equal("reports", strings.Count(text, "cannot pull the platform's notifications"), 1)
		b.equal("lines above DEBUG that name the pull", strings.Count(text, "level=ERROR")+strings.Count(text, "level=WARN"), 1)
		b.equal("reports that it works again", strings.Count(text, "notifications are pulled again"), 1)
	})
}

// The log says why there is no access token.
func TestNotifications_NoTokenSaysWhy(t *testing.T) {
	on(t, func(b *bench) {
		b.connect()
		key, err := b.emulator.NewServiceAccount("http://vendor.test")
		b.ok(err)
		b.start(func(c *platform.Config) { c.Credentials = key })
		b.ok(b.network.Close())
		b.run()
		b.pass(5 * time.Minute)
		b.says("the log", b.log.String(), "no access token for the platform: ")
		b.says("the log", b.log.String(), "connection refused")
		b.equal("reports", strings.Count(b.log.String(), "cannot pull the platform's notifications"), 1)
	})
}
