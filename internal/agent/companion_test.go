package agent_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/test/expect"
)

// A companion shows messages and reports. It follows no policy, and whatever else it is sent, it does not do.
func TestCompanion(t *testing.T) {
	t.Parallel()
	for kind, does := range map[string]bool{"NOTIFICATION_MESSAGE": true, "STATUS_REPORT": true, "LOCATION_UPDATE": true,
		"LAUNCH_APP": false, "REBOOT": false, "SHUTDOWN": false, "WIPE_COMPANY_DATA": false, "RELINQUISH_OWNERSHIP": false,
		"SYNC_POLICY": false, "UPLOAD_LOG": false, "UNKNOWN": false} {
		d := &interrupted{commandWorld: newCommandWorld(t, vectorKey(t, "device"), kind, "NEW", "intime,answers,does"), end: func() {}}
		d.edit("identity.json", object{"role": "companion"})
		d.write("applied.json", object{})
		a, err := agent.New(agent.Options{Dir: d.dir, Device: d, Client: &http.Client{Transport: d}, Now: d.clock, Log: discard(), Kept: d})
		if err != nil {
			t.Fatal(err)
		}
		_, err = a.Once(t.Context())
		d.close(a)
		e, trace := d.entry(), strings.Join(d.trace, " ")
		expect.Equal(t, kind, expect.Values{"error": {err, error(nil)}, "done": {e.Result == "DONE", does},
			"refused": {strings.Contains(e.Outcome, "a companion has no power over its device"), !does},
			"touched": {strings.Contains(trace, "set:") || strings.Contains(trace, "fetch:") || strings.Contains(trace, "upload:"), false},
			"did":     {strings.Contains(trace, "do:"), kind == agent.ShowMessage}})
	}
}
