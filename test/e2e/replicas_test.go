package e2e_test

import (
	"regexp"
	"strconv"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/servertest"
)

// Two replicas pull from one subscription, and the vendor sends every
// notification twice: each is applied once, by one of them.
func TestReplicas_NotificationsAreAppliedOnce(t *testing.T) {
	t.Parallel()
	env := servertest.NewPostgres(t)
	settings := env.Emulator.Settings()
	settings.Notifications.DuplicateShare = 1
	if err := env.Emulator.SetSettings(settings); err != nil {
		t.Fatal(err)
	}
	replicas := []*servertest.Replica{env.Start(), env.Start()}
	tenant := env.NewTenant("acme")
	const count = 10
	devices := tenant.Devices(replicas[0], servertest.FullyManaged(), count)
	client := tenant.Client(replicas[1], access.All)
	for _, device := range devices {
		client.Post(servertest.LockPath(device), nil).Want(t, 200)
	}
	for _, device := range devices {
		tenant.Settled(client, device.AssetID, "SUCCESS")
	}
	var total struct{ Count int }
	client.Get("/assets/count").Want(t, 200).JSON(t, &total)
	if total.Count != count {
		t.Errorf("%d assets for %d devices", total.Count, count)
	}
	ended := 0
	for _, r := range replicas {
		_, text := servertest.Fetch(t, r.PublicURL()+"/metrics")
		ended += metric(t, text, `muster_commands_total\{outcome="success",type="LOCK"\}`)
	}
	if ended != count {
		t.Errorf("%d ends of %d commands were applied", ended, count)
	}
}

// metric reads a counter; 0 if it is not there.
func metric(t *testing.T, text, name string) int {
	t.Helper()
	found := regexp.MustCompile(`(?m)^` + name + ` (\d+)$`).FindStringSubmatch(text)
	if found == nil {
		return 0
	}
	n, err := strconv.Atoi(found[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}
