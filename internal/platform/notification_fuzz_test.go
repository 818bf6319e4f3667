package platform_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/platform"

	"google.golang.org/api/pubsub/v1"
)

// Whatever lies in a message: it is read, or refused, or says nothing; what is
// read is about a device, and its report is JSON.
func FuzzNotification(f *testing.F) {
	const device = "enterprises/LC1/devices/d1"
	for kind, data := range map[string]string{
		"ENROLLMENT": `{"name":"` + device + `","enrollmentTokenData":"{}","hardwareInfo":{"model":"TC58"}}`,
		"STATUS_REPORT": `{"name":"` + device +
			`","appliedState":"ACTIVE","powerManagementEvents":[{"batteryLevel":7,"eventType":"BATTERY_LEVEL_COLLECTED"}],"nonComplianceDetails":[{"settingName":"x"}]}`,
		"command": `{"name":"` + device +
			`/operations/1700000000000","done":true,"response":{"@type":"x"},"metadata":{"type":"LOCK"}}`,
		"USAGE_LOGS": `{"device":"` + device + `","usageLogEvents":[{"lostModeLocationEvent":{"location":{"latitude":1e9}}}]}`,
		"test":       ``,
	} {
		f.Add(kind, base64.StdEncoding.EncodeToString([]byte(data)), "2026-11-21T12:00:00Z", "7")
	}
	f.Fuzz(func(t *testing.T, kind, data, published, id string) {
		m := &pubsub.PubsubMessage{Data: data, MessageId: id, PublishTime: published,
			Attributes: map[string]string{"notificationType": kind}}
		read, subject, report, specs, err := platform.ReadNotification(m)
		switch read {
		case "OTHER":
			if err != nil || subject != "" {
				t.Errorf("%q says nothing to us, and yet: subject %q, %v", kind, subject, err)
			}
			return
		case "ENROLLMENT", "STATUS_REPORT", "COMMAND", "USAGE_LOGS":
		default:
			t.Fatalf("kind %q", read)
		}
		if err == nil && (!strings.HasPrefix(subject, "enterprises/") || strings.Count(subject, "/") != 3) {
			t.Errorf("it is read, and about %q", subject)
		}
		if len(report) > 0 && !json.Valid(report) {
			t.Errorf("the report is not JSON: %s", report)
		}
		for key := range specs {
			if key == "" {
				t.Error("a specification has no name")
			}
		}
	})
}
