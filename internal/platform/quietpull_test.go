package platform_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/platform"
)

// A pull that ends by its own limit because there are no messages is no failure; one that
// was not sent by then is.
func TestNotifications_QuietPullsSucceed(t *testing.T) {
	on(t, func(b *bench) {
		settings := b.emulator.Settings()
		settings.PullWaitMS = 300_000
		b.ok(b.emulator.SetSettings(settings))
		observer := &counted{calls: map[string]int{}, notes: map[string]int{}}
		b.start(func(c *platform.Config) { c.Observer = observer })
		b.connect()
		b.runOnly(b.platform.Notifications)
		b.pass(10 * time.Minute)
		b.halt()
		const pull = "pubsub.projects.subscriptions.pull "
		b.equal("quiet pulls", observer.calls[pull+"ok"] >= 12, true) // two pullers, each 95 s
		b.equal("ended by the stop", observer.calls[pull+"unknown"], 2)
	})
}

// Pulls that cannot be sent are failures, also when that takes as long as a pull may.
func TestNotifications_PullThatIsNotSentIsTrouble(t *testing.T) {
	on(t, func(b *bench) {
		b.connect()
		nowhere := newPipes() // no server accepts its connections
		b.Cleanup(func() { b.ok(nowhere.Close()) })
		b.start(func(c *platform.Config) { c.Transport = &http.Transport{DialContext: nowhere.dial} })
		b.runOnly(b.platform.Notifications)
		b.pass(10 * time.Minute)
		b.equal("reports", strings.Count(b.log.String(), "cannot pull the platform's notifications"), 1)
	})
}
