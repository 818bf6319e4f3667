package agentserver_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/resource"
)

// Devices that a restored database does not have are logged with their number, in one line
// each 15 minutes, however many requests come. An id that no device has is not counted.
func TestAuthenticate_LogsUnknownDevicesNowAndThen(t *testing.T) {
	w := newWorld(t)
	var log strings.Builder
	now := time.Now()
	w.link.Log, w.link.Now = slog.New(slog.NewTextHandler(&log, nil)), func() time.Time { return now }
	refused := func(device string) {
		t.Helper()
		if _, err := w.link.Authenticate(t.Context(), protocol.Request{Device: device}, "none"); err == nil {
			t.Fatalf("%s is known", device)
		}
	}
	refused("DROP TABLE\nx")
	if log.Len() > 0 {
		t.Errorf("logged for an id that no device has: %s", &log)
	}
	same := resource.NewID()
	for range 3 {
		refused(same)
	}
	for range 40 {
		refused(resource.NewID())
	}
	expect := func(lines, last int) {
		t.Helper()
		if got := strings.Count(log.String(), "\n"); got != lines || !strings.HasSuffix(log.String(), fmt.Sprintf(" devices=%d\n", last)) {
			t.Errorf("%d lines, want %d that end with %d devices: %s", got, lines, last, &log)
		}
	}
	expect(1, 1)
	now = now.Add(15 * time.Minute)
	refused(same)
	expect(2, 41)
}
